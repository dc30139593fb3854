"""The training, validation and test data of training commands, in memory or in a file; fits and measures models."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ranksvm.cli.clicks import check_clicks, pairs_of_clicks
from ranksvm.cli.features import matched, name_features, refuse_new_missing, refuse_not_finite
from ranksvm.cli.files import read, read_judgments, read_numbers, read_pairs, to_cache
from ranksvm.cli.options.models import check_texts, columns_of_additive, listed_features
from ranksvm.cli.options.paths import STDIN
from ranksvm.cli.options.training import signs_of_columns
from ranksvm.cli.output.progress import Progress, Stopwatch
from ranksvm.cli.output.tables import counted, queries

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import TransformerMixin

    from ranksvm._util.types import Features
    from ranksvm.cli.rankers import Estimator, LowRankChoice
    from ranksvm.datasets.cache.reader import CacheFile, QueryRuns
    from ranksvm.datasets.file_data import FileData
    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.datasets.runs import Qrels
    from ranksvm.estimators.base.ranker import Ranker

__all__ = ["TrainingData", "metric_names", "training_data"]

T = TypeVar("T")
Fitted = TypeVar("Fitted", bound="Estimator | LowRankChoice")

WEIGHTS = ("sample_weight", "query_weight", "propensity")
# shown at the end, next to the metric that decides the choice
SHOWN_METRICS = ["ndcg@10", "map", "mrr", "pairwise_accuracy"]


@dataclass
class TrainingData:
    """The data files of a training command, each called a part: "train", and "valid" and "test" if they are given.

    Parameters
    ----------
    parts : dict of str to RankingData
        Their contents; a `DataInFile` for training data larger than memory.
    paths : dict of str to Path
        Paths of these files, and of the files of weights and pairs.
    weights : dict of str to ndarray
        Weights of the rows of the training data, by their name in ``fit``.
    pairs : tuple of (ndarray, ndarray), optional
        Pairs to learn from instead of labels, and their weights.
    """

    parts: "dict[str, RankingData]"
    paths: dict[str, Path]
    weights: "dict[str, np.ndarray]"
    pairs: "tuple[np.ndarray, np.ndarray] | None" = None

    @property
    def from_labels(self) -> bool:
        """Whether the model learns from the labels of the training data, not from pairs or clicks."""
        return self.pairs is None and "clicks" not in self.paths

    def check_choice(self, folds: int) -> None:
        """Refuse to choose settings if there are neither validation data nor enough queries for the folds."""
        if "valid" in self.parts:
            return
        if not self.from_labels:
            alone = " (`ranksvm train --clicks` chooses C by the clicks alone)" if "clicks" in self.paths else ""
            raise click.UsageError(f"--pairs and --clicks give no labels to evaluate folds with: give --valid{alone}.")
        n_queries = self.parts["train"].queries.n_queries
        if folds > n_queries:
            raise click.UsageError(
                f"--folds {folds}, but the data have only {queries(n_queries)}: give fewer folds, or --valid."
            )

    def chosen_by(self, folds: int) -> str:
        """The data that decide a choice, in words."""
        return "validation data" if "valid" in self.parts else f"{folds} folds of queries"

    def resolved(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options, in which features are given by their columns instead of names or numbers.

        ``memory_limit`` becomes None if a linear or additive model is fitted in memory: it has done its work, and an
        estimator would warn that it has no effect.
        """
        train = self.parts["train"]
        names, n_features = train.feature_names, train.n_features
        found = {**options, **columns_of_additive(options, names, n_features)}
        found["monotone"] = signs_of_columns(options["monotone"], names, n_features)
        if options["kernel"] is None and options["low_rank"] is None and not isinstance(train, DataInFile):
            found["memory_limit"] = None
        return found

    def check_features(self, categorical: Sequence[int] | None, additive: bool, scalers: Sequence[str]) -> None:
        """Refuse features that hold text, unless all models are additive, and values that are infinite or NaN.

        Additive models take text in their categories only. They take missing values if the scaler does. Scalers for the
        scores of retrievers replace missing values.
        """
        train = self.parts["train"]
        listed = [] if train.feature_names is None else [train.feature_names[each] for each in categorical or ()]
        check_texts(list(train.categories), listed, additive, scalers)
        missing = all(
            name.startswith(("elasticsearch", "opensearch")) or (additive and not name.startswith("query"))
            for name in scalers
        )
        for part, data in self.parts.items():
            if not isinstance(data, DataInFile):
                refuse_not_finite(data.X, data.feature_names, self.paths[part], missing)

    def check_scaler(self, name: str) -> None:
        """Refuse a scaler that does not suit the data."""
        from ranksvm._util.checks import is_sparse

        if isinstance(self.parts["train"], DataInFile):
            return
        if name in ("minmax", "query-minmax") and is_sparse(self.parts["train"].X):
            raise click.UsageError(
                f"--scaler {name} would make sparse data dense; use --scaler standard or query-standard."
            )

    def scaled(self, name: str, watch: Stopwatch) -> tuple[Any, dict[str, Any]]:
        """The fitted scaler (None for "none") and the scaled features of every part."""
        train = self.parts["train"]
        wanted = train.feature_names, train.n_features
        X = {
            part: train.features
            if isinstance(data, DataInFile)
            else matched(data, *wanted, self.paths[part], "the training data", train.categories)
            for part, data in self.parts.items()
        }
        if isinstance(train, DataInFile):
            return None, X
        scaler = None if name == "none" else _scaler(name, X["train"])
        if scaler is not None:
            with watch("scaling"):
                if name in ("standard", "minmax"):
                    scaler.fit(X["train"])
                    X = {part: scaler.transform(X[part]) for part in self.parts}
                else:
                    scaler.fit(X["train"], qid=train.query_ids)
                    X = {part: scaler.transform(X[part], qid=data.query_ids) for part, data in self.parts.items()}
        self._refuse_new_missing(X)
        return scaler, X

    def _refuse_new_missing(self, X: dict[str, Any]) -> None:
        """Refuse, before the fit, missing values of features that have none in the training data."""
        from ranksvm.additive.bins import missing_features

        parts = [part for part in X if part != "train" and missing_features(X[part]).any()]
        for part in parts:
            names = self.parts["train"].feature_names
            refuse_new_missing(missing_features(X["train"]), X[part], names, self.paths[part])

    def named(self, model: T) -> T:
        """The model with the names of the features, if the training data have some."""
        return name_features(model, self.parts["train"].feature_names, self.parts["train"].categories)

    def fit(self, ranker: Fitted, X: dict[str, Any], evaluating: bool) -> Fitted:
        """Fit on the training part; with ``evaluating``, the validation part, if any, is passed to ``fit`` too."""
        train = self.parts["train"]
        arguments: dict[str, Any] = {**self.weights}
        if isinstance(train, DataInFile):
            if not train.file.has_qid:
                arguments["group"] = [train.n_rows]
        else:
            arguments["qid"] = train.query_ids
        if self.pairs is None:
            arguments["y"] = None if isinstance(train, DataInFile) else train.y
        else:
            arguments["pairs"], arguments["pair_weight"] = self.pairs
        if evaluating and "valid" in self.parts:
            arguments["eval_set"] = (X["valid"], self.parts["valid"].y)
            arguments["eval_qid"] = self.parts["valid"].query_ids
        ranker.fit(X["train"], **arguments)
        return ranker

    def means(
        self, ranker: "Ranker", X: dict[str, Any], metrics: list[str], convention: str
    ) -> dict[str, dict[str, float]]:
        """Metrics of every part that has labels: training data from which pairs were taken may have none."""
        from ranksvm.metrics import evaluate
        from ranksvm.metrics.scorers import predict_scores

        measured = {}
        for part, data in self.parts.items():
            if isinstance(data, DataInFile):  # scores would need another pass over the file
                continue
            if part == "train" and not self.from_labels and (data.y == data.y[0]).all():
                continue
            qid = data.query_ids
            scores = predict_scores(ranker, X[part], qid)
            result = evaluate(data.y, scores, qid, metrics, convention=convention, docid=data.docid)
            measured[part] = result.means
        return measured


def training_data(options: dict[str, Any], progress: Progress, watch: Stopwatch) -> TrainingData:
    """Read and validate all files that the options name."""
    paths = {name: options[name] for name in ("train", "valid", "test") if options[name] is not None}
    check_clicks(options)
    if options["clicks"] is not None and options["pairs"] is not None:
        raise click.UsageError("give --clicks or --pairs, not both.")
    qrels = read_judgments(options["qrels"])
    parts: dict[str, Any] = {}
    reading = dict(options["reading"])
    if options["categorical"] is not None:
        reading["categorical"] = listed_features(options["categorical"])
    for name, path in paths.items():
        if name == "train" and "cache_dir" in options and _large_data(path, options):
            parts[name] = _data_in_file(path, options | {"reading": reading}, progress, watch, qrels)
        else:
            # pairs and clicks replace the labels of the training data
            labels = name != "train" or (options["pairs"] is None and options["clicks"] is None)
            parts[name] = read(path, progress, watch, reading, require_labels=labels, qrels=qrels)
        if name == "train":
            reading["categorical"] = parts[name].categories
    train = parts["train"]
    with watch("reading"):
        weights = {name: _weights(name, options[name], train) for name in WEIGHTS if options[name] is not None}
        pairs = None if options["pairs"] is None else read_pairs(options["pairs"], train.queries)
        if options["clicks"] is not None and not options.get("by_clicks"):
            pairs = pairs_of_clicks(options, train)
    for name in weights:
        progress.line(f"Read {options[name]}: {name.replace('_', ' ')} of {counted(train.n_rows, 'row')}")
    if pairs is not None:
        progress.line(f"Read {options['pairs'] or options['clicks']}: {counted(len(pairs[0]), 'pair')}")
    paths |= {name: options[name] for name in (*WEIGHTS, "pairs", "clicks") if options[name] is not None}
    return TrainingData(parts, paths, weights, pairs)


def metric_names(metric: str) -> list[str]:
    """The metric that decides the choice and those that are shown next to it, in their usual spelling."""
    from ranksvm.metrics import parse_metrics

    return [parsed.name for parsed in parse_metrics([metric, *SHOWN_METRICS])]


def _weights(name: str, path: Path, data: "RankingData | DataInFile") -> "np.ndarray":
    """One number for each row, validated as in `fit`, so that an error names the file."""
    from ranksvm.data.pairs import PairWeights
    from ranksvm.exceptions import DataError

    numbers = read_numbers(path, data.n_rows, "number")
    if isinstance(data, DataInFile):
        return numbers
    try:
        PairWeights(**{name: numbers}).factors(data.queries)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return numbers


def _scaler(name: str, X: "Features") -> "TransformerMixin":
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    from ranksvm._util.checks import is_sparse
    from ranksvm.data import QueryMinMaxScaler, QueryStandardScaler, RetrieverScaler

    engine, _, normalizer = name.partition("-")
    if engine in ("elasticsearch", "opensearch"):
        return RetrieverScaler(normalizer, engine=engine)
    # The mean cancels in every difference of two documents, so sparse data are not centered.
    with_mean = not is_sparse(X)
    if name == "standard":
        return StandardScaler(with_mean=with_mean)
    if name == "query-standard":
        return QueryStandardScaler(with_mean=with_mean)
    return MinMaxScaler() if name == "minmax" else QueryMinMaxScaler()


@dataclass
class DataInFile:
    """A cache larger than memory, with the attributes of `RankingData` that a training command uses."""

    file: "CacheFile"
    queries: "QueryRuns"

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.file.n_rows

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.file.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features."""
        return self.file.feature_names

    @property
    def categories(self) -> dict[str, list[str]]:
        """The texts of the features that hold text."""
        return self.file.categories

    @property
    def features(self) -> "FileData":
        """What ``fit`` takes for X."""
        from ranksvm.datasets.file_data import FileData

        return FileData(self.file.path, (self.n_rows, self.n_features), True)


def _large_data(path: Path, options: dict[str, Any]) -> bool:
    """Whether a file may be too large to fit a linear or additive model to it in memory."""
    from ranksvm._util import checks
    from ranksvm._util.memory import memory_bytes
    from ranksvm.datasets.cache.conversion import memory_to_read
    from ranksvm.datasets.file_data import in_file

    limit = options["memory_limit"]
    checks.check(memory_limit=checks.memory_limit(limit))
    if path == STDIN or not path.is_file() or options["kernel"] or options["low_rank"]:
        return False
    if _is_cache(path):
        return in_file(str(path), limit)
    return memory_to_read(path) > memory_bytes(limit)


def _data_in_file(
    path: Path, options: dict[str, Any], progress: Progress, watch: Stopwatch, qrels: "Qrels | None"
) -> DataInFile:
    """The data of a large file: of the file itself if it is a cache, else of its cache, which is written if absent."""
    from ranksvm.datasets.cache.reader import CacheFile, QueryRuns
    from ranksvm.datasets.table import Columns

    _refuse(options)
    cache = path
    if not _is_cache(path):
        cache = _cached(path, options, progress, watch, qrels)
    elif qrels is not None:
        raise click.UsageError("--qrels with a cache larger than memory: convert it with --qrels first.")
    progress.now(f"Reading the queries of {cache}")
    with watch("reading"):
        file = CacheFile(cache)
        if cache == path:
            Columns(ignore=options["reading"]["ignore"]).check_ignored(str(path), file)
        found = DataInFile(file, QueryRuns.of(file))
    kind = "sparse" if file.sparse else "dense"
    counts = f"{counted(found.n_rows, 'row')}, {queries(found.queries.n_queries)}"
    features = f"{counted(found.n_features, 'feature')} ({kind})"
    progress.line(f"{cache}: {counts}, {features}; it is larger than memory and read in passes")
    return found


def _is_cache(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(12) == b"ranksvm-data"


def _cached(path: Path, options: dict[str, Any], progress: Progress, watch: Stopwatch, qrels: "Qrels | None") -> Path:
    from ranksvm.datasets.cache.conversion import cache_of, default_cache_folder

    folder = default_cache_folder() if options["cache_dir"] is None else options["cache_dir"]
    others = [] if options["qrels"] is None else [options["qrels"]]
    cache = cache_of(path, folder, options["reading"], *others)
    if cache.is_file():
        progress.line(f"{path}: found its cache {cache}")
        return cache
    cache.parent.mkdir(parents=True, exist_ok=True)
    to_cache(path, cache, progress, watch, options["reading"], qrels=qrels)
    progress.line(f"Wrote {cache}, its cache for later runs")
    return cache


def _refuse(options: dict[str, Any]) -> None:
    """Refuse options that need the rows in memory."""
    size = "TRAIN is larger than memory (--memory-limit)"
    if options["scaler"] != "none":
        raise click.UsageError(f"{size}: --scaler {options['scaler']} needs it in memory; scale the features first.")
    for name in ("pairs", "clicks"):
        if options[name] is not None:
            raise click.UsageError(f"{size}: --{name} needs it in memory; train on labels.")
