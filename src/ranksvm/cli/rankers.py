"""The estimators that training commands fit, from their options."""

from typing import Any

__all__ = ["make_ranker", "with_scaler"]

_LOSS_AND_PAIRS = ("loss", "huber_width", "pair_selection", "pair_weighting")
_SOLVER = ("solver", "tol", "max_iter", "n_jobs", "keep_on_interrupt")
_CHOICE = ("Cs", "metric", "convention", "rule")


def make_ranker(options: dict[str, Any], **changes: Any) -> Any:
    """A RankSVMCV where the options have a range of C (``Cs``), else a RankSVM; an option that is None is left alone.

    ``changes`` go before ``options``.
    """
    from ranksvm import RankSVM, RankSVMCV

    options = options | changes
    names = (*_LOSS_AND_PAIRS, *_SOLVER)
    given = {name: options[name] for name in names if options.get(name) is not None}
    if options["Cs"] is None:
        return RankSVM(C=options["C"], **given)
    return RankSVMCV(cv=options["folds"], **{name: options[name] for name in _CHOICE}, **given)


def with_scaler(scaler: Any, ranker: Any) -> Any:
    """The model to save: a Pipeline where features are scaled."""
    from sklearn.pipeline import Pipeline

    return ranker if scaler is None else Pipeline([("scaler", scaler), ("ranker", ranker)])
