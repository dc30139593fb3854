"""The hyper-parameters of estimators as validated options."""

from typing import Any

from ranksvm.device.names import device_names
from ranksvm.estimators.base.ranker import hyper_parameters
from ranksvm.exceptions import OptionError
from ranksvm.fits.additive_options import AdditiveOptions
from ranksvm.fits.device_choice import check_device
from ranksvm.fits.options import LinearOptions

__all__ = ["additive_options", "linear_options"]


def linear_options(estimator: Any, **fixed: Any) -> LinearOptions:
    """The validated hyper-parameters of a linear estimator.

    Parameters
    ----------
    estimator : RankSVM or an estimator with its hyper-parameters
        The estimator.
    **fixed : object
        Values that replace hyper-parameters.

    Returns
    -------
    LinearOptions
        The options.

    Raises
    ------
    OptionError
        When a hyper-parameter is invalid, or the device cannot do the requested work.
    """
    options = LinearOptions.validated(hyper_parameters(estimator, "linear") | fixed)
    check_device(options.device, options.solver, options.loss)
    return options


def additive_options(estimator: Any, **fixed: Any) -> AdditiveOptions:
    """The validated hyper-parameters of an additive estimator.

    Parameters
    ----------
    estimator : AdditiveRankSVM or an estimator with its hyper-parameters
        The estimator.
    **fixed : object
        Values that replace hyper-parameters.

    Returns
    -------
    AdditiveOptions
        The options.

    Raises
    ------
    OptionError
        When a hyper-parameter is invalid, or the device cannot do the requested work.
    """
    options = AdditiveOptions.validated(hyper_parameters(estimator, "additive") | fixed)
    names = device_names(options.device)
    if len(names) > 1:
        raise OptionError(f"device={options.device!r}: an additive model is fitted on one GPU: name one.")
    check_device(options.device, options.solver, options.loss)
    return options
