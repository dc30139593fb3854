"""Large-margin learning to rank: the public API, loaded on first use."""

from typing import TYPE_CHECKING, Any

from ranksvm._util.lazy import imported

__version__ = "0.1.0"

# Public name -> module that defines it. Type checkers and editors read the imports below instead; a test compares both.
_API = {
    "RankSVM": "ranksvm.estimators",
    "RankSVMCV": "ranksvm.estimators",
    "KernelRankSVM": "ranksvm.estimators",
    "KernelRankSVMCV": "ranksvm.estimators",
    "AdditiveRankSVM": "ranksvm.estimators",
    "AdditiveRankSVMCV": "ranksvm.estimators",
    "FactorizedRankSVM": "ranksvm.estimators",
    "RegularizedRankSVM": "ranksvm.estimators",
    "SOLARRanker": "ranksvm.estimators",
    "PRanker": "ranksvm.estimators",
    "PairwisePerceptronRanker": "ranksvm.estimators",
    "PerceptronCommitteeRanker": "ranksvm.estimators",
    "ImportedRanker": "ranksvm.estimators",
    "import_model": "ranksvm.estimators",
    "regularization_path": "ranksvm.estimators",
    "PathDisplay": "ranksvm.plotting",
    "GridDisplay": "ranksvm.plotting",
    "ProgressiveDisplay": "ranksvm.plotting",
    "Queries": "ranksvm.data",
    "load": "ranksvm.model_files.persistence",
    "read_notes": "ranksvm.model_files.persistence",
    "save": "ranksvm.model_files.persistence",
    "skops_types": "ranksvm.model_files.registry",
    "export": "ranksvm.exporting",
    "Export": "ranksvm.exporting",
    "RankingData": "ranksvm.datasets",
    "Preferences": "ranksvm.data",
    "read_letor": "ranksvm.datasets",
    "write_letor": "ranksvm.datasets",
    "read_qrels": "ranksvm.datasets",
    "read_run": "ranksvm.datasets",
    "write_qrels": "ranksvm.datasets",
    "write_run": "ranksvm.datasets",
    "make_ranking": "ranksvm.datasets",
    "make_ranking_stream": "ranksvm.datasets",
    "pairs_from_clicks": "ranksvm.data",
    "QueryMinMaxScaler": "ranksvm.data",
    "QueryStandardScaler": "ranksvm.data",
    "RetrieverScaler": "ranksvm.data",
    "QueryKFold": "ranksvm.model_selection",
    "QueryShuffleSplit": "ranksvm.model_selection",
    "cross_validate": "ranksvm.model_selection",
    "progressive_validation": "ranksvm.model_selection",
    "Refit": "ranksvm.model_selection",
    "environment": "ranksvm._util.environment",
    "calibrate_device": "ranksvm.device",
}

_MODULES = ("analysis", "clicks", "data", "datasets", "exceptions", "metrics", "model_selection", "plotting", "report")

__all__ = ["__version__", *_API]


if TYPE_CHECKING:
    from ranksvm import (
        analysis as analysis,
        clicks as clicks,
        data as data,
        datasets as datasets,
        exceptions as exceptions,
        metrics as metrics,
        model_selection as model_selection,
        plotting as plotting,
        report as report,
    )
    from ranksvm._util.environment import environment as environment
    from ranksvm.data import (
        Preferences as Preferences,
        Queries as Queries,
        QueryMinMaxScaler as QueryMinMaxScaler,
        QueryStandardScaler as QueryStandardScaler,
        RetrieverScaler as RetrieverScaler,
        pairs_from_clicks as pairs_from_clicks,
    )
    from ranksvm.datasets import (
        RankingData as RankingData,
        make_ranking as make_ranking,
        make_ranking_stream as make_ranking_stream,
        read_letor as read_letor,
        read_qrels as read_qrels,
        read_run as read_run,
        write_letor as write_letor,
        write_qrels as write_qrels,
        write_run as write_run,
    )
    from ranksvm.device import calibrate_device as calibrate_device
    from ranksvm.estimators import (
        AdditiveRankSVM as AdditiveRankSVM,
        AdditiveRankSVMCV as AdditiveRankSVMCV,
        FactorizedRankSVM as FactorizedRankSVM,
        ImportedRanker as ImportedRanker,
        KernelRankSVM as KernelRankSVM,
        KernelRankSVMCV as KernelRankSVMCV,
        PairwisePerceptronRanker as PairwisePerceptronRanker,
        PerceptronCommitteeRanker as PerceptronCommitteeRanker,
        PRanker as PRanker,
        RankSVM as RankSVM,
        RankSVMCV as RankSVMCV,
        RegularizedRankSVM as RegularizedRankSVM,
        SOLARRanker as SOLARRanker,
        import_model as import_model,
        regularization_path as regularization_path,
    )
    from ranksvm.exporting import Export as Export, export as export
    from ranksvm.model_files.persistence import load as load, read_notes as read_notes, save as save
    from ranksvm.model_files.registry import skops_types as skops_types
    from ranksvm.model_selection import (
        QueryKFold as QueryKFold,
        QueryShuffleSplit as QueryShuffleSplit,
        Refit as Refit,
        cross_validate as cross_validate,
        progressive_validation as progressive_validation,
    )
    from ranksvm.plotting import (
        GridDisplay as GridDisplay,
        PathDisplay as PathDisplay,
        ProgressiveDisplay as ProgressiveDisplay,
    )
else:

    def __getattr__(name: str) -> Any:
        if name in _API:
            return getattr(imported(_API[name]), name)
        if name == "CommitteePerceptronRanker":
            import warnings

            message = "ranksvm.CommitteePerceptronRanker is deprecated: it is called PerceptronCommitteeRanker"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return __getattr__("PerceptronCommitteeRanker")
        if name in _MODULES:
            return imported(f"ranksvm.{name}")
        raise AttributeError(f"module 'ranksvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
