"""Models for Elasticsearch and OpenSearch: their learning-to-rank plugins, and weights of retrievers for hybrid search.

For the plugins, a linear model becomes ``model/linear`` with feature normalizers, and an additive model the trees of
``model/xgboost+json``, with a feature set and a search.
"""

import json
import math
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from ranksvm.data.retriever_scores import NORMALIZERS
from ranksvm.exceptions import OptionError
from ranksvm.exporting.features import needed, parameters_of
from ranksvm.exporting.lucene import LuceneFeature, lucene_features, lucene_test, scale_of_scores
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.text import curl_line, float32_number, json_bytes, url_word
from ranksvm.exporting.trees import Leaf, Tree, expected_of, float32_trees, score_of_trees

__all__ = ["ELASTICSEARCH", "ELASTICSEARCH_HYBRID", "OPENSEARCH", "OPENSEARCH_HYBRID"]

# Number of best documents of each shard whose scores the model recomputes.
WINDOW = 100
# Number of best documents of each retriever whose scores are combined.
_HYBRID_WINDOW = 100
# Maximum number of queries in a hybrid query of OpenSearch.
_MAX_QUERIES = 5
# Kinds of retrievers of Elasticsearch. A template whose only key is one of these is a retriever itself; any other
# template is the query of a `standard` retriever.
_RETRIEVERS = {
    "standard",
    "diversify",
    "knn",
    "linear",
    "pinned",
    "random_reranker",
    "rescorer",
    "rrf",
    "rule",
    "text_similarity_reranker",
}
# Names of OpenSearch for the normalizers of `RetrieverScaler`.
_TECHNIQUES = {"minmax": "min_max", "l2_norm": "l2"}


def write(request: Request) -> bytes:
    """A JSON object whose key ``request`` has the model for ``_createmodel``; the plugins refuse additional keys in it.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        JSON; the key ``ranksvm`` has the installation commands and the self-test, ``rescore`` is a part of a
        search, and ``featureset`` has the features that the model needs, if there are templates.
    """
    # the plugins read the definition from a string that holds JSON
    if request.additive is None:
        features = lucene_features(request)
        names = [feature.name for feature in features]
        model = _linear(features)
        score, test = scale_of_scores(request, features), lucene_test(request, features)
    else:
        trees, offset = float32_trees(request, "the plugin")
        names = [request.names[column] for column in request.additive.used.nonzero()[0]]
        definition = [_node(tree, request.names, count(), 0) for tree in trees]
        model = {"type": "model/xgboost+json", "definition": json.dumps(definition, ensure_ascii=False)}
        score, test = score_of_trees(request, offset), expected_of(request, offset)
    templates = None if request.templates is None else needed(request.templates, names)
    document: dict[str, Any] = {
        "ranksvm": {
            "install": _install(request),
            "needs": f"features of these names in the feature set {request.store!r}",
            "score": score,
            "test": test,
        }
    }
    if templates is not None:
        document["featureset"] = {"featureset": {"features": templates}}
    document["request"] = {"model": {"name": request.name, "model": model}}
    document["rescore"] = _rescore(request.name, parameters_of(templates or []))
    if not request.non_negative:
        request.notes.append(
            "scores can be negative, which Lucene refuses: rescore with query_weight 0, or export with non_negative "
            "(--non-negative)."
        )
    return json_bytes(document)


def _install(request: Request) -> str:
    """The commands that send the feature set, if there is one, and the model."""
    url = f"http://localhost:9200/_ltr/_featureset/{url_word(request.store)}"
    commands = [] if request.templates is None else [("featureset", "PUT", url)]
    commands.append(("request", "POST", f"{url}/_createmodel"))
    return " && ".join(curl_line(key, request.file, method, address) for key, method, address in commands)


def _rescore(model: str, parameters: list[str]) -> dict[str, Any]:
    """The value of ``rescore`` in a search; a search template fills in its parameters."""
    sltr = {"params": {name: f"{{{{{name}}}}}" for name in parameters}, "model": model}
    return {
        "window_size": WINDOW,
        "query": {"rescore_query": {"sltr": sltr}, "query_weight": 0.0, "rescore_query_weight": 1.0},
    }


def _linear(features: list[LuceneFeature]) -> dict[str, Any]:
    model: dict[str, Any] = {
        "type": "model/linear",
        "definition": json.dumps({feature.name: feature.weight for feature in features}, ensure_ascii=False),
    }
    normalizers = {feature.name: _normalizer(feature) for feature in features if feature.shift is not None}
    if normalizers:
        model["feature_normalizers"] = normalizers
    return model


def _node(tree: Tree, names: list[str], numbers: Iterator[int], depth: int) -> dict[str, Any]:
    """A node as XGBoost dumps it."""
    number = next(numbers)
    if isinstance(tree, Leaf):
        return {"nodeid": number, "depth": depth, "leaf": float32_number(tree.value)}
    children = [_node(each, names, numbers, depth + 1) for each in (tree.below, tree.above)]
    yes, no = (child["nodeid"] for child in children)
    return {
        "nodeid": number,
        "depth": depth,
        "split": names[tree.column],
        "split_condition": float32_number(tree.cut),
        "yes": yes,
        "no": no,
        "missing": yes if tree.missing_below else no,
        "children": children,
    }


def _normalizer(feature: LuceneFeature) -> dict[str, Any]:
    if feature.style == "min_max":
        return {"min_max": {"minimum": feature.shift, "maximum": feature.high}}
    return {"standard": {"mean": feature.shift, "standard_deviation": feature.scale}}


def _check_name(name: str) -> None:
    if not name or name[0] in "_-+" or any(character.isspace() or character in '\\/*?"<>|,#' for character in name):
        raise OptionError(f'{name!r} cannot name a model here: remove spaces and any of \\ / * ? " < > | , #.')


def _target(name: str) -> Target:
    return Target(name, ".json", write, non_negative=True, templates=True, store="features", check_name=_check_name)


def write_elasticsearch_hybrid(request: Request) -> bytes:
    """The body of a search with a ``linear`` retriever.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        JSON: the body under the key ``request``, and under ``ranksvm`` how to use it and the self-test.
    """
    normalizer = _normalizer_of_scores(request) or "none"
    retrievers = [
        {"retriever": _retriever(query), "weight": weight, "normalizer": normalizer}
        for query, weight in zip(_queries(request), _shares(request), strict=True)
    ]
    document = {
        "ranksvm": _about(request, "GET", "http://localhost:9200/INDEX/_search"),
        "request": {"retriever": {"linear": {"retrievers": retrievers, "rank_window_size": _HYBRID_WINDOW}}},
    }
    return json_bytes(document)


def write_opensearch_hybrid(request: Request) -> bytes:
    """A search pipeline with a ``normalization-processor``, and the query of a search that uses it.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        JSON: the pipeline under the key ``request``, the body of a search under ``search``, and under ``ranksvm`` how
        to install it and the self-test.
    """
    normalizer = _normalizer_of_scores(request)
    if normalizer is None:
        raise OptionError(
            "OpenSearch normalizes the scores of every hybrid query, so the weights have to be trained for that: put a "
            'RetrieverScaler(engine="opensearch") before the ranker.'
        )
    if len(request.names) > _MAX_QUERIES:
        raise OptionError(
            f"the model has {len(request.names)} retrievers, but a hybrid query of OpenSearch has at most "
            f"{_MAX_QUERIES} queries."
        )
    processor = {
        "normalization": {"technique": _TECHNIQUES[normalizer]},
        "combination": {"technique": "arithmetic_mean", "parameters": {"weights": _shares(request)}},
    }
    pipeline = {
        "description": f"Weights of {', '.join(request.names)}, learned by ranksvm",
        "phase_results_processors": [{"normalization-processor": processor}],
    }
    about = _about(request, "PUT", f"http://localhost:9200/_search/pipeline/{url_word(request.name)}")
    document = {
        "ranksvm": {
            **about,
            "use": f"GET INDEX/_search?search_pipeline={url_word(request.name)} with the body `search`",
        },
        "request": pipeline,
        "search": {"query": {"hybrid": {"queries": _queries(request)}}},
    }
    return json_bytes(document)


def _about(request: Request, method: str, address: str) -> dict[str, Any]:
    total, tested = _weights(request).sum(), []
    for x, score in zip(request.test.X, request.test.scores, strict=True):
        scores = {name: float(value) for name, value in zip(request.names, x, strict=True) if not math.isnan(value)}
        tested.append({"scores": scores, "score": float(score / total)})
    return {
        "install": curl_line("request", request.file, method, address),
        "needs": "the same retrievers, with the same number of documents each, as in the training data",
        "score": f"the sum of {len(request.names)} normalized scores times their weights, which sum to 1",
        "test": tested,
    }


def _normalizer_of_scores(request: Request) -> str | None:
    """The normalizer of the retriever scaler; None without one."""
    scaling = request.query_scaling
    return None if scaling is None else scaling.method[1]


def _shares(request: Request) -> list[float]:
    """The weights divided by their sum, which changes no ranking."""
    weights = _weights(request)
    return [float(weight) for weight in weights / weights.sum()]


def _weights(request: Request) -> np.ndarray:
    """Weights of the scores that the engine has normalized; OptionError if a weight is negative."""
    weights = np.asarray(request.coef, dtype=np.float64)
    if request.query_scaling is None and request.scaling is not None:
        if request.scaling.shift.any():
            raise OptionError(
                "the scaler before the ranker subtracts a number from each score, and the engine adds 0 for a document "
                "that a retriever did not return: use a RetrieverScaler, or a MaxAbsScaler."
            )
        weights = weights / request.scaling.scale
    if weights.min() < 0.0:
        worst = int(weights.argmin())
        raise OptionError(
            f"the weight of {request.names[worst]!r} is {weights[worst]:.6g}, and the engine takes no negative weight: "
            'train with monotone="increasing" (--monotone increasing).'
        )
    if not weights.any():
        raise OptionError("all weights of the model are 0: there is nothing to export.")
    return weights


def _queries(request: Request) -> list[dict[str, Any]]:
    """The query of each retriever, in the order of the model: from the templates, or else a placeholder."""
    if request.templates is None:
        request.notes.append(
            "put your own queries in place of those that say REPLACE, or pass templates (--templates)."
        )
        return [{"match": {"REPLACE": f"with the query of {name}"}} for name in request.names]
    found = {feature["name"]: feature["template"] for feature in request.templates}
    for name in request.names:
        if name not in found:
            raise OptionError(f"templates has no query {name!r}; it has {', '.join(map(repr, found))}.")
    return [found[name] for name in request.names]


def _retriever(query: dict[str, Any]) -> dict[str, Any]:
    return query if len(query) == 1 and next(iter(query)) in _RETRIEVERS else {"standard": {"query": query}}


ELASTICSEARCH = _target("elasticsearch")
OPENSEARCH = _target("opensearch")
_HYBRID: dict[str, Any] = {"additive": False, "templates": True}
ELASTICSEARCH_HYBRID = Target(
    "elasticsearch-hybrid",
    ".json",
    write_elasticsearch_hybrid,
    query_methods=frozenset(("elasticsearch", normalizer) for normalizer in NORMALIZERS["elasticsearch"]),
    no_query_scaler="use RetrieverScaler()",
    **_HYBRID,
)
OPENSEARCH_HYBRID = Target(
    "opensearch-hybrid",
    ".json",
    write_opensearch_hybrid,
    query_methods=frozenset(("opensearch", normalizer) for normalizer in NORMALIZERS["opensearch"]),
    no_query_scaler='use RetrieverScaler(engine="opensearch")',
    **_HYBRID,
)
