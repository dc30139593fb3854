"""Retriever weights for hybrid search, as a request of Elasticsearch, pipeline of OpenSearch or profile of Vespa."""

import math
import re
from typing import Any

import numpy as np

from ranksvm.data.retriever_scores import NORMALIZERS
from ranksvm.exceptions import OptionError
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.text import curl_line, exact, identifier_checked, json_bytes, url_word
from ranksvm.exporting.vespa import first_phase, scaled, vespa_feature

__all__ = ["ELASTICSEARCH", "OPENSEARCH", "VESPA"]

# Number of best documents of each retriever whose scores are combined.
WINDOW = 100
# Maximum number of queries in a hybrid query of OpenSearch.
MAX_QUERIES = 5
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


def write_elasticsearch(request: Request) -> bytes:
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
    normalizer = _normalizer(request) or "none"
    retrievers = [
        {"retriever": _retriever(query), "weight": weight, "normalizer": normalizer}
        for query, weight in zip(_queries(request), _shares(request), strict=True)
    ]
    document = {
        "ranksvm": _about(request, "GET", "http://localhost:9200/INDEX/_search"),
        "request": {"retriever": {"linear": {"retrievers": retrievers, "rank_window_size": WINDOW}}},
    }
    return json_bytes(document)


def write_opensearch(request: Request) -> bytes:
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
    normalizer = _normalizer(request)
    if normalizer is None:
        raise OptionError(
            "OpenSearch normalizes the scores of every hybrid query, so the weights have to be trained for that: put a "
            'RetrieverScaler(engine="opensearch") before the ranker.'
        )
    if len(request.names) > MAX_QUERIES:
        raise OptionError(
            f"the model has {len(request.names)} retrievers, but a hybrid query of OpenSearch has at most "
            f"{MAX_QUERIES} queries."
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


def write_vespa(request: Request) -> bytes:
    """A rank profile whose first phase is a sum with weights that a query may replace.

    Parameters
    ----------
    request : Request
        What to write; names that are words become ``attribute(NAME)``.

    Returns
    -------
    bytes
        A schema's ``rank-profile``, for a separate file next to the schema.
    """
    columns = request.used_columns()
    features = [vespa_feature(request.names[column]) for column in columns]
    inputs, affine = _inputs([request.names[column] for column in columns]), request.affine()
    terms: list[str] = []
    for column, feature, name in zip(columns, features, inputs, strict=True):
        value = scaled(feature, affine.shift[column], affine.scale[column])
        terms.append(f"{' ' * 12}{'+ ' if terms else ''}query({name}) * {value}")
    lines = [
        f"# The weights of a {request.scoring.model} as inputs of a rank profile of Vespa, written by ranksvm.",
        f"# Install: put this file into the application package, as schemas/{request.store}/{request.name}.profile:",
        "#   vespa deploy",
        f"# Query: ranking.profile={request.name}, and input.query({inputs[0]})=... for another weight",
        "# Self-test: three documents.",
    ]
    for x, score in zip(request.test.X, request.test.scores, strict=True):
        values = (
            f"{feature} = {exact(x[j])}"
            for j, feature in zip(columns, features, strict=True)
            if x[j] and not math.isnan(x[j])  # a feature of a document that does not match is 0
        )
        lines.append(f"#   {', '.join(values) or 'all features 0'} -> {exact(score)}")
    lines += [
        f"rank-profile {request.name} inherits default {{",
        "    inputs {",
        *(f"        query({name}) double: {exact(request.coef[j])}" for j, name in zip(columns, inputs, strict=True)),
        "    }",
        *first_phase(terms),
        "}",
        "",
    ]
    return "\n".join(lines).encode()


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


def _normalizer(request: Request) -> str | None:
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


def _inputs(names: list[str]) -> list[str]:
    """A unique name for the input of each feature."""
    found: list[str] = []
    for name in names:
        word = "weight_" + re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
        number = 2
        unique = word
        while unique in found:
            unique, number = f"{word}_{number}", number + 1
        found.append(unique)
    return found


_HYBRID: dict[str, Any] = {"additive": False, "templates": True}
ELASTICSEARCH = Target(
    "elasticsearch-hybrid",
    ".json",
    write_elasticsearch,
    query_methods=frozenset(("elasticsearch", normalizer) for normalizer in NORMALIZERS["elasticsearch"]),
    no_query_scaler="use RetrieverScaler()",
    **_HYBRID,
)
OPENSEARCH = Target(
    "opensearch-hybrid",
    ".json",
    write_opensearch,
    query_methods=frozenset(("opensearch", normalizer) for normalizer in NORMALIZERS["opensearch"]),
    no_query_scaler='use RetrieverScaler(engine="opensearch")',
    **_HYBRID,
)
VESPA = Target(
    "vespa-hybrid",
    ".profile",
    write_vespa,
    query_methods=frozenset({("elasticsearch", "none")}),
    no_query_scaler="its first phase scores one document at a time",
    additive=False,
    store="SCHEMA",
    check_name=lambda name: identifier_checked(name, "Vespa"),
)
