"""The hyper-parameters of estimators as validated options."""

from typing import Any

from ranksvm.fits.device_choice import check_device
from ranksvm.fits.options import LINEAR_SOLVERS, LinearOptions

__all__ = ["linear_options", "shared_options"]


def linear_options(estimator: Any, **fixed: Any) -> LinearOptions:
    """The validated hyper-parameters of a linear estimator.

    Parameters
    ----------
    estimator : RankSVM or an estimator with its hyper-parameters
        The estimator.
    **fixed : object
        Values that replace hyper-parameters, or missing hyper-parameters of the estimator.

    Returns
    -------
    LinearOptions
        The options.

    Raises
    ------
    OptionError
        When a hyper-parameter is invalid, or the device cannot do the requested work.
    """
    given = {"monotone": estimator.monotone, "stopping": getattr(estimator, "stopping", "gap")}
    options = LinearOptions.validated(**shared_options(estimator) | given | fixed, solvers=LINEAR_SOLVERS)
    if options.device != "cpu":
        check_device(options.device, options.solver, options.loss)
    return options


def shared_options(estimator: Any) -> dict[str, Any]:
    """The hyper-parameters that linear and kernel models have."""
    return {
        "loss": estimator.loss,
        "huber_width": estimator.huber_width,
        "pair_selection": estimator.pair_selection,
        "pair_weighting": estimator.pair_weighting,
        "solver": estimator.solver,
        "tol": estimator.tol,
        "max_iter": estimator.max_iter,
        "device": estimator.device,
        "memory_limit": estimator.memory_limit,
        "n_jobs": estimator.n_jobs,
    }
