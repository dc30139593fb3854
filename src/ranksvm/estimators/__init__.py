"""scikit-learn estimators."""

from typing import TYPE_CHECKING, Any, NamedTuple

from ranksvm._util.lazy import lazy_names

if TYPE_CHECKING:
    from ranksvm.estimators.additive_path import AdditivePath
    from ranksvm.estimators.additive_rank_svm import AdditiveRankSVM
    from ranksvm.estimators.additive_rank_svm_cv import AdditiveRankSVMCV
    from ranksvm.estimators.factorized_rank_svm import FactorizedRankSVM
    from ranksvm.estimators.imported_ranker import ImportedRanker, import_model
    from ranksvm.estimators.kernel_rank_svm import KernelRankSVM
    from ranksvm.estimators.kernel_rank_svm_cv import KernelRankSVMCV
    from ranksvm.estimators.p_ranker import PRanker
    from ranksvm.estimators.path import RegularizationPath, regularization_path
    from ranksvm.estimators.perceptron_rankers import PairwisePerceptronRanker, PerceptronCommitteeRanker
    from ranksvm.estimators.rank_svm import RankSVM
    from ranksvm.estimators.rank_svm_cv import RankSVMCV
    from ranksvm.estimators.regularized_rank_svm import RegularizedRankSVM
    from ranksvm.estimators.solar_ranker import SOLARRanker
else:
    # public name -> module that defines it, which is loaded on first use
    __getattr__ = lazy_names(
        __name__,
        {
            "AdditivePath": "ranksvm.estimators.additive_path",
            "AdditiveRankSVM": "ranksvm.estimators.additive_rank_svm",
            "AdditiveRankSVMCV": "ranksvm.estimators.additive_rank_svm_cv",
            "FactorizedRankSVM": "ranksvm.estimators.factorized_rank_svm",
            "ImportedRanker": "ranksvm.estimators.imported_ranker",
            "import_model": "ranksvm.estimators.imported_ranker",
            "KernelRankSVM": "ranksvm.estimators.kernel_rank_svm",
            "KernelRankSVMCV": "ranksvm.estimators.kernel_rank_svm_cv",
            "PRanker": "ranksvm.estimators.p_ranker",
            "RegularizationPath": "ranksvm.estimators.path",
            "regularization_path": "ranksvm.estimators.path",
            "PerceptronCommitteeRanker": "ranksvm.estimators.perceptron_rankers",
            "PairwisePerceptronRanker": "ranksvm.estimators.perceptron_rankers",
            "RankSVM": "ranksvm.estimators.rank_svm",
            "RankSVMCV": "ranksvm.estimators.rank_svm_cv",
            "RegularizedRankSVM": "ranksvm.estimators.regularized_rank_svm",
            "SOLARRanker": "ranksvm.estimators.solar_ranker",
        },
    )


class OnlineChoice(NamedTuple):
    """The estimator that a value of ``--learner`` stands for, and its parameters.

    Attributes
    ----------
    estimator : str
        Name of the class.
    fixed_params : dict
        Parameters that the choice sets.
    options : tuple of str
        Parameters that a user may set, other than ``random_state``.
    linear : bool
        Whether it scores by ``coef_`` alone.
    """

    estimator: str
    fixed_params: dict[str, Any]
    options: tuple[str, ...]
    linear: bool = True


ONLINE_CHOICES = {
    "solar1": OnlineChoice("SOLARRanker", {"order": 1}, ("C", "decay", "average")),
    "solar2": OnlineChoice("SOLARRanker", {"order": 2}, ("gamma", "covariance", "decay", "average")),
    "prank": OnlineChoice("PRanker", {}, ("levels", "average")),
    "perceptron": OnlineChoice("PairwisePerceptronRanker", {}, ("average",)),
    "committee": OnlineChoice("PerceptronCommitteeRanker", {}, ("n_experts",), linear=False),
}

__all__ = [
    "AdditivePath",
    "AdditiveRankSVM",
    "AdditiveRankSVMCV",
    "PerceptronCommitteeRanker",
    "FactorizedRankSVM",
    "ImportedRanker",
    "KernelRankSVM",
    "KernelRankSVMCV",
    "PRanker",
    "PairwisePerceptronRanker",
    "RankSVM",
    "RankSVMCV",
    "RegularizationPath",
    "RegularizedRankSVM",
    "SOLARRanker",
    "import_model",
    "regularization_path",
]
