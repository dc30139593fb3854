"""A part of the rows: plain arrays, and caches of results that can be computed from them again."""

import threading
from collections import OrderedDict
from typing import Protocol

import numpy as np

from ranksvm._util import types
from ranksvm._util.lazy import cached_property
from ranksvm.data import DesignMatrix, as_design_matrix, frames, joined
from ranksvm.data.design_matrix import stored_bytes
from ranksvm.device import open_device
from ranksvm.losses import LossSpec, Pairs
from ranksvm.terms.host import ThreadedTerm
from ranksvm.terms.protocol import DataTerm, Term

__all__ = ["Features", "Part"]

# Number of fits whose compiled terms a part keeps, if it is not told that they have ended.
MAX_FITS = 16


class Features(Protocol):
    """Variables that a model computes from the columns of X: they are the columns of its design matrix.

    Attributes
    ----------
    n_variables : int
        Number of variables.
    """

    @property
    def n_variables(self) -> int: ...

    def design(self, X: types.Features) -> DesignMatrix:
        """The design matrix of rows of X."""

    def row_bytes(self, X_bytes: float) -> float:
        """Bytes that a product reads for a row, if the row takes ``X_bytes`` in X."""


class Part:
    """The features and the pairs of some whole queries.

    A pickled part has only the arrays. The design matrix, compiled terms and evaluated points are not sent to another
    process, but computed again there, with the same bits.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_rows, n_features)
        The features.
    pairs : ComparablePairs or PairList
        Pairs of these rows; there may be none.
    features : Features, optional
        The variables that the model computes from X; None: its variables are the columns of X.
    sample_weight : ndarray of float64, shape (n_rows,), optional
        Weight of each row in counts of rows; None: 1. (The weights of pairs are in ``pairs``.)
    """

    def __init__(
        self,
        X: types.Features,
        pairs: Pairs,
        features: Features | None = None,
        sample_weight: np.ndarray | None = None,
    ):
        self.X = X
        self.pairs = pairs
        self.features = features
        self.sample_weight = sample_weight
        self.lock = threading.Lock()
        self._terms: OrderedDict[str, DataTerm] = OrderedDict()
        self._points: dict[tuple[str, int], dict[int, Term]] = {}

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.X, self.pairs, self.features, self.sample_weight)

    def __sizeof__(self) -> int:
        # labels, factors of weights and their compiled form take about 40 bytes a row
        computed = 0.0 if self.features is None else self.features.row_bytes(0.0)
        return object.__sizeof__(self) + stored_bytes(self.X) + int((40 + computed) * self.pairs.n_rows)

    @classmethod
    def joined(cls, parts: "list[Part]") -> "Part":
        """All rows of some parts as one part, without sample weights.

        Parameters
        ----------
        parts : list of Part
            The parts, at least one.

        Returns
        -------
        Part
            Their rows; the part itself if there is only one.
        """
        if len(parts) == 1:
            return parts[0]
        X = frames.stacked(*(part.X for part in parts))
        return cls(X, joined([part.pairs for part in parts]), parts[0].features)

    @cached_property
    def design(self) -> DesignMatrix:
        """The design matrix of X."""
        return as_design_matrix(self.X) if self.features is None else self.features.design(self.X)

    def term(self, fit: str, loss: LossSpec, device: str = "cpu") -> DataTerm:
        """The compiled data term of a loss over these rows, on a device or on one thread (parts run in parallel).

        Parameters
        ----------
        fit : str
            Name under which it is kept.
        loss : LossSpec
            The loss.
        device : str
            Full name of the device, or "cpu".

        Returns
        -------
        ThreadedTerm or DeviceTerm
            The term, whose results do not depend on earlier evaluations.
        """
        if fit not in self._terms:
            loss_of_pairs = loss.with_pairs(self.pairs)
            if device == "cpu":
                self._terms[fit] = ThreadedTerm(self.design, loss_of_pairs, repeatable=True)
            else:
                from ranksvm.terms.device.term import DeviceTerm

                self._terms[fit] = DeviceTerm(open_device(device), self.design, loss_of_pairs)
            if len(self._terms) > MAX_FITS:
                self.forget(next(iter(self._terms)))
        self._terms.move_to_end(fit)
        return self._terms[fit]

    def points(self, fit: str, owner: int) -> dict[int, Term]:
        """The evaluated points that are kept for an owner (a solver), by number.

        Parameters
        ----------
        fit : str
            The name of their term.
        owner : int
            The solver.

        Returns
        -------
        dict
            The points, to be changed in place.
        """
        return self._points.setdefault((fit, owner), {})

    def forget_points(self) -> None:
        """Free all points."""
        self._points.clear()

    def forget(self, fit: str) -> None:
        """Free the caches of a fit.

        Parameters
        ----------
        fit : str
            Its name.
        """
        self._terms.pop(fit, None)
        for key in [key for key in self._points if key[0] == fit]:
            del self._points[key]

    def sample(self, share: float, seed: int) -> "Part | None":
        """A share of the rows that have pairs, without sample weights.

        Parameters
        ----------
        share : float
            The share; 1 or more for all of them.
        seed : int
            Seed of the choice.

        Returns
        -------
        Part or None
            A copy of these rows; None if there is no pair.
        """
        if self.pairs.weight <= 0.0:
            return None
        if share >= 1.0:
            pairs, rows = self.pairs.comparable()
            return Part(self.X[rows], pairs, self.features)
        pairs, positions = self.pairs.sample(max(1, int(share * self.pairs.n_rows)), seed)
        rows = positions if pairs.rows is None else np.asarray(pairs.rows)
        return Part(self.X[rows], pairs.renumbered(), self.features)
