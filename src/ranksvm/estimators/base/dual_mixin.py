"""Base of the estimators fitted to pairs: the attributes that describe a fit, and the dual variables."""

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util import checks
from ranksvm._util.threads import effective_n_jobs
from ranksvm.data import Preferences, Queries, frames, validation
from ranksvm.estimators.base.arguments import TrainingFeatures, Validated
from ranksvm.estimators.base.ranker import Ranker, check_is_fitted
from ranksvm.exceptions import DataError, ModelFileError, OptionError
from ranksvm.fits.options import loss_of
from ranksvm.fits.results.dual import DualCoef, KeptDualCoef
from ranksvm.fits.results.records import Outcome
from ranksvm.fits.training_set import TrainingArguments, training_pairs
from ranksvm.losses import Pairs
from ranksvm.model_files.schema import Array, Flag, Number, PlainDict, Schema, Text, Trace

__all__ = ["DualMixin"]


class FittedPairs(NamedTuple):
    """Validated data that a model was fitted to."""

    X: Validated
    queries: Queries
    labels: np.ndarray | None
    pairs: Pairs


class DualMixin(Ranker):
    """Base of the estimators fitted to pairs: sets the attributes that describe a fit, and computes dual variables."""

    _fitted_schema: ClassVar[Schema] = {
        "objective_": Number(),
        "duality_gap_": Number(finite=False),
        "converged_": Flag(),
        "status_": Text(),
        "n_iter_": Number(integer=True, minimum=0),
        "solver_": Text(),
        "history_": Trace(),
        "n_pairs_": Number(integer=True, minimum=0, size="n_pairs"),
        "n_queries_": Number(integer=True, minimum=0),
        "censored_": Flag(default=False),
        "width_": Number(minimum=0.0, nullable=True, default=None),
        "pair_alpha_": Array("n_pairs", nullable=True, default=None),
        "fitted_params_": PlainDict(required=False),
        "evals_result_": Trace(required=False),
    }

    objective_: float
    duality_gap_: float
    converged_: bool
    status_: str
    n_iter_: int
    solver_: str
    history_: dict[str, list[float]]
    n_pairs_: int
    censored_: bool
    width_: float | None
    pair_alpha_: np.ndarray | None
    evals_result_: dict[str, dict[str, list[float]]]
    device_: str | list[str]

    # the device of a fit is no property of the model: neither pickles nor files store it
    _not_stored: ClassVar[tuple[str, ...]] = ("device_",)

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self._not_stored}

    def dual_coef(
        self,
        X: TrainingFeatures,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
        event: ArrayLike | None = None,
    ) -> DualCoef:
        """The optimal dual variables: one alpha for each pair, query by query, computed on access.

        With the hinges ``h_ij = max(0, 1 - (s_i - s_j))`` and the weights ``a_ij`` of the pairs they are ``alpha_ij = 2
        C a_ij h_ij`` for the squared hinge, and ``alpha_ij = C a_ij clip(h_ij / width_, 0, 1)`` for the hinge (with the
        final width of its smoothing) and the Huber loss. For the logistic loss they are ``alpha_ij = C a_ij / (1 +
        exp(m_ij))`` with the margins ``m_ij = s_i - s_j``. They are feasible for the dual, and their dual objective is
        ``objective_ - duality_gap_``. ``sum of alpha_ij (x_i - x_j)`` is ``coef_`` minus the gradient of the objective,
        whose norm is ``sqrt(2 * duality_gap_)`` for losses without a width: fit with a small ``tol`` if you need more
        digits. With ``monotone``, the sum is first projected onto the weights that have the required signs, and the
        same bound holds for the distance of ``coef_`` from this projection. If the solver was "dual", the variables are
        its final ones, and the sum (or its projection) is ``coef_`` itself. With a kernel the same holds in its RKHS,
        with ``k(x_i, .)`` in place of ``x_i``, if ``kernel_dtype_`` is "float64". In "float32", the rounding of the
        scores, times C, is added to alpha, and the distance may be several times the bound if C is large.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or Preferences
            The features that the model was fitted to. The rows of Preferences are all chosen answers, then all
            rejected ones.
        y : array-like of shape (n_samples,), optional
            Their labels; omitted if ``pairs`` are given.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.
        group, sample_weight, query_weight, propensity, pairs, pair_weight, event : array-like, optional
            As in ``fit``, with the same values.

        Returns
        -------
        DualCoef
            A sequence with a `DualBlock` for each query, in order of appearance. A block takes 16 bytes for each of its
            entries (alpha and weight) and is not stored.

        Raises
        ------
        NoComparablePairsError
            When no query has two documents with different labels.
        DataError
            When the data have other features or another number of pairs than the data of the fit, or lengths differ.

        Examples
        --------
        >>> import numpy as np
        >>> from ranksvm import RankSVM, make_ranking
        >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
        >>> ranker = RankSVM(C=0.01, tol=1e-10).fit(data.X, data.y, qid=data.qid)
        >>> dual = ranker.dual_coef(data.X, data.y, data.qid)
        >>> np.linalg.svd(dual[0].alpha, compute_uv=False).shape == (min(dual[0].shape),)
        True
        >>> bool(np.allclose(data.X.T @ dual.per_document(), ranker.coef_, atol=1e-4))
        True
        """
        if isinstance(X, Preferences):
            qid, pairs, pair_weight = X.arguments(y=y, qid=qid, group=group, pairs=pairs, pair_weight=pair_weight)
            X = frames.stacked(*X.blocks)
        fitted_to = self._fitted_pairs(
            TrainingArguments(
                X,
                y,
                qid=qid,
                group=group,
                pairs=pairs,
                pair_weight=pair_weight,
                sample_weight=sample_weight,
                query_weight=query_weight,
                propensity=propensity,
                event=event,
            )
        )
        features, queries, labels, found = fitted_to
        if found.n_pairs != self.n_pairs_:
            raise DataError(
                f"There are {found.n_pairs:,} pairs, but the model was fitted to {self.n_pairs_:,}: give the training "
                "data of the model, and the pairs or weights of its fit."
            )
        fitted = self.fitted_params_
        kept = getattr(self, "pair_alpha_", None)
        if kept is not None:
            return KeptDualCoef(found, queries, labels, kept)
        scores = self._scores(features)
        # for the hinge, the loss at the final width of its smoothing
        loss, C, width = loss_of(fitted["loss"], fitted["huber_width"]), fitted["C"], getattr(self, "width_", None)

        def alpha(query: int, preferred: np.ndarray, other: np.ndarray, weights: np.ndarray) -> np.ndarray:
            own: np.ndarray = weights * loss.alpha(scores[preferred] - scores[other], C, width)
            return own

        return DualCoef(found, queries, labels, alpha)

    def _fitted_pairs(self, training: TrainingArguments) -> "FittedPairs":
        """The pairs that ``fit`` learned from, for the same arguments."""
        check_is_fitted(self)
        selection, weighting = self.fitted_params_["pair_selection"], self.fitted_params_["pair_weighting"]
        training.check_pairs(selection, weighting)
        rows, ids = self._split_qid(training.X, training.qid)
        X = self._features(rows)
        queries = Queries.of(ids, training.group, X.shape[0])
        labels = None if training.pairs is not None else validation.checked_labels(training.y, X.shape[0])
        training = replace(training, y=labels)
        found = training_pairs(queries, training, selection, weighting, effective_n_jobs(self.n_jobs))
        return FittedPairs(X, queries, labels, found)

    def _assign_outcome(self, outcome: Outcome) -> None:
        """Set the attributes that describe how a fit ended; a calibration of an earlier fit is removed."""
        self.__dict__.pop("calibration_slope_", None)
        self.objective_ = outcome.objective
        self.duality_gap_ = outcome.duality_gap
        self.converged_ = outcome.converged
        self.status_ = outcome.status
        self.n_iter_ = outcome.n_iter
        self.solver_ = outcome.solver
        self.history_ = outcome.history
        self.n_pairs_ = outcome.n_pairs
        self.n_queries_ = outcome.n_queries
        self.width_ = outcome.width
        self.device_ = outcome.device
        self.pair_alpha_ = outcome.pair_alpha

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "fitted_params_"):
            return
        fitted = self.fitted_params_
        try:
            loss_of(fitted["loss"], fitted["huber_width"])
            checks.check_parameters(
                "linear", {name: fitted[name] for name in ("C", "pair_selection", "pair_weighting")}
            )
        except OptionError as error:
            raise ModelFileError(f"fitted_params_: {error}") from error
