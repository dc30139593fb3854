"""DaskRankSVM: RankSVM on a Dask cluster."""

import threading
from typing import ClassVar

import numpy as np

from ranksvm._util.types import MemoryLimit, PathLike
from ranksvm.dask.checkpoint import CheckpointedTerm, read_checkpoint
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.evaluation import HeldOut
from ranksvm.dask.inputs import InputParts
from ranksvm.dask.preparation import Prepared
from ranksvm.dask.single import DaskSingleRanker
from ranksvm.estimators.base.arguments import Monotone
from ranksvm.estimators.rank_svm import RankSVM
from ranksvm.fits.options import LinearOptions
from ranksvm.fits.partitioned import PartitionedProblem
from ranksvm.fits.problem import interruptible_if
from ranksvm.losses.margin_function import MarginFunction
from ranksvm.metrics import Metric
from ranksvm.solvers import SolverResult

__all__ = ["DaskRankSVM"]


class DaskRankSVM(DaskSingleRanker):
    """`RankSVM` for data on a Dask cluster, similar to ``xgboost.dask.DaskXGBRanker``.

    The objective, the solvers and the certificate (the duality gap, which bounds the error) are those of `RankSVM`. In
    each round, a part of the data sends only sums, which have ``n_features`` numbers; a sample of the rows is fetched
    once. A fit is reproducible bit by bit if the data have the same parts, even if a worker is killed, leaves, restarts
    or is added.

    Parameters
    ----------
    C, loss, huber_width, pair_selection, pair_weighting, monotone, stopping, tol, max_iter,
    keep_on_interrupt : optional
        As in `RankSVM`.
    solver : {"auto", "newton", "tron", "dual"}, default "auto"
        As in `RankSVM`. "dual" needs all rows in one process: this process gathers them, within ``memory_limit``, and
        logs this. "auto" leaves them on the workers.
    warm_start : bool, default False
        Start from the ``coef_`` of the last fit.
    device : str, default "cpu"
        Where workers compute: "cpu"; "cuda" or "cuda:1", a GPU of each worker (``pip install 'ranksvm[cuda]'`` on it);
        or "auto", which chooses for each part as in `RankSVM`, and needs `ranksvm.calibrate_device` on the workers.
        For several GPUs start a worker for each, with its own ``CUDA_VISIBLE_DEVICES``, instead of giving a list. If
        only some workers have the GPU, the others use their CPU, after a warning; if none has it, `fit` raises
        DeviceError. Work on the sample stays on the CPU of this process. GPUs of workers have never been tested.
    memory_limit : int, str or None, default None
        Memory that rows gathered for ``solver="dual"`` may take in this process: bytes, or text such as "4GB"; None:
        half of the free memory. Not allowed with other solvers: workers have their own limits, beyond which Dask
        writes parts to disk.
    n_jobs : int or None, default None
        Number of threads in this process, for work on the sample. Workers use the threads that they have.
    verbose : int, default 0
        As in `RankSVM`.
    n_partitions : int or None, default None
        The parts of the data are merged into at most this many; None: the number of threads of the workers when the fit
        begins, because each part is a task in every round. Give a number to get the same bits on clusters of different
        sizes.
    checkpoint : path-like or None, default None
        A file that this process writes during a fit, with the best weights so far. If the file exists, a fit begins
        with its weights.
    timeout : float, default 60.0
        Seconds after which a fit ends with `ClusterError` if the scheduler does not answer, or there is no worker.

    Attributes
    ----------
    coef_, monotone_, objective_, duality_gap_, converged_, status_, n_iter_, solver_, width_, pair_alpha_, history_,
    n_pairs_, n_queries_, n_features_in_, feature_names_in_, evals_result_, fitted_params_, qid_column_, censored_
        As in `RankSVM`.
    n_rounds_ : int
        Number of rounds, 0 for solver "dual". A round is one task for every part, whose results are added up.

    See Also
    --------
    ranksvm.RankSVM : The same model in one process; `to_local` converts to it.
    DaskRankSVMCV : Chooses C.

    Notes
    -----
    Rows of one query may be in several parts: they move to the part that has most of them. If more than a quarter of
    all rows would move, all rows are shuffled by query instead.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from ranksvm import make_ranking
    >>> from ranksvm.dask import DaskRankSVM
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> X, y, qid = (da.from_array(values, chunks=(250, *values.shape[1:])) for values in (data.X, data.y, data.qid))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     ranker = DaskRankSVM(C=0.01).fit(X, y, qid=qid)
    ...     scores = ranker.predict(X).compute()
    >>> scores.shape
    (1000,)
    """

    _local: ClassVar[type[RankSVM]] = RankSVM

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str | MarginFunction = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        monotone: Monotone | None = None,
        solver: str = "auto",
        stopping: str = "gap",
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        device: str = "cpu",
        memory_limit: MemoryLimit = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        n_partitions: int | None = None,
        checkpoint: PathLike | None = None,
        timeout: float = 60.0,
    ):
        self.C = C
        self.loss = loss
        self.huber_width = huber_width
        self.pair_selection = pair_selection
        self.pair_weighting = pair_weighting
        self.monotone = monotone
        self.solver = solver
        self.stopping = stopping
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.keep_on_interrupt = keep_on_interrupt
        self.device = device
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.n_partitions = n_partitions
        self.checkpoint = checkpoint
        self.timeout = timeout

    def _fitted_to_parts(
        self,
        cluster: Cluster,
        inputs: InputParts,
        prepared: Prepared,
        options: LinearOptions,
        held_out: list[HeldOut],
        metrics: list[Metric],
    ) -> tuple[RankSVM, int]:
        term = self._term(cluster, inputs, prepared, self.checkpoint)
        n_queries = prepared.n_queries
        prepared.rows.clear()  # the parts have the rows now
        try:
            problem = self._problem(term, options)
            with interruptible_if(self.keep_on_interrupt) as interrupted:
                result = self._solve(problem, interrupted)
        finally:
            term.close()
        model = self._new_local()
        model.coef_, model.monotone_ = np.array(result.w), problem.signs
        model._assign_outcome(problem.outcome(result))
        model.n_queries_ = n_queries
        model.fitted_params_ = model._params_now()
        return model, term.n_reductions

    def _solve(self, problem: PartitionedProblem, interrupted: threading.Event | None) -> SolverResult:
        """The solution, starting from the checkpoint of an earlier fit if there is one."""
        term = problem.objective.term
        if isinstance(term, CheckpointedTerm):
            assert self.checkpoint is not None
            term.checkpoint, term.C = self.checkpoint, self.C
            at = read_checkpoint(self.checkpoint, term.n_variables)
            if at is not None:
                problem.objective.reweight(self.C)
                problem.objective.width = problem.loss.warm_width if at.width is None else at.width
                point = problem.objective.evaluate(at.w)
                return problem.solve(self.C, interrupted=interrupted, point=point)
        start = problem.start_from(self.coef_, None) if self.warm_start and hasattr(self, "coef_") else None
        return problem.solve(self.C, start, interrupted)
