"""The estimators that training commands fit, from their options."""

from typing import TYPE_CHECKING, Any

from ranksvm._util.parameters import option_names

if TYPE_CHECKING:
    from sklearn.base import TransformerMixin

    from ranksvm import AdditiveRankSVM, FactorizedRankSVM, KernelRankSVM, RegularizedRankSVM
    from ranksvm.cli.features import Model
    from ranksvm.estimators.base.choosing_ranker import ChoosingRanker
    from ranksvm.estimators.base.ranker import Ranker
    from ranksvm.estimators.rank_svm import RankSVMCore

    LowRank = FactorizedRankSVM | RegularizedRankSVM
    Estimator = RankSVMCore | KernelRankSVM | AdditiveRankSVM | ChoosingRanker | LowRank

__all__ = ["chooses", "evaluates_while_fitting", "make_ranker", "with_scaler"]

_CHOICE = ("metric", "convention", "rule")


def make_ranker(options: dict[str, Any], *, only_fit: bool = False, **changes: Any) -> "Estimator":
    """The estimator for the options; if they have a range to choose from, one that chooses.

    Ranges are ``Cs`` and ``gammas``; ``interactions`` may also be a choice. An option that is None is not
    passed on; ``changes`` override ``options``. With ``only_fit`` a RankSVM is made without the interface of
    scikit-learn, which cross-validation needs.
    """
    import ranksvm  # its names are imported on first use, so only the estimator needed here is loaded
    from ranksvm.estimators.rank_svm import RankSVMCore

    options = options | changes
    if options.get("low_rank") is not None:
        return _low_rank_ranker(options)
    if options["model"] == "additive":
        return _additive_ranker(options)
    names = option_names("linear" if options.get("kernel") is None else "kernel")
    given = {name: options[name] for name in names if options.get(name) is not None}
    kernel = "kernel" in given
    if not chooses(options):
        if kernel:
            return ranksvm.KernelRankSVM(C=options["C"], **given)
        return (RankSVMCore if only_fit else ranksvm.RankSVM)(C=options["C"], **given)
    given |= _choice(options)
    if not kernel:
        return ranksvm.RankSVMCV(**given)
    return ranksvm.KernelRankSVMCV(gammas=options["gammas"], **given)


def _additive_ranker(options: dict[str, Any]) -> "Estimator":
    from ranksvm import AdditiveRankSVM, AdditiveRankSVMCV

    given = {name: options[name] for name in option_names("additive") if options.get(name) is not None}
    if not chooses(options):
        return AdditiveRankSVM(options["C"], **given)
    weight = given.pop("step_weight", None)
    if weight is None and options["Cs"] is None:  # only the number of interactions is chosen
        weight = AdditiveRankSVM().step_weight
    return AdditiveRankSVMCV(step_weights=None if weight is None else [weight], **given, **_choice(options))


def _choice(options: dict[str, Any]) -> dict[str, Any]:
    """How an estimator chooses, and from which C."""
    Cs = [options["C"]] if options["Cs"] is None else options["Cs"]
    return {"Cs": Cs, "cv": options["folds"], **{name: options[name] for name in _CHOICE}}


def _low_rank_ranker(options: dict[str, Any]) -> "Estimator":
    from ranksvm import FactorizedRankSVM, RegularizedRankSVM

    model = options["low_rank"]
    given = {name: options[name] for name in option_names(model) if options.get(name) is not None}
    if model == "regularized":
        return RegularizedRankSVM(options["C"], **given)
    if evaluates_while_fitting(options):
        given["eval_metric"] = options["metric"]
    return FactorizedRankSVM(options["C"], **given)


def evaluates_while_fitting(options: dict[str, Any]) -> bool:
    """Whether the fitted model depends on the validation data."""
    return chooses(options) or options.get("early_stopping_rounds") is not None


def chooses(options: dict[str, Any]) -> bool:
    """Whether the options have a range to choose from."""
    return options["Cs"] is not None or options.get("gammas") is not None or options.get("interactions") == "auto"


def with_scaler(scaler: "TransformerMixin | None", ranker: "Ranker") -> "Model":
    """The model to save: a Pipeline if features are scaled."""
    if scaler is None:
        return ranker
    from sklearn.pipeline import Pipeline

    return Pipeline([("scaler", scaler), ("ranker", ranker)])
