"""Computes sums over the parts of the data on a Dask cluster, recomputes lost parts, and checks workers' devices."""

import contextlib
import logging
import pickle
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import cloudpickle
from distributed import Future
from distributed.scheduler import KilledWorker

from ranksvm._util.threads import one_blas_thread
from ranksvm.dask.cluster import Cluster, LostError
from ranksvm.device.names import device_names, open_device
from ranksvm.exceptions import ClusterError, DeviceError, MissingDependencyError, OptionError
from ranksvm.fits.device_choice import devices_for, reason_against_gpu
from ranksvm.losses import LossSpec
from ranksvm.terms.parts.answers import add, answer, part_info
from ranksvm.terms.parts.backend import Job, PartInfo
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.tree_sum import tree_sum

__all__ = ["ATTEMPTS", "DaskBackend", "check_devices", "repeated_if_lost"]

logger = logging.getLogger("ranksvm.dask")

T = TypeVar("T")

# If the arguments of a round (one task for every part) take more bytes than this, they are sent once to every worker,
# not with every task.
LARGE_ARGUMENTS = 64 << 10
# Results of up to this many parts are added up in this process; results of more parts are first added up on the
# workers. For 136 features a result takes only 1 kB, while every additional task on a worker costs time. The number was
# not tuned.
GATHERED = 64
# Maximum number of attempts for a round, an evaluation or a choice of C, if workers end or futures are cancelled.
ATTEMPTS = 5


class DaskBackend:
    """Parts of the data on the workers of a cluster; implements the protocol `Backend`, which describes the methods.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    make_parts : callable, optional
        Makes the futures of the parts again, if the cluster has lost them and the data that they came from.
    device : str
        The device on which workers compute; a worker that lacks it uses its CPU.

    Attributes
    ----------
    parts : list of Future
        The parts.
    n_rounds, n_repeated : int
        Number of rounds so far, and number of repetitions of a whole round.
    """

    def __init__(self, cluster: Cluster, make_parts: Callable[[], list[Future]] | None = None, device: str = "cpu"):
        self.cluster = cluster
        self.make_parts = make_parts
        self.device = device
        self.n_rounds = self.n_repeated = 0
        self.parts: list[Future] = []
        self._info: list[PartInfo] | None = None

    def put(self, parts: Sequence[Future]) -> None:
        """Keep the futures of the parts for later calls."""
        self.parts, self._info = list(parts), None

    def round(self, jobs: Sequence[Job]) -> list[list[Any]]:
        """The results of ``jobs``, added up over all parts."""
        self.n_rounds += 1
        return self._repeated(lambda: self._sum(cloudpickle.dumps(list(jobs))))

    def sample(self, n_rows: int, seed: int) -> list[Part]:
        """A sample of about ``n_rows`` rows, which takes the same share of the rows from every part."""
        share = n_rows / max(1, sum(part.n_rows for part in self.info()))
        samples = self._repeated(lambda: self._asked(_sample, share, seed))
        return [sample for sample in samples if sample is not None]

    def info(self) -> list[PartInfo]:
        """The sizes of the parts."""
        if self._info is None:
            self._info = self._repeated(lambda: self._asked(part_info))
        return self._info

    def close(self, fit: str | None = None) -> None:
        """Free what the parts keep for one fit; without ``fit``, free the parts."""
        if fit is None:
            self.parts = []
        else:
            # nobody waits for the result: parts forget old fits anyway, and the cluster may be gone. The futures are
            # stored, because Dask cancels a task that no client refers to.
            with contextlib.suppress(Exception):
                self._forgetting = self.cluster.mapped(_forget, self.parts, fit, look=False)

    # -- private methods ---------------------------------------------------------------------------------------------

    def _repeated(self, ask: Callable[[], T]) -> T:
        """The result of ``ask``, which is called again if its futures are lost."""
        make_parts: Callable[[], list[Future]] | None = None
        for attempt in range(ATTEMPTS):
            try:
                if make_parts is not None:
                    self.parts, make_parts = make_parts(), None
                return ask()
            except LostError as lost:
                if self.make_parts is None:
                    raise
                logger.warning("the cluster has lost the data of this fit, which are computed again: %s", lost)
                make_parts = self.make_parts
            except KilledWorker as killed:
                logger.warning("several workers ended during one round, which is repeated: %s", killed)
                failed = [part for part in self.parts if part.status == "error"]
                if failed:
                    self.cluster.client.retry(failed)
                if attempt + 1 == ATTEMPTS:
                    raise ClusterError(
                        f"a round of this fit has ended workers {ATTEMPTS} times: does a part fit into the memory of "
                        f"one? More partitions make smaller parts. ({killed})"
                    ) from killed
            self.n_repeated += 1
        raise ClusterError(f"the cluster has lost the data of this fit {ATTEMPTS} times in one round.")

    def _asked(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return self.cluster.results(self.cluster.mapped(function, self.parts, *arguments))

    def _sum(self, jobs: bytes) -> Any:
        client, n = self.cluster.client, len(self.parts)
        sent: bytes | Future = jobs
        if len(jobs) > LARGE_ARGUMENTS:
            sent = client.scatter(jobs, broadcast=True, hash=False)
        found = self.cluster.mapped(_answer, self.parts, sent, self.device, key="ranksvm-round")
        if n <= GATHERED:
            return tree_sum(self.cluster.results(found), add)
        groups = _groups(0, n, GATHERED)
        sums = [client.submit(_add_up, found[start:stop], pure=False) for start, stop in groups]
        return _joined(0, n, dict(zip(groups, self.cluster.results(sums), strict=True)))


def _answer(part: Part, jobs: bytes, device: str) -> list[list[Any]]:
    with one_blas_thread():
        asked = pickle.loads(jobs)
        name = _device_of_part(part, device, asked[0].loss)
        if name == "cpu":
            return answer(part, asked)
        with _one_at_a_time(name):
            return answer(part, asked, name)


@cache
def _one_at_a_time(device: str) -> Lock:
    """The lock of a device: the threads of a worker take turns on it."""
    return Lock()


def _sample(part: Part, share: float, seed: int) -> Part | None:
    return part.sample(share, seed)


def _forget(part: Part, fit: str) -> None:
    with part.lock:
        part.forget(fit)


def _add_up(found: list[Any]) -> Any:
    return tree_sum(found, add)


def _groups(start: int, stop: int, max_parts: int) -> list[tuple[int, int]]:
    """Ranges of parts, which are the subtrees of `tree_sum` with at most ``max_parts`` leaves (parts)."""
    if stop - start <= max_parts:
        return [(start, stop)]
    middle = start + (stop - start + 1) // 2
    return _groups(start, middle, max_parts) + _groups(middle, stop, max_parts)


def _joined(start: int, stop: int, found: dict[tuple[int, int], Any]) -> Any:
    """Add up the sums of the subtrees, ``found``, in the order of `tree_sum`."""
    if (start, stop) in found:
        return found[start, stop]
    middle = start + (stop - start + 1) // 2
    return add(_joined(start, middle, found), _joined(middle, stop, found))


def repeated_if_lost(step: Callable[[], T], what: str, attempts: int = ATTEMPTS) -> T:
    """The result of a step of a fit, which begins again if the cluster has lost its data.

    Parameters
    ----------
    step : callable
        Computes the result.
    what : str
        What the data are for, in messages.
    attempts : int
        Largest number of calls.

    Returns
    -------
    object
        The result.

    Raises
    ------
    ClusterError
        When the data were lost in every call.
    """
    try:
        return step()
    except LostError as lost:
        if attempts == 1:
            raise ClusterError(
                f"the cluster has lost the data of {what}: fit again. If you persisted or scattered the data, do that "
                f"again first. ({lost})"
            ) from lost
        logger.warning("the cluster has lost the data of %s, which begins again: %s", what, lost)
    return repeated_if_lost(step, what, attempts - 1)


def check_devices(cluster: Cluster, device: str, loss: LossSpec) -> None:
    """Refuse a device that no worker has; warn if only some workers have it.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    device : str
        What the user gave; "cpu" and "auto" are always possible.
    loss : LossSpec
        The loss.

    Raises
    ------
    OptionError
        When the loss can only be computed on a CPU.
    DeviceError
        When no worker has the device; the message gives the reason of one worker.

    Warns
    -----
    UserWarning
        When some workers lack the device, and so use their CPU.
    """
    if not device_names(device):
        return
    if complaint := reason_against_gpu("auto", loss):
        raise OptionError(f"device={device!r} {complaint}: use device='cpu'.")
    found = cluster.run_on_workers(_complaint_of_worker, device)
    lacking = {worker: str(reason) for worker, reason in found.items() if reason is not None}
    if lacking and len(lacking) == len(found):
        worker, reason = next(iter(lacking.items()))
        raise DeviceError(f"no worker has the device {device!r}; of {worker}: {reason}")
    if lacking:
        warnings.warn(
            f"{len(lacking)} of {len(found)} workers do not have the device {device!r} ({', '.join(lacking)}): they "
            "compute on their CPU, so that the last digits of a fit depend on which worker has which part.",
            UserWarning,
            stacklevel=2,
        )


def _complaint_of_worker(device: str) -> str | None:
    """Reason why the worker that runs this cannot open a device; None if it can."""
    try:
        for name in device_names(device):
            open_device(name)
    except (DeviceError, MissingDependencyError) as error:
        return str(error)
    return None


def _device_of_part(part: Part, device: str, loss: LossSpec) -> str:
    """The device, by its full name, on which this worker computes a part; "cpu" if it has no other."""
    if device == "cpu" or part.pairs.weight <= 0.0:
        return "cpu"
    if device == "auto":
        from ranksvm.fits.work import linear_work  # here, because few fits need it

        names = devices_for(device, "auto", loss, 1, lambda: linear_work(loss, part.pairs, part.design))
        return names[0] if names else "cpu"
    return device_names(device)[0] if _has(device) else "cpu"


@cache
def _has(device: str) -> bool:
    complaint = _complaint_of_worker(device)
    if complaint is not None:
        logger.warning("parts of this worker are computed on its CPU: %s", complaint)
    return complaint is None
