"""Learning to rank of Apache Solr, uploaded to the model store.

A linear model is a LinearModel with the engine's own normalizers; an additive one is a MultipleAdditiveTreesModel.
"""

from typing import Any

import numpy as np

from ranksvm.exceptions import OptionError
from ranksvm.exporting.lucene import LuceneFeature, lucene_features, lucene_test, scale_of_scores
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.text import json_bytes, shell_word, url_word
from ranksvm.exporting.trees import Leaf, Tree, expected_of, float32_trees, score_of_trees

__all__ = ["SOLR"]

# Solr adds this to the threshold of a node.
SLACK = np.float32(1e-6)
# The value that stands for missing ones in Solr; all other values are above it.
LOWEST_SINGLE = -np.finfo(np.float32).max
# Maximum size of a file, in bytes, in the default configuration of ZooKeeper.
LARGEST = 1_000_000
_NORM = "org.apache.solr.ltr.norm"


def write(request: Request) -> bytes:
    """The model as the model store reads it.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        JSON; Solr ignores the key ``ranksvm``, which has the installation command and the self-test.
    """
    return _linear_model(request) if request.additive is None else _trees_model(request)


def _linear_model(request: Request) -> bytes:
    features = lucene_features(request)
    document = {
        **_head(request, "LinearModel"),
        "features": [{"name": feature.name} | _norm(feature) for feature in features],
        "params": {"weights": {feature.name: feature.weight for feature in features}},
        "ranksvm": _about(request, scale_of_scores(request, features), lucene_test(request, features)),
    }
    return json_bytes(document)


def _trees_model(request: Request) -> bytes:
    trees, offset = float32_trees(request, "Solr")
    document = {
        **_head(request, "MultipleAdditiveTreesModel"),
        "features": [{"name": request.names[column]} for column in request.used_columns()],
        "params": {"trees": [{"weight": "1", "root": _node(tree, request.names)} for tree in trees]},
        "ranksvm": _about(request, score_of_trees(request, offset), expected_of(request, offset)),
    }
    _note_missing(request)
    content = json_bytes(document, indent=None)
    if len(content) > LARGEST:
        request.notes.append(
            f"the file has {len(content) / 1e6:.1f} MB, and ZooKeeper takes 1 MB unless jute.maxbuffer says otherwise: "
            "a model with fewer levels (max_bins) is smaller."
        )
    return content


def _note_missing(request: Request) -> None:
    axes = [axis for table in request.unscaled().tables for axis in table.axes]
    named = list(dict.fromkeys(request.names[axis.feature] for axis in axes if axis.missing))
    if named:
        request.notes.append(
            f"Solr has no missing values: give the defaultValue {LOWEST_SINGLE!s} to {', '.join(named[:5])}"
            f"{', ...' if len(named) > 5 else ''} in the feature store."
        )


def _head(request: Request, model: str) -> dict[str, Any]:
    return {"class": f"org.apache.solr.ltr.model.{model}", "name": request.name, "store": request.store}


def _about(request: Request, score: str, test: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "install": "curl -X PUT http://localhost:8983/solr/COLLECTION/schema/model-store "
        f"-H 'Content-Type: application/json' --data-binary @{shell_word(request.file)}",
        "query": f"rq={{!ltr model={url_word(request.name)} reRankDocs=100}}",
        "needs": f"features of these names in the feature store {request.store!r}",
        "score": score,
        "test": test,
    }


def _node(tree: Tree, names: list[str]) -> dict[str, Any]:
    """A node as Solr reads it: numbers are text, as in its documentation."""
    if isinstance(tree, Leaf):
        return {"value": str(np.float32(tree.value))}
    return {
        "feature": names[tree.column],
        "threshold": _threshold(tree.cut),
        "left": _node(tree.below, names),
        "right": _node(tree.above, names),
    }


def _threshold(cut: float) -> str:
    """The threshold for a cut: Solr adds its slack to it, and values up to the sum count as below the cut."""
    if cut <= LOWEST_SINGLE:
        return str(LOWEST_SINGLE)
    below = np.nextafter(np.float32(cut), np.float32(-np.inf))
    threshold = below - SLACK
    while threshold + SLACK > below:
        threshold = np.nextafter(threshold, np.float32(-np.inf))
    return str(threshold)


def _norm(feature: LuceneFeature) -> dict[str, Any]:
    if feature.shift is None or feature.scale is None:
        return {}
    # parameters are text, as in Solr's documentation
    if feature.style == "min_max":
        limits = {"min": str(feature.shift), "max": str(feature.high)}
        return {"norm": {"class": f"{_NORM}.MinMaxNormalizer", "params": limits}}
    values = {"avg": str(feature.shift), "std": str(feature.scale)}
    return {"norm": {"class": f"{_NORM}.StandardNormalizer", "params": values}}


def _check_name(name: str) -> None:
    # it is written into local parameters of a query: {!ltr model=NAME}
    if not name or any(character.isspace() or character in "{}'\"\\/" for character in name):
        raise OptionError(f"{name!r} cannot name a model of Solr: remove spaces, quotes, braces and slashes.")


SOLR = Target(
    "solr",
    ".json",
    write,
    non_negative=True,
    store="_DEFAULT_",
    check_name=_check_name,
)
