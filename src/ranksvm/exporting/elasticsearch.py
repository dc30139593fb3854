"""Models for the learning-to-rank plugins of Elasticsearch and OpenSearch, with a feature set and a search.

A linear model becomes ``model/linear`` with feature normalizers; an additive model becomes the trees of
``model/xgboost+json``.
"""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from ranksvm.exceptions import OptionError
from ranksvm.exporting.features import needed, parameters_of
from ranksvm.exporting.lucene import LuceneFeature, lucene_features, lucene_test, scale_of_scores
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.text import curl_line, float32_number, json_bytes, url_word
from ranksvm.exporting.trees import Leaf, Tree, expected_of, float32_trees, score_of_trees

__all__ = ["ELASTICSEARCH", "OPENSEARCH"]

# Number of best documents of each shard whose scores the model recomputes.
WINDOW = 100


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


ELASTICSEARCH = _target("elasticsearch")
OPENSEARCH = _target("opensearch")
