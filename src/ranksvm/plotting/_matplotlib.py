"""matplotlib, asked for when something is drawn."""

from typing import Any

from ranksvm.exceptions import MissingDependencyError


def axes_or_new(ax: Any = None, **figure: Any) -> Any:
    """The axes given, or those of a new figure of pyplot."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingDependencyError("plotting needs matplotlib: pip install 'ranksvm[plot]'") from None
    return pyplot.subplots(**figure)[1] if ax is None else ax
