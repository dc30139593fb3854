"""matplotlib, where it is installed."""

from typing import Any

from ranksvm.exceptions import MissingDependencyError


def new_or_given_axes(ax: Any) -> Any:
    """The axes to draw on: those given, or of a new figure of pyplot."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingDependencyError("plotting needs matplotlib: pip install 'ranksvm[plot]'") from None
    return pyplot.subplots(layout="constrained")[1] if ax is None else ax
