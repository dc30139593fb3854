"""Checkpoints of a fit: the best weights so far, in a small file that is complete or absent."""

import os
from typing import NamedTuple

import numpy as np

from ranksvm._util.atomic_files import atomic_write
from ranksvm._util.types import PathLike
from ranksvm.exceptions import DataError, ModelFileError
from ranksvm.terms.parts.term import PartitionedPoint, PartitionedTerm

__all__ = ["Checkpoint", "CheckpointedTerm", "read_checkpoint", "write_checkpoint"]


class Checkpoint(NamedTuple):
    """State of a fit.

    Attributes
    ----------
    w : ndarray of float64, shape (n_features,)
        The weights.
    C : float
        The weight of a pair.
    width : float or None
        The width of the loss.
    """

    w: np.ndarray
    C: float
    width: float | None


def write_checkpoint(path: PathLike, at: Checkpoint) -> None:
    """Write a checkpoint; the file is replaced as a whole.

    Parameters
    ----------
    path : path-like
        The file.
    at : Checkpoint
        What to write.
    """
    with atomic_write(path) as file:
        width = np.nan if at.width is None else at.width
        np.savez(file, w=at.w, C=at.C, width=width)


def read_checkpoint(path: PathLike, n_features: int) -> Checkpoint | None:
    """The checkpoint of an earlier fit; None if there is none.

    Parameters
    ----------
    path : path-like
        The file.
    n_features : int
        Number of features of the data.

    Returns
    -------
    Checkpoint or None
        What it holds.

    Raises
    ------
    ModelFileError
        When the file is not a checkpoint.
    DataError
        When the checkpoint belongs to other data.
    """
    if not os.path.exists(path):
        return None
    try:
        with np.load(path, allow_pickle=False) as found:
            w, C, width = found["w"], float(found["C"]), float(found["width"])
    except Exception as error:
        raise ModelFileError(f"{path} is no checkpoint of a fit: {error}") from None
    if w.shape != (n_features,) or not np.isfinite(w).all():
        raise DataError(f"the checkpoint {path} has {w.size} weights, but X has {n_features} features: remove it.")
    return Checkpoint(w, C, None if np.isnan(width) else width)


class CheckpointedTerm(PartitionedTerm):
    """A `PartitionedTerm` that writes a checkpoint after every evaluation that is better than all earlier ones.

    The caller sets the attributes ``checkpoint`` (the file) and ``C``.
    """

    checkpoint: PathLike
    C: float
    _best: tuple[float, float] = (-np.inf, np.inf)

    def evaluate(self, w: np.ndarray, width: float | None, near: PartitionedPoint | None = None) -> PartitionedPoint:
        """Value and gradient, in one round."""
        point = super().evaluate(w, width, near)
        value = 0.5 * float(w @ w) + self.C * point.sums.value
        # less smoothing is better; with equal smoothing, a lower value is better
        reached = -np.inf if width is None else -width, value
        if reached[0] > self._best[0] or (reached[0] == self._best[0] and value < self._best[1]):
            self._best = reached
            write_checkpoint(self.checkpoint, Checkpoint(w, self.C, width))
        return point
