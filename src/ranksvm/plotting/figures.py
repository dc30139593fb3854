"""matplotlib, imported when a plot is drawn."""

from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, TypeVar

from ranksvm.exceptions import MissingDependencyError

# axes, or an array of them
A = TypeVar("A")


def axes_or_new(ax: A | None = None, **figure: Any) -> A:
    """Return ``ax``, or the axes of a new figure of pyplot if it is None."""
    pyplot = _pyplot()
    return pyplot.subplots(**figure)[1] if ax is None else ax


def figure_in_memory(**figure: Any) -> Any:
    """A figure that is not registered with pyplot and not shown in a window, for writing to a file."""
    _pyplot()
    from matplotlib.figure import Figure

    return Figure(**figure)


def axes_in_memory(**figure: Any) -> Any:
    """The axes of a `figure_in_memory`."""
    return figure_in_memory(**figure).subplots()


def default_style(settings: dict[str, Any]) -> AbstractContextManager[None]:
    """matplotlib's own style with some settings, whatever style the user has chosen; a context manager."""
    _pyplot()
    from matplotlib import style

    return style.context(["default", settings])


def picture_formats() -> list[str]:
    """The file formats in which figures can be saved: "png", "svg" and others."""
    _pyplot()
    from matplotlib.backend_bases import FigureCanvasBase

    return sorted(FigureCanvasBase.get_supported_filetypes())


def _pyplot() -> ModuleType:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingDependencyError("plotting needs matplotlib: pip install 'ranksvm[plot]'") from None
    return pyplot
