"""matplotlib, asked for when something is drawn."""

from typing import Any

from ranksvm.exceptions import MissingDependencyError


def axes_or_new(ax: Any = None, **figure: Any) -> Any:
    """The axes given, or those of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingDependencyError("drawing needs matplotlib: pip install 'ranksvm[plot]'") from None
    return plt.subplots(**figure)[1] if ax is None else ax
