"""Learning to rank of Apache Solr: a LinearModel with the engine's own normalizers, uploaded to the model store."""

from typing import Any

from ranksvm.exceptions import OptionError
from ranksvm.exporting.lucene import LuceneFeature, lucene_features, lucene_test, scale_of_scores
from ranksvm.exporting.request import Request, Target
from ranksvm.exporting.text import json_bytes, shell_word, url_word

__all__ = ["SOLR"]

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
        JSON; Solr ignores the key ``ranksvm``, which has the line that installs it and the self-test.
    """
    features = lucene_features(request)
    document = {
        "class": "org.apache.solr.ltr.model.LinearModel",
        "name": request.name,
        "store": request.store,
        "features": [{"name": feature.name} | _norm(feature) for feature in features],
        "params": {"weights": {feature.name: feature.weight for feature in features}},
        "ranksvm": {
            "install": "curl -X PUT http://localhost:8983/solr/COLLECTION/schema/model-store "
            f"-H 'Content-Type: application/json' --data-binary @{shell_word(request.file)}",
            "query": f"rq={{!ltr model={url_word(request.name)} reRankDocs=100}}",
            "needs": f"features of these names in the feature store {request.store!r}",
            "score": scale_of_scores(request, features),
            "test": lucene_test(request, features),
        },
    }
    return json_bytes(document)


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
        raise OptionError(f"{name!r} cannot name a model of Solr: leave out spaces, quotes, braces and slashes.")


SOLR = Target(
    "solr",
    ".json",
    write,
    non_negative=True,
    store="_DEFAULT_",
    check_name=_check_name,
)
