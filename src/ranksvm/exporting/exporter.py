"""`export`: a fitted model in the format of another program."""

import copy
import re
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ranksvm._util.checks import check_one_per_row
from ranksvm._util.pipeline_steps import steps_of, takes_missing
from ranksvm._util.special_files import is_special
from ranksvm._util.types import Features, Json, MatrixLike, PathLike
from ranksvm.data import frames, validation
from ranksvm.exceptions import OptionError
from ranksvm.exporting.features import FeatureNames, feature_templates, mapped_names
from ranksvm.exporting.registry import FORMATS, target_of
from ranksvm.exporting.request import Export, Request, Target, feature_ranges, self_test
from ranksvm.exporting.scoring import Additive, Linear, QueryScaling, Scoring, scoring_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["export"]

# File names that are safe in a comment of any format: no line breaks, quotes or ends of comments.
_PLAIN_FILE = re.compile(r"[\w.,+=@%-]+")
# Maximum number of texts of a feature that a note lists.
_TEXTS = 10


def export(
    model: "BaseEstimator",
    path: PathLike | None = None,
    *,
    to: str,
    X: MatrixLike | None = None,
    qid: ArrayLike | None = None,
    names: FeatureNames | None = None,
    name: str | None = None,
    store: str | None = None,
    table: str = "documents",
    query_column: str = "qid",
    non_negative: bool = False,
    templates: Json | None = None,
) -> Export:
    """Write a fitted model in the format of a search engine, a runtime or a programming language.

    Every file says how to install it, and has a self-test: three documents and their scores. Scalers before the ranker
    become part of the file, as normalizers of the engine if it has any.

    Parameters
    ----------
    model : estimator
        A fitted ranker, or a fitted Pipeline of scalers (StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler of
        scikit-learn, QueryMinMaxScaler, QueryStandardScaler, RetrieverScaler) that ends with a ranker, or a fitted
        search of scikit-learn.
    path : str or path-like, optional
        File to write, atomically; None: write no file. The result has the content in either case.
    to : str
        The format, such as "solr", "onnx" (needs ``pip install "ranksvm[onnx]"``), "sql", "python" or "json"; ``ranksvm
        export --help`` lists all. Kernel models can be written for "onnx"; those with the kernels rbf and poly, without
        random Fourier features, also for "svm-rank" and "libsvm". Additive models can be written in all formats except
        these two, "liblinear" and those for hybrid search; for "solr", "elasticsearch", "opensearch" and "xgboost" they
        must have no linear part (``linear=False``).
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features), optional
        Data that provides the documents of the self-test and, for ``non_negative``, the range of each feature.
    qid : array-like of shape (n_samples,) or str, optional
        Query of each row of X, or the name of the column of X that has the queries.
    names : dict or sequence of str, optional
        Names of the features in the engine: a dict from names in the model (``f1``, ``f2``, ... if it has none) to
        names in the engine, which may omit features; or the names of all features in the order of the columns.
    name : str, optional
        Name of the model; None: the name of the file.
    store : str, optional
        Feature store of Solr ("_DEFAULT_"), feature set of Elasticsearch and OpenSearch ("features"), or schema of
        Vespa.
    table, query_column : str, default "documents" and "qid"
        Table of documents, and its column of query ids, in SQL. In ``table``, and in ``name`` for "sql", a dot
        separates a schema from the name: "public.documents". Put a name that contains a dot in double quotes.
    non_negative : bool, default False
        Shift the scores so that no document whose features are in the range of X, or of the training data of a
        MinMaxScaler, has a negative score, which Lucene refuses. For "solr", "elasticsearch" and "opensearch".
    templates : dict, optional
        The query that computes each feature, by its name in the engine, such as ``{"title": {"match": {"title":
        "{{keywords}}"}}}``; or the body of a feature set. For "elasticsearch" and "opensearch": the file then has the
        feature set that the model needs. For "elasticsearch-hybrid" and "opensearch-hybrid": the query of each
        retriever.

    Returns
    -------
    Export
        The content, what the features are called, and what was left out or changed.

    Raises
    ------
    OptionError
        When the format cannot express the model, or an option does not fit it.
    DataError
        When the features of X are not the model's.
    MissingDependencyError
        When the format needs a package that is not installed.

    Examples
    --------
    >>> from ranksvm import RankSVM, export, make_ranking
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=3, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> export(ranker, to="python", names=["bm25", "links", "age"]).features
    ['bm25', 'links', 'age']
    """
    if to not in FORMATS:
        raise OptionError(f"to must be one of {', '.join(map(repr, FORMATS))}, got {to!r}.")
    model = getattr(model, "best_estimator_", model)
    target, scoring = target_of(to), scoring_of(model)
    _check_expressible(target, scoring)
    if non_negative and not target.non_negative:
        raise OptionError(f"non_negative is for engines that refuse negative scores: {to} takes any score.")
    if templates is not None and not target.templates:
        raise OptionError(f"templates is for engines that compute features by queries, and {to} does not.")
    if store is not None and not target.store:
        raise OptionError(f"store names a feature store, a feature set or a schema, and {to} has none.")
    if not table or not query_column:
        raise OptionError("table and query_column must not be empty.")
    if to != "sql" and (table, query_column) != ("documents", "qid"):
        raise OptionError(f"table and query_column are names in SQL, and {to} has none.")
    if qid is not None and X is None:
        raise OptionError("qid has the queries of the rows of X: give X, too.")
    if X is not None:
        X, qid = _rows(model, X, qid)
    name = _model_name(target, path, name)
    request = Request(
        scoring,
        mapped_names(scoring.names, names),
        self_test(scoring, X, qid),
        name,
        target.store if store is None else store,
        table,
        query_column,
        non_negative=non_negative,
        file=_file_name(target, path, name),
        templates=None if templates is None else feature_templates(templates),
    )
    if non_negative and request.additive is None:
        request.ranges = feature_ranges(scoring, X)
        if request.ranges is None:
            raise OptionError(
                "non_negative needs the range of each feature: pass data as X (--data FILE), or scale the features "
                "with a MinMaxScaler, which stores them."
            )
    content = target.write(request)
    request.notes += _notes_on_texts(steps_of(model)[-1], scoring.names, request.names)
    result = Export(to, content, request.names, request.notes, request.test)
    if path is not None:
        result.save(path)
    return result


def _notes_on_texts(ranker: "BaseEstimator", features: list[str], names: list[str]) -> list[str]:
    """A sentence for each feature that held text in training: which number stands for which text in the file."""
    categories: dict[str, list[str]] = getattr(ranker, "categories_", {})
    notes = []
    for feature, name in zip(features, names, strict=True):
        if texts := categories.get(feature):
            listed = ", ".join(f"{place} for {text!r}" for place, text in enumerate(texts[:_TEXTS]))
            more = f", ... (`categories_` of the model lists all {len(texts)})" if len(texts) > _TEXTS else ""
            notes.append(f"feature {name!r} takes numbers: {listed}{more}; -1 for any other text.")
    return notes


def _check_expressible(target: Target, scoring: Scoring) -> None:
    if not _expresses(target, scoring):
        if not isinstance(scoring.function, Additive):
            raise OptionError(
                f"the scores of this {scoring.model} are not linear, which {target.name} needs: export to onnx."
            )
        others = [name for name in FORMATS if _expresses(target_of(name), scoring)]
        raise OptionError(
            f"{target.name} files cannot express the steps of this {scoring.model}: export to {', '.join(others)}."
        )
    scaling = scoring.scaling
    if isinstance(scaling, QueryScaling) and scaling.method not in target.query_methods:
        formats = [name for name in FORMATS if scaling.method in target_of(name).query_methods]
        others = [name for name in formats if _expresses(target_of(name), scoring)]
        listed = f"These can: {', '.join(others)}. Or train" if others else "Train"
        raise OptionError(
            f"the model scales features by query ({scaling.scaler}), which {target.name} cannot do: "
            f"{target.no_query_scaler}. {listed} with a scaler that is the same for all queries."
        )


def _expresses(target: Target, scoring: Scoring) -> bool:
    """Whether the format can compute scores as the model does, once the features are scaled."""
    if isinstance(scoring.function, Additive):
        return target.additive
    return target.kernels or isinstance(scoring.function, Linear)


def _rows(model: "BaseEstimator", X: MatrixLike, qid: ArrayLike | None) -> tuple[Features, ArrayLike | None]:
    """Features and queries as arrays."""
    first = steps_of(model)[0]
    X, qid, _ = frames.split_qid(X, qid)
    if not frames.is_frame(X) and hasattr(first, "feature_names_in_"):
        first = copy.copy(first)  # scikit-learn would warn that an array has no names
        del first.feature_names_in_
    if hasattr(first, "_features"):  # a ranker, not a scaler
        features: Features = first._features(X)
    else:
        with validation.as_data_error():
            features = frames.validated(first, X, reset=False, **validation.FEATURE_CHECKS)
        names = getattr(first, "feature_names_in_", None)
        validation.check_finite(features, 1, names, missing=takes_missing(model))
    if qid is not None:
        check_one_per_row("qid", qid, features.shape[0])
    return features, qid


def _model_name(target: Target, path: PathLike | None, given: str | None) -> str:
    """The given name of a model, or else the stem of its file, as the format allows it."""
    if not isinstance(given, str | None):
        raise OptionError(f"name must be text, got {given!r}.")
    if given is not None:
        name = given
    else:
        stem = "" if path is None or is_special(path) else Path(path).name.split(".", 1)[0]
        name = stem or "ranksvm"
    if target.check_name is not None:
        target.check_name(name)
    if not name or any(ord(character) < 32 or "\ud800" <= character <= "\udfff" for character in name):
        raise OptionError(f"{name!r} cannot name a model: give another name (name=..., or --name).")
    return name


def _file_name(target: Target, path: PathLike | None, name: str) -> str:
    """The name of the file in the installation instructions."""
    found = f"{name}{target.suffix}" if path is None or is_special(path) else Path(path).name
    return found if _PLAIN_FILE.fullmatch(found) else f"model{target.suffix}"
