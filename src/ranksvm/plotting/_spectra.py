"""Code shared by the displays of dual spectra."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ranksvm.analysis import DualSpectra
from ranksvm.exceptions import OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Spectra = DualSpectra | Mapping[str, DualSpectra]


def by_name(spectra: Spectra) -> dict[str, DualSpectra]:
    """Spectra of one model or of several, by name; the name of a single one is empty."""
    if isinstance(spectra, DualSpectra):
        return {"": spectra}
    if not isinstance(spectra, Mapping) or not all(isinstance(item, DualSpectra) for item in spectra.values()):
        raise OptionError(f"spectra must be a result of dual_spectra, or a dict of results by name, got {spectra!r}.")
    if not spectra:
        raise OptionError("there are no spectra to draw.")
    return dict(spectra)


def percent(t: float) -> str:
    """A share of the energy as a label."""
    return f"{100 * t:g} %"


def series_name(name: str, t: float, several_t: bool) -> str:
    """Name in the legend for the dimensions that a model needs for the share t of the energy."""
    what = "rank" if t == 1.0 else f"dimensions for {percent(t)}"
    return f"{name}: {what}" if name and several_t else name or what


def legend(ax: "Axes", **options: Any) -> None:
    """Add a legend if there are several series."""
    if any(ax.get_legend_handles_labels()[1]):
        ax.legend(frameon=False, fontsize="small", **options)


def count_axis(ax: "Axes", which: str) -> None:
    """Make the axis "x" or "y" logarithmic, with plain numbers at powers of ten and, if few, at 2 and 5 times them."""
    from matplotlib.ticker import NullLocator

    getattr(ax, f"set_{which}scale")("log")
    axis = getattr(ax, f"{which}axis")
    low, high = axis.get_view_interval()
    if high < 1000 * low:
        axis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
    axis.set_major_formatter("{x:,.0f}")
    axis.set_minor_locator(NullLocator())
