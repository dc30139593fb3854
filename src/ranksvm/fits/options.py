"""The hyper-parameters of a fit, validated once and before any work."""

from dataclasses import dataclass
from typing import Any, Self

from ranksvm._util import checks
from ranksvm._util.memory import memory_complaint
from ranksvm._util.threads import effective_n_jobs
from ranksvm.device.names import device_complaint
from ranksvm.exceptions import OptionError
from ranksvm.fits.signs import check_monotone
from ranksvm.losses import LOSSES, LossSpec
from ranksvm.losses.margin_function import complaint_about

__all__ = [
    "LINEAR_SOLVERS",
    "PAIR_SELECTIONS",
    "PAIR_WEIGHTINGS",
    "SOLVERS",
    "STOPPING",
    "FitOptions",
    "LinearOptions",
    "loss_of",
    "threads_for",
]

SOLVERS = ("auto", "newton", "tron")
LINEAR_SOLVERS = (*SOLVERS, "dual")
STOPPING = ("gap", "gradient")
PAIR_SELECTIONS = ("all", "adjacent")
PAIR_WEIGHTINGS = ("uniform", "per_query", "label_gap", "gain_gap")


@dataclass(frozen=True)
class FitOptions:
    """The hyper-parameters that every estimator fitted to pairs has; C is an argument of the problem's ``solve``.

    Parameters
    ----------
    loss : LossSpec
        The loss.
    pair_selection, pair_weighting : str
        Which pairs labels imply, and their weights.
    solver : str
        The solver, or "auto".
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Maximum number of solver iterations.
    device : str or list of str
        "cpu", the name of a GPU or of several, or "auto".
    memory_limit : int, str or None
        The memory limit of the fit.
    n_threads : int
        Number of threads.
    """

    loss: LossSpec
    pair_selection: str
    pair_weighting: str
    solver: str
    tol: float
    max_iter: int
    device: Any
    memory_limit: Any
    n_threads: int

    @classmethod
    def validated(
        cls,
        *,
        loss: Any,
        huber_width: Any,
        pair_selection: Any,
        pair_weighting: Any,
        solver: Any,
        tol: Any,
        max_iter: Any,
        device: Any,
        memory_limit: Any,
        n_jobs: Any,
        solvers: tuple[str, ...] = SOLVERS,
        **others: Any,
    ) -> Self:
        """The options for the hyper-parameters of an estimator.

        Parameters
        ----------
        loss, huber_width, pair_selection, pair_weighting, solver, tol, max_iter, device, memory_limit, n_jobs
            The hyper-parameters, as the user gave them.
        solvers : tuple of str
            The allowed solvers.
        **others : object
            Fields of the subclass, valid.

        Returns
        -------
        FitOptions
            The options.

        Raises
        ------
        OptionError
            When a hyper-parameter is invalid.
        """
        checks.check(
            loss=_loss_error(loss),
            huber_width=checks.positive(huber_width),
            pair_selection=checks.one_of(pair_selection, PAIR_SELECTIONS),
            pair_weighting=checks.one_of(pair_weighting, PAIR_WEIGHTINGS),
            solver=checks.one_of(solver, solvers),
            tol=checks.positive(tol),
            max_iter=checks.count(max_iter),
            device=device_complaint(device),
            memory_limit=memory_complaint(memory_limit),
        )
        return cls(
            loss=loss_of(loss, huber_width),
            pair_selection=pair_selection,
            pair_weighting=pair_weighting,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            device=device,
            memory_limit=memory_limit,
            n_threads=effective_n_jobs(n_jobs),
            **others,
        )


@dataclass(frozen=True)
class LinearOptions(FitOptions):
    """The hyper-parameters of a linear model.

    Parameters
    ----------
    monotone : None, str, array-like or dict
        Signs that the weights must have.
    stopping : {"gap", "gradient"}
        Stopping rule.
    """

    monotone: Any = None
    stopping: str = "gap"

    def __post_init__(self) -> None:
        checks.check(stopping=checks.one_of(self.stopping, STOPPING))
        if self.stopping == "gradient" and self.monotone is not None:
            raise OptionError("stopping='gradient' is the published rule for free weights: leave it out with monotone.")
        check_monotone(self.monotone)


def loss_of(loss: Any, huber_width: float) -> LossSpec:
    """The loss chosen by the hyper-parameters of an estimator."""
    if not isinstance(loss, str):
        return LossSpec("custom", function=loss)
    return LossSpec(loss, float(huber_width) if loss == "huber" else None)


def threads_for(loss: LossSpec, n_threads: int) -> int:
    """The number of threads that may evaluate a loss: a function of the user may not be thread-safe."""
    return n_threads if loss.function is None else 1


def _loss_error(loss: Any) -> str | None:
    """The error of a loss, by name or as a function of the margin; None if it is valid."""
    if isinstance(loss, str) or not any(hasattr(loss, name) for name in ("value", "derivative", "curvature")):
        error = checks.one_of(loss, LOSSES)
        return None if error is None else f"{error} (or give an object with value, derivative and curvature)"
    return complaint_about(loss)
