"""What the displays of dual spectra share."""

from collections.abc import Mapping
from typing import Any

from ranksvm.analysis import DualSpectra
from ranksvm.exceptions import OptionError

Spectra = DualSpectra | Mapping[str, DualSpectra]


def by_name(spectra: Spectra) -> dict[str, DualSpectra]:
    """Spectra of one model or of several, by name; that of a single one is empty."""
    if isinstance(spectra, DualSpectra):
        return {"": spectra}
    if not isinstance(spectra, Mapping) or not all(isinstance(item, DualSpectra) for item in spectra.values()):
        raise OptionError(f"what dual_spectra gave is needed, or a dict of such by name, got {spectra!r}.")
    if not spectra:
        raise OptionError("there are no spectra to draw.")
    return dict(spectra)


def percent(t: float) -> str:
    """A part of the energy for a label."""
    return f"{100 * t:g} %"


def series_name(name: str, t: float, several_t: bool) -> str:
    """Of the dimensions for t of a model, in a legend."""
    what = "rank" if t == 1.0 else f"dimensions for {percent(t)}"
    return f"{name}: {what}" if name and several_t else name or what


def legend(ax: Any, **options: Any) -> None:
    """A legend where there is something to tell apart."""
    if any(ax.get_legend_handles_labels()[1]):
        ax.legend(frameon=False, fontsize="small", **options)


def count_axis(ax: Any, which: str) -> None:
    """Make the axis "x" or "y" logarithmic, ticks written out: powers of ten, and where few, 2 and 5 times them."""
    from matplotlib.ticker import NullLocator

    getattr(ax, f"set_{which}scale")("log")
    axis = getattr(ax, f"{which}axis")
    low, high = axis.get_view_interval()
    if high < 1000 * low:
        axis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
    axis.set_major_formatter("{x:,.0f}")
    axis.set_minor_locator(NullLocator())
