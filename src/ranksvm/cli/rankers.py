"""The estimators that training commands fit, from their options."""

from typing import Any

from ranksvm.cli.kernel_options import KERNEL_OPTIONS
from ranksvm.cli.low_rank_options import LOW_RANK_OPTIONS

__all__ = ["chooses", "evaluates_while_fitting", "make_ranker", "with_scaler"]

_LOSS_AND_PAIRS = ("loss", "huber_width", "pair_selection", "pair_weighting")
_SOLVER = ("solver", "tol", "max_iter", "n_jobs", "keep_on_interrupt")
_CHOICE = ("Cs", "metric", "convention", "rule")


def make_ranker(options: dict[str, Any], **changes: Any) -> Any:
    """A RankSVM, with a ``kernel`` a KernelRankSVM, or one of ``low_rank``; where there is a range, one that chooses.

    Ranges are ``Cs`` and ``gammas``. An option that is None is left alone; ``changes`` go before ``options``.
    """
    import ranksvm  # whose names are imported on first use: of them only the one that is needed here

    options = options | changes
    if options.get("low_rank") is not None:
        return _low_rank_ranker(options)
    names = (*_LOSS_AND_PAIRS, *_SOLVER, "kernel", *KERNEL_OPTIONS)
    given = {name: options[name] for name in names if options.get(name) is not None}
    kernel = "kernel" in given
    if not chooses(options):
        return (ranksvm.KernelRankSVM if kernel else ranksvm.RankSVM)(C=options["C"], **given)
    given |= {"cv": options["folds"], **{name: options[name] for name in _CHOICE}}
    if not kernel:
        return ranksvm.RankSVMCV(**given)
    given["Cs"] = [options["C"]] if options["Cs"] is None else options["Cs"]
    return ranksvm.KernelRankSVMCV(gammas=options["gammas"], **given)


def _low_rank_ranker(options: dict[str, Any]) -> Any:
    from ranksvm import FactorizedRankSVM, RegularizedRankSVM

    model = options["low_rank"]
    names = (*LOW_RANK_OPTIONS[model], "tol", "n_jobs", "keep_on_interrupt")
    given = {name: options[name] for name in names if options[name] is not None}
    if model == "regularized":
        return RegularizedRankSVM(options["C"], **given)
    if evaluates_while_fitting(options):
        given["eval_metric"] = options["metric"]
    return FactorizedRankSVM(options["C"], **given)


def evaluates_while_fitting(options: dict[str, Any]) -> bool:
    """Whether what is fitted depends on the validation data."""
    return chooses(options) or options.get("early_stopping_rounds") is not None


def chooses(options: dict[str, Any]) -> bool:
    """Whether the options have a range to choose from."""
    return options["Cs"] is not None or options.get("gammas") is not None


def with_scaler(scaler: Any, ranker: Any) -> Any:
    """The model to save: a Pipeline where features are scaled."""
    if scaler is None:
        return ranker
    from sklearn.pipeline import Pipeline

    return Pipeline([("scaler", scaler), ("ranker", ranker)])
