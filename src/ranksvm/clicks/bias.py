"""PositionBias: the probability that users examine each rank."""

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.atomic_files import atomic_write
from ranksvm._util.checks import check_one_per_row, is_number
from ranksvm._util.tables import Table, Tabular
from ranksvm._util.text import plain
from ranksvm._util.types import PathLike
from ranksvm.data.clicks import clicked_flags
from ranksvm.data.numeric_column import numeric_column
from ranksvm.exceptions import DataError, OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ranksvm.plotting import PropensityDisplay

__all__ = ["Bias", "PositionBias"]

_MARK = "position bias"
_VERSION = 1


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PositionBias(Tabular):
    """Propensities of ranks: ``P(click at rank k) = propensity_k * relevance + offset_k``.

    Position bias alone has no offset; trust bias has one (Agarwal et al., WWW 2019; Vardasbi, Oosterhuis & de Rijke,
    CIKM 2020). Clicks determine propensities only up to a factor and, if there are offsets, relevance only up to an
    affine map. Estimates are therefore relative to rank 1, where the propensity is 1 and the offset 0: the relevance of
    a document is the click rate that it would have at rank 1.

    Parameters
    ----------
    propensity : array-like of shape (n_ranks,)
        Propensity of each rank from 1, in (0, 1]; NaN if the data do not identify it.
    offset : array-like of shape (n_ranks,), optional
        Trust bias: click rate of a document without relevance at each rank; None: 0. `position_bias` takes the click
        rate at rank 1 as the relevance of a document. So its offsets are negative if documents without relevance are
        clicked on mainly at rank 1.
    low, high : ndarray of shape (n_ranks,), optional
        Confidence interval of the propensities; None if they were not estimated. NaN if the data do not bound one.
    offset_low, offset_high : ndarray of shape (n_ranks,), optional
        Confidence interval of the offsets.
    confidence : float, default 0.95
        Level of the intervals.
    method : str, default "given"
        Method of estimation.
    n_impressions : int, default 0
        Number of impressions that the estimate is based on.
    diagnosis : tuple of str
        Sentences about what the data cannot determine; empty if there is nothing to report.
    clip : float, default 0.0
        Lower limit of the propensities, see `clipped`. `metrics.estimate` and `relevance` apply it to the mean
        exposures of documents instead.

    Raises
    ------
    DataError
        When a propensity is not in (0, 1], or there is not one offset for each rank.
    OptionError
        When ``clip`` is not in [0, 1].

    Examples
    --------
    >>> bias = PositionBias([1.0, 0.5, 0.25]).clipped(0.4)
    >>> bias.at([1, 3]).tolist(), bias.clip_bias.tolist()
    ([1.0, 0.4], [0.0, 0.0, -0.375])
    """

    propensity: np.ndarray
    offset: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    offset_low: np.ndarray | None = None
    offset_high: np.ndarray | None = None
    confidence: float = 0.95
    method: str = "given"
    n_impressions: int = 0
    diagnosis: tuple[str, ...] = ()
    clip: float = 0.0

    def __post_init__(self) -> None:
        for field in ("propensity", "offset", "low", "high", "offset_low", "offset_high"):
            if (values := getattr(self, field)) is not None:
                object.__setattr__(self, field, _numbers(field, values))
        p = self.propensity
        if p.ndim != 1 or len(p) == 0:
            raise DataError(f"propensity must hold one number for each rank, got shape {p.shape}.")
        wrong = (p <= 0.0) | (p > 1.0)
        if wrong.any():
            rank = int(wrong.argmax()) + 1
            raise DataError(
                f"the propensity of rank {rank} is {p[rank - 1]:g}: the probability of being examined must be "
                "in (0, 1]."
            )
        if self.offset is not None and self.offset.shape != p.shape:
            raise DataError(f"there are {len(p)} propensities but {self.offset.size} offsets: one of each for a rank.")
        self._check_clip(self.clip)

    @classmethod
    def power(cls, n_ranks: int, eta: float = 1.0) -> "PositionBias":
        """Propensities ``k ** -eta``.

        Parameters
        ----------
        n_ranks : int
            Number of ranks.
        eta : float, default 1.0
            Severity of the bias.

        Returns
        -------
        PositionBias
            These propensities, without intervals.
        """
        return cls(np.arange(1.0, n_ranks + 1.0) ** -eta)

    @property
    def n_ranks(self) -> int:
        """Number of ranks."""
        return len(self.propensity)

    @property
    def identified(self) -> bool:
        """Whether the propensity of every rank is known."""
        return not np.isnan(self.propensity).any()

    @property
    def clip_bias(self) -> np.ndarray:
        """Relative bias that clipping causes at each rank: a document shown there counts ``1 + clip_bias`` times."""
        return self.propensity / np.maximum(self.propensity, self.clip) - 1.0

    def clipped(self, clip: float) -> "PositionBias":
        """A copy that raises propensities to at least ``clip``: less variance, but the bias `clip_bias`.

        Parameters
        ----------
        clip : float
            The limit, in [0, 1]; 0 clips nothing.

        Returns
        -------
        PositionBias
            A copy with this limit.

        Raises
        ------
        OptionError
            When ``clip`` is not in [0, 1].
        """
        self._check_clip(clip)
        return dataclasses.replace(self, clip=float(clip))

    def at(self, rank: ArrayLike) -> np.ndarray:
        """Propensity at the rank of each row, clipped.

        Parameters
        ----------
        rank : array-like of int
            Ranks, from 1.

        Returns
        -------
        ndarray of float64
            The propensities.

        Raises
        ------
        DataError
            When a rank is not a whole number from 1, or its propensity is not known.
        """
        return np.maximum(self._of(rank, self.propensity), self.clip)

    def offset_at(self, rank: ArrayLike) -> np.ndarray:
        """Offset at the rank of each row; 0 without trust bias.

        Parameters
        ----------
        rank : array-like of int
            Ranks, from 1.

        Returns
        -------
        ndarray of float64
            The offsets.

        Raises
        ------
        DataError
            When a rank is not a whole number from 1, or its offset is not known.
        """
        return self._of(rank, np.zeros(self.n_ranks) if self.offset is None else self.offset)

    def relevance(self, rank: ArrayLike, clicked: ArrayLike) -> np.ndarray:
        """Estimate of the relevance of each row from its click: ``(click - offset) / propensity``.

        It is unbiased without clipping.

        Parameters
        ----------
        rank : array-like of int
            Ranks, from 1.
        clicked : array-like of bool
            Clicks.

        Returns
        -------
        ndarray of float64
            The estimates.

        Raises
        ------
        DataError
            When lengths differ, a click is not True or False, or the propensity of a rank is not known.
        """
        flags = clicked_flags(clicked)
        check_one_per_row("rank", rank, len(flags), "clicked")
        return (flags - self.offset_at(rank)) / self.at(rank)

    @staticmethod
    def _check_clip(clip: float) -> None:
        if not is_number(clip) or not 0.0 <= clip <= 1.0:
            raise OptionError(f"clip must be between 0 and 1, got {clip!r}.")

    def _of(self, rank: ArrayLike, values: np.ndarray) -> np.ndarray:
        rank = np.asarray(rank)
        if rank.size and (rank.dtype.kind not in "iu" or rank.min() < 1):
            raise DataError("ranks are the whole numbers 1, 2, 3, ...")
        if rank.size and rank.max() > self.n_ranks:
            raise DataError(
                f"the log shows rank {rank.max()}, but propensities are known for {self.n_ranks} ranks: keep the "
                f"first ones, log.top({self.n_ranks})."
            )
        found = values[rank.astype(np.intp) - 1]
        if np.isnan(found).any():
            place = int(rank.reshape(-1)[np.isnan(found).reshape(-1).argmax()])
            why = f" {self.diagnosis[0]}" if self.diagnosis else ""
            raise DataError(
                f"the propensity of rank {place} is not known.{why} Keep the ranks above: log.top({place - 1})."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON; an unknown number is None.

        Returns
        -------
        dict
            One entry for each parameter.
        """
        return plain(dataclasses.asdict(self))

    def save(self, path: PathLike) -> None:
        """Write JSON, which `load` reads.

        Parameters
        ----------
        path : path-like
            The file; written atomically.
        """
        content = {"ranksvm": _MARK, "version": _VERSION, **self.to_dict()}
        with atomic_write(path) as file:
            file.write((json.dumps(content, indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: PathLike) -> "PositionBias":
        """Read a file written by `save`.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        PositionBias
            What was saved.

        Raises
        ------
        DataError
            When `save` did not write the file.
        """
        name = os.fspath(path)
        with open(path, "rb") as file:
            text = file.read()
        try:
            content = json.loads(text)
            if content.pop("ranksvm", None) != _MARK or content.pop("version") > _VERSION:
                raise ValueError("it has another format, or a newer version of ranksvm wrote it")
            content["diagnosis"] = tuple(content.get("diagnosis", ()))
            for field in ("propensity", "offset", "low", "high", "offset_low", "offset_high"):
                if content.get(field) is not None:
                    content[field] = numeric_column(
                        field, [np.inf if value is None else value for value in content[field]], finite=False
                    )
                    content[field][np.isinf(content[field])] = np.nan
            return cls(**content)
        except DataError as error:
            raise DataError(f"{name}: {error}") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"{name} was not written by PositionBias.save: {error}") from None

    def plot(self, ax: "Axes | None" = None) -> "PropensityDisplay":
        """Draw the propensities with their intervals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; None: the axes of a new figure.

        Returns
        -------
        PropensityDisplay
            The display, drawn.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        from ranksvm.plotting.rank_curves import PropensityDisplay

        return PropensityDisplay(
            self.propensity, self.low, self.high, self.offset, self.clip, level=self.confidence
        ).plot(ax)

    def _table(self) -> Table:
        columns: dict[str, Any] = {"rank": np.arange(1, self.n_ranks + 1), "propensity": self.propensity}
        for name in ("low", "high", "offset", "offset_low", "offset_high"):
            if (values := getattr(self, name)) is not None:
                columns[name] = values
        if self.clip > 0:
            columns["clip_bias"] = self.clip_bias
        caption = f"{self.method}, {self.n_impressions:,} impressions" if self.n_impressions else self.method
        if self.low is not None:
            caption += f", {100 * self.confidence:g} % intervals"
        return Table(columns, ". ".join([caption, *(text.rstrip(".") for text in self.diagnosis)]))

    def __repr__(self) -> str:
        shown = ", ".join(f"{value:.3f}" for value in self.propensity[:5])
        more = ", ..." if self.n_ranks > 5 else ""
        notes = "".join(f"\n  {text}" for text in self.diagnosis)
        return f"PositionBias([{shown}{more}], {self.n_ranks} ranks, method {self.method!r}){notes}"


# Propensities of ranks, "log" for the propensities in the log, or None for no propensities.
Bias = PositionBias | Literal["log"] | None


def _numbers(name: str, values: ArrayLike) -> np.ndarray:
    """Numbers as float64, possibly NaN."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must hold one number for each rank, got {values!r}.") from None
