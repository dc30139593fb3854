"""The learning-to-rank plugins of Elasticsearch and OpenSearch: ``model/linear`` with feature normalizers."""

import json
from typing import Any

from ranksvm.exceptions import OptionError
from ranksvm.exporting.lucene import LuceneFeature, lucene_features, lucene_test, scale_of_scores
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.text import json_bytes, shell_word, url_word

__all__ = ["ELASTICSEARCH", "OPENSEARCH"]


def write(request: Request) -> bytes:
    """The model as ``_createmodel`` reads it, under the key ``request``: the plugins refuse any other key there.

    Parameters
    ----------
    request : Request
        What to write.

    Returns
    -------
    bytes
        JSON; the key ``ranksvm`` has the line that installs it and the self-test.
    """
    features = lucene_features(request)
    # the plugins read the definition from a string that holds JSON
    model: dict[str, Any] = {
        "type": "model/linear",
        "definition": json.dumps({feature.name: feature.weight for feature in features}, ensure_ascii=False),
    }
    normalizers = {feature.name: _normalizer(feature) for feature in features if feature.shift is not None}
    if normalizers:
        model["feature_normalizers"] = normalizers
    url = f"http://localhost:9200/_ltr/_featureset/{url_word(request.store)}/_createmodel"
    document = {
        "ranksvm": {
            "install": f"jq .request {shell_word(request.file)} | curl -X POST {url} "
            "-H 'Content-Type: application/json' --data-binary @-",
            "query": {"sltr": {"params": {}, "model": request.name}},
            "needs": f"features of these names in the feature set {request.store!r}",
            "score": scale_of_scores(request, features),
            "test": lucene_test(request, features),
        },
        "request": {"model": {"name": request.name, "model": model}},
    }
    if request.ranges is None:
        request.notes.append(
            "scores can be negative, which Lucene refuses: rescore with query_weight 0, or export with non_negative "
            "(--non-negative)."
        )
    return json_bytes(document)


def _normalizer(feature: LuceneFeature) -> dict[str, Any]:
    if feature.style == "min_max":
        return {"min_max": {"minimum": feature.shift, "maximum": feature.high}}
    return {"standard": {"mean": feature.shift, "standard_deviation": feature.scale}}


def _check_name(name: str) -> None:
    if not name or name[0] in "_-+" or any(character.isspace() or character in '\\/*?"<>|,#' for character in name):
        raise OptionError(f'{name!r} cannot name a model here: leave out spaces and any of \\ / * ? " < > | , #.')


def _target(name: str) -> Target:
    return Target(name, ".json", write, non_negative=True, store="features", check_name=_check_name)


ELASTICSEARCH = _target("elasticsearch")
OPENSEARCH = _target("opensearch")
