"""RegularizedRankSVM: the RankSVM whose dual variables are regularized toward a low-rank matrix for each query."""

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from ranksvm._util import checks
from ranksvm._util.memory import check_fits
from ranksvm._util.threads import one_blas_thread
from ranksvm._util.types import Features, MatrixLike
from ranksvm.data import ComparablePairs, PairBlocks, Queries, as_design_matrix
from ranksvm.estimators.base.arguments import EvalFeatures, EvalSets, ForEachSet, MetricsLike, Names
from ranksvm.estimators.base.inputs import read_evaluation_sets
from ranksvm.estimators.base.low_rank_ranker import DataOfFit, LowRankRanker
from ranksvm.estimators.base.ranker import all_or_nothing, hyper_parameters
from ranksvm.exceptions import DataError, ModelFileError, OptionError
from ranksvm.fits.evaluation import joined_sets
from ranksvm.fits.problem import interruptible_if
from ranksvm.fits.results.dual import AlphaOfPairs, DualCoef, KeptDualCoef
from ranksvm.fits.training_set import EvalArguments, TrainingArguments
from ranksvm.losses import HuberHinge
from ranksvm.model_files.registry import storable
from ranksvm.model_files.schema import Array, Number, Schema
from ranksvm.objectives import LinearObjective
from ranksvm.objectives.low_rank.alternating import AlternatingNuclearNorm
from ranksvm.objectives.low_rank.nuclear_norm import NuclearNormObjective, required_bytes
from ranksvm.objectives.low_rank.singular_values import QueryMatrices
from ranksvm.solvers import SolverResult, Status, alternating, douglas_rachford, newton, relative_gap, tron

__all__ = ["RegularizedRankSVM"]

# Maximum number of iterations for the subproblem of a step; Newton's method needs few, because it starts near the
# solution.
INNER_ITERATIONS = 200


@storable
class RegularizedRankSVM(LowRankRanker):
    """Regularized RankSVM: dual variables of nearly low rank, by nuclear norms; exact and certified.

    Minimizes over the dual variables alpha of all pairs, ``0 <= alpha_ij <= C``, and a matrix A_q for each query q ::

        1/2 |sum of alpha_ij (x_i - x_j)|^2 - sum of alpha_ij + sum over q of (lam |alpha_q - A_q|_F^2 + gamma |A_q|_*)

    where ``alpha_q`` is the matrix of the variables of a query's pairs, with a row for each preferred document and a
    column for each other one, and ``|A|_*`` is the sum of the singular values. That is the dual of a RankSVM with the
    hinge loss in which each query has a matrix Y_q of slacks. Its largest singular value ``|Y_q|_2`` is at most gamma,
    and its squared norm is penalized: minimize, over w and all Y_q with ``|Y_q|_2 <= gamma``, ::

        1/2 |w|^2 + C * sum of max(0, 1 - (s_i - s_j) - Y_ij) + sum over q of |Y_q|_F^2 / (4 lam)

    So the slacks absorb errors that look like noise: among slacks with the same sum of squares, those with a pattern
    (some documents against some others) have a large singular value, and those without a pattern have small ones. With
    ``gamma = 0`` it is the RankSVM with the hinge loss.

    Parameters
    ----------
    C : float, default 1.0
        Largest value of a dual variable, positive: the weight of a pair.
    gamma : float, default 1.0
        Weight of the nuclear norms, at least 0; a larger weight gives lower ranks.
    lam : float, default 1.0
        Weight of the distance between dual variables and matrices, positive. Singular values of ``alpha_q`` below
        ``gamma / (2 lam)`` become 0, and those above are reduced by this amount.
    solver : {"splitting", "alternating"}, default "splitting"
        "splitting": Douglas-Rachford splitting. "alternating": Algorithm 2 of the paper, to obtain published models: it
        starts with all variables at 0, and alternates a projected gradient step on alpha with thresholding of singular
        values. It needs far more steps, and ``warm_start`` does not apply. The model is the result of the last step,
        and has a certificate as well.
    learning_rate : {"auto"} or float, default "auto"
        For "alternating": length of the gradient steps. "auto": 1 over the Lipschitz constant of the gradient, with
        which the objective never rises. The published lengths, 0.001 to 0.1, are far longer on OHSUMED and MQ2008; with
        them the objective rises and falls.
    tol : float, default 1e-4
        Stop when ``duality_gap_ <= tol * |objective_|``.
    max_iter : int, default 1000
        Largest number of steps, each of which thresholds the singular values of every query; "splitting" takes at least
        two.
    memory_limit : int, str or None, default None
        Memory the fit may use beyond the data, in bytes or as "4GB"; None: half of the free memory. A fit that may need
        more, at the highest ranks, is refused before it starts. For a query with m preferred and n other documents, a
        fit holds two numbers (16 bytes) for each of the ``m n`` entries; several copies of the factors of A_q, up to 40
        bytes for each of their ``(m + n) min(m, n)`` entries; 2.5 KB; and, while a thread decomposes the matrix, 64
        bytes per entry. With three or more levels there are more entries than pairs, many more if most documents have
        an intermediate level.
    warm_start : bool, default False
        Start from the weights and matrices of the last fit, on the same data.
    keep_on_interrupt : bool, default False
        Whether Ctrl-C during ``fit`` stops at the next evaluation and keeps the model so far, instead of raising
        KeyboardInterrupt.
    n_jobs : int or None, default None
        Number of threads; None or -1 means all processors. Results depend on it only by round-off.
    verbose : int, default 0
        1 shows every step: on stderr, or wherever `logging` is configured to send the logger "ranksvm".

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The weights w: ``sum of alpha_ij (x_i - x_j)``, with solver "splitting" up to about ``tol |objective_|^(1/2)``
        in Euclidean norm.
    objective_ : float
        Value of the first objective above; negative unless all alpha are 0.
    duality_gap_ : float
        An upper bound on ``objective_`` minus its minimum: the sum of ``objective_`` and the smallest value of the
        second objective above that a step has found. It includes a bound on round-off, as in `RankSVM`.
    converged_ : bool
        Whether the gap met ``tol``.
    status_ : str
        A sentence that says why the fit stopped, and what to try if it did not converge.
    n_iter_ : int
        Number of steps.
    history_ : dict of list
        The best values up to each step: objective, duality_gap, mean_rank (of the A_q). With "alternating", the values
        of the step itself.
    ranks_ : ndarray of int64, shape (n_queries,)
        Rank of the matrix A_q of each query, in order of appearance; 0 for a query without pairs. `low_rank_coef` gives
        the matrices.
    singular_values_, left_factors_, right_factors_ : ndarray of float64
        The singular values of the A_q, one query after another, and their left and right singular vectors,
        concatenated. A vector has an entry for each document of its query, in the order of the rows of X. In a left
        vector the entry is 0 for documents that are never preferred; in a right vector, for documents to which no
        document is preferred.
    pair_alpha_ : ndarray of float64, shape (n_pairs,), or None
        With solver "alternating", the dual variables of the pairs, query by query; `dual_coef` presents them.
    fitted_params_ : dict
        C, gamma and lam, with their values in `fit`: `dual_coef` reads these.
    n_pairs_ : int
        Number of pairs.
    n_queries_ : int
        Number of queries.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names.
    frame_type_ : str or None
        Library of the DataFrame X, such as "polars".
    qid_column_ : str or None
        Column of X that held the query ids: the one that ``qid`` named, or "qid".
    evals_result_ : dict
        The metrics of the model on each set of ``eval_set``, in LightGBM's form: ``{"valid_0": {"ndcg@10": [value]}}``.

    See Also
    --------
    FactorizedRankSVM : Dual variables of a given low rank.
    RankSVM : The model without low rank, for any number of pairs.

    Notes
    -----
    The model is from Xu, Zeng, Lan, Guo & Cheng, "Modeling the parameter interactions in ranking SVM with low-rank
    approximation" (IEEE TKDE 31, 2019), equation (15), with three corrections. The signs are those of the dual
    objective (4); they differ in (9) to (11). The sign of the coupling term of (18) is reversed. The distance is over
    whole blocks: with three or more levels, A_q has entries that are not pairs, for which alpha is 0 (footnote 3
    overlooks these entries).

    Algorithm 2 alternates between gradient steps on alpha and thresholding; ``solver="alternating"`` is this algorithm,
    with corrected signs. Its steps must be short if the matrix ``sum of (x_i - x_j) (x_i - x_j)'`` over all pairs has a
    large eigenvalue. By default Douglas-Rachford splitting solves both parts of the problem exactly: the proximal step
    in alpha is the dual of a RankSVM in w with shifted margins, solved by a few Newton steps, and the other part is one
    thresholding of singular values. With this solver, ``history_`` has the best values so far.

    Examples
    --------
    >>> from ranksvm import RegularizedRankSVM, make_ranking
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> ranker = RegularizedRankSVM(C=0.1, gamma=0.5).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.duality_gap_ <= 1e-4 * abs(ranker.objective_))
    True
    >>> bool((ranker.ranks_ <= 10).all())
    True
    """

    duality_gap_: float
    ranks_: np.ndarray
    singular_values_: np.ndarray
    left_factors_: np.ndarray
    right_factors_: np.ndarray

    _model_kind = "regularized"
    _model_params = ("C", "gamma", "lam")
    _fitted_schema: ClassVar[Schema] = {
        "duality_gap_": Number(finite=False),
        "ranks_": Array("n_queries", dtype="int64", minimum=0),
        "singular_values_": Array("n_values", minimum=0.0),
        "left_factors_": Array("n_entries"),
        "right_factors_": Array("n_entries"),
        "pair_alpha_": Array("n_alpha", minimum=0.0, nullable=True, default=None),
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        gamma: float = 1.0,
        lam: float = 1.0,
        solver: str = "splitting",
        learning_rate: str | float = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        memory_limit: int | str | None = None,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.C = C
        self.gamma = gamma
        self.lam = lam
        self.solver = solver
        self.learning_rate = learning_rate
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.warm_start = warm_start
        self.keep_on_interrupt = keep_on_interrupt
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        eval_set: EvalSets | None = None,
        eval_qid: ForEachSet | None = None,
        eval_group: ForEachSet | None = None,
        eval_names: Names | None = None,
        eval_sample_weight: ForEachSet | None = None,
        eval_metric: MetricsLike | None = None,
        eval_at: int | Sequence[int] | None = None,
        eval_X: EvalFeatures | None = None,
        eval_y: ArrayLike | tuple[ArrayLike, ...] | None = None,
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features, as in `RankSVM.fit`.
        y : array-like of shape (n_samples,)
            Relevance labels: any real numbers; only their order within a query counts.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row: ids of any dtype, in any order; or the name of the column of a DataFrame X that has them,
            which is then not a feature, here and in `predict`. None: the column "qid" of a DataFrame, as in XGBoost; if
            there is none, all rows are one query, with a `OneQueryWarning`. In this case more than 1,000 rows are
            refused, because they probably belong to several queries, whose rows must not be compared;
            ``group=[n_samples]`` says that they are one query.
        group : array-like of int, shape (n_queries,), optional
            Instead of ``qid``: sizes of consecutive queries, as in LightGBM.
        eval_set : list or tuple of tuples (X, y), or one such tuple, optional
            Data to evaluate the model on. The values are stored in ``evals_result_`` and do not affect the fit.
        eval_X, eval_y : array-like, or tuples of array-likes, optional
            Instead of ``eval_set``: the features and the labels of one set, or of several, as in LightGBM 4.7.
        eval_qid, eval_group : list of array-like, or one for a single set, optional
            Queries of each set, as ``qid`` or ``group``.
        eval_names, eval_sample_weight, eval_metric, eval_at : optional
            As in `RankSVM.fit`.

        Returns
        -------
        RegularizedRankSVM
            The fitted estimator.

        Raises
        ------
        NoComparablePairsError
            When no query has two documents with different labels.
        DataError
            When X or y are not finite numbers, or lengths differ.
        OptionError
            When a hyper-parameter has an invalid value, or the fit needs more memory than allowed.

        Warns
        -----
        ConvergenceWarning
            When the certificate does not meet ``tol``.
        OneQueryWarning, ScaleWarning, LikelyMistakeWarning
            As in `RankSVM.fit`.
        """
        eval_set = joined_sets(eval_set, eval_X, eval_y)
        checks.check_parameters(
            self._model_kind, hyper_parameters(self, self._model_kind), memory_limit=checks.memory_limit
        )
        if self.learning_rate != "auto" and self.solver != "alternating":
            raise OptionError("learning_rate is the step of solver='alternating': choose that one, or leave 'auto'.")
        with all_or_nothing(self, self.verbose):
            data = self._training_set(TrainingArguments(X, y, qid=qid, group=group))
            sets = read_evaluation_sets(
                self,
                EvalArguments(eval_set, eval_qid, eval_group, eval_names, eval_sample_weight, eval_metric, eval_at),
                data.X,
                data.n_queries,
            )
            assert isinstance(data.pairs, ComparablePairs)
            blocks = PairBlocks(data.pairs)
            matrices = f"the matrices of {data.pairs.n_pairs} pairs ({blocks.n_entries} entries)"
            check_fits(
                required_bytes(blocks, data.n_threads),
                self.memory_limit,
                f"{matrices} may take, at the highest rank",
                "Give a larger memory_limit, fewer documents per query, or use RankSVM or FactorizedRankSVM.",
            )
            C, gamma, lam = float(self.C), float(self.gamma), float(self.lam)
            problem = (as_design_matrix(data.X), data.pairs, blocks, C, gamma, lam)
            with interruptible_if(self.keep_on_interrupt) as interrupted, one_blas_thread():
                options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "interrupted": interrupted}
                if self.solver == "alternating":
                    length = None if isinstance(self.learning_rate, str) else float(self.learning_rate)
                    published = AlternatingNuclearNorm(*problem, length, data.n_threads)
                    result, pair_alpha = alternating(published, **options), published.pair_alpha()
                else:
                    objective = NuclearNormObjective(*problem, _minimize, data.n_threads)
                    self._begin(objective, interrupted)
                    result, pair_alpha = douglas_rachford(objective, **options), None
            found = QueryMatrices.from_blocks(blocks, data.pairs.pointers, result.point.matrices)
            if result.status in (Status.MAX_ITERATIONS, Status.PRECISION):
                gap = f"relative duality gap {relative_gap(result.gap, result.point.value):.1e}"
                warnings.warn(f"{result.status.value} ({gap})", ConvergenceWarning, stacklevel=2)
            self.coef_ = np.array(result.point.w)
            self.objective_, self.duality_gap_ = result.point.value, result.gap
            self.converged_ = result.status is Status.CONVERGED
            self.status_ = result.status.value
            self.n_iter_ = result.n_iter
            self.history_ = result.history.as_dict()
            self.n_pairs_, self.n_queries_ = data.pairs.n_pairs, data.n_queries
            self.ranks_, self.singular_values_ = found.ranks, found.values
            self.left_factors_, self.right_factors_ = found.left, found.right
            self.pair_alpha_ = pair_alpha
            self.fitted_params_ = self._params_now()
            self.evals_result_ = sets.evals_result([sets.evaluate(self._scores)])
        return self

    def _begin(self, objective: NuclearNormObjective, interrupted: threading.Event | None) -> None:
        """Set the starting point of the objective."""
        if not self.warm_start or not hasattr(self, "coef_"):
            objective.begin(interrupted=interrupted)
            return
        if self.coef_.shape != (objective.n_features,):
            raise DataError(f"warm_start: the last fit had {len(self.coef_)} features, X has {objective.n_features}.")
        matrices = self._matrices(objective.pairs.pointers)
        if matrices is None:
            raise DataError(
                "warm_start: the last fit had other queries, or queries of other sizes: give the same data, or set "
                "warm_start=False."
            )
        objective.begin(self.coef_, matrices.to_blocks(objective.blocks), interrupted)

    def dual_coef(
        self, X: MatrixLike, y: ArrayLike, qid: ArrayLike | None = None, *, group: ArrayLike | None = None
    ) -> DualCoef:
        """The learned dual variables: see `FactorizedRankSVM.dual_coef`.

        With solver "splitting", the sum of ``alpha_ij (x_i - x_j)`` equals ``coef_`` only to the accuracy of the fit,
        so choose a small ``tol`` if you need more digits. The variables are computed again from the margins and A_q,
        and the round-off of the margins is divided by ``2 lam``. If the quotient is not small, as with unscaled
        features of 1e8, they have fewer correct digits than the variables of ``fit``, to which ``objective_`` belongs.

        Parameters
        ----------
        X, y, qid, group : array-like
            The data of ``fit``.

        Returns
        -------
        DualCoef
            A sequence with a `DualBlock` for each query, in order of appearance.
        """
        if getattr(self, "pair_alpha_", None) is None:
            return super().dual_coef(X, y, qid, group=group)
        _, queries, labels, pairs = self._data_of_fit(X, y, qid, group)
        assert self.pair_alpha_ is not None
        return KeptDualCoef(pairs, queries, labels, self.pair_alpha_)

    def _data_of_fit(self, X: MatrixLike, y: ArrayLike, qid: ArrayLike | None, group: ArrayLike | None) -> DataOfFit:
        features, queries, labels, pairs = super()._data_of_fit(X, y, qid, group)
        matrices = self._matrices(queries.pointers)
        if matrices is None:
            raise DataError("The last fit had other queries, or queries of other sizes: give the training data.")
        sorted_labels = queries.to_sorted(labels)
        for query in range(queries.n_queries):
            own = sorted_labels[queries.pointers[query] : queries.pointers[query + 1]]
            _, left, right = matrices.factors(query)
            # a query may have no rows
            if left[:, own == own.min(initial=np.inf)].any() or right[:, own == own.max(initial=-np.inf)].any():
                raise DataError(
                    f"Query {queries.ids[query]} has its labels in other rows than in the last fit: give the data of "
                    "fit, rows in the same order."
                )
        return features, queries, labels, pairs

    def _alpha(self, X: Features, queries: Queries) -> AlphaOfPairs:
        entries, scores = self._entries(queries), self._scores(X)
        C, lam = self.fitted_params_["C"], self.fitted_params_["lam"]

        def alpha(query: int, preferred: np.ndarray, other: np.ndarray, _: np.ndarray) -> np.ndarray:
            margins = scores[preferred] - scores[other] - 2.0 * lam * entries(query, preferred, other)
            own: np.ndarray = -C * HuberHinge.derivative(margins, 2.0 * lam * C)
            return own

        return alpha

    def _entries(self, queries: Queries) -> Callable[[int, np.ndarray, np.ndarray], np.ndarray]:
        matrices = self._matrices(queries.pointers)
        assert matrices is not None  # `_data_of_fit` has checked it

        def entries(query: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
            rows = queries.rows(query)
            return matrices.entries(query, np.searchsorted(rows, i), np.searchsorted(rows, j))

        return entries

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "ranks_"):
            return
        n_values = len(self.singular_values_)
        if self.ranks_.max(initial=0) > n_values or int(self.ranks_.sum()) != n_values:
            raise ModelFileError(f"ranks_ do not add up to the {n_values} singular values.")
        if self.pair_alpha_ is not None and len(self.pair_alpha_) != self.n_pairs_:
            raise ModelFileError(f"pair_alpha_ has {len(self.pair_alpha_)} entries for {self.n_pairs_} pairs.")

    def _matrices(self, pointers: np.ndarray) -> QueryMatrices | None:
        """The matrices A_q for queries of the sizes that ``pointers`` give; None if the last fit had other sizes."""
        if len(self.ranks_) == len(pointers) - 1:
            factors = self.singular_values_, self.left_factors_, self.right_factors_
            matrices = QueryMatrices(pointers, self.ranks_, *factors)
            if matrices.fits():
                return matrices
        return None


def _minimize(
    objective: LinearObjective, w: np.ndarray, tol: float, interrupted: threading.Event | None
) -> SolverResult:
    """Solve the subproblem of a step, whose variables are w, starting from the given w."""
    options: dict[str, Any] = {"tol": tol, "max_iter": INNER_ITERATIONS, "interrupted": interrupted, "label": None}
    if objective.hessian_fraction > 0.0:
        return newton(objective, w, warm_start=True, **options)
    return tron(objective, w, **options)
