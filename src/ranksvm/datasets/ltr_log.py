"""Features that the learning-to-rank plugins of Elasticsearch and OpenSearch have logged."""

import io
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ranksvm._util.compression import BrokenStreamError, compression_of, decompressed
from ranksvm.datasets.table import Columns
from ranksvm.exceptions import DataError, ParseError

__all__ = ["is_ltr_log", "read_ltr_log"]

# the field of a hit that holds the logged features
_FIELD = "_ltrlog"


def is_ltr_log(head: bytes) -> bool:
    """Whether a decompressed file begins with a JSON object, as no other text of ranking data does."""
    return head.startswith(b"{")


def read_ltr_log(content: bytes, name: str, columns: Columns, dtype: DTypeLike | None) -> dict[str, Any]:
    """Read logged features, and return the fields of a RankingData: a row for each hit, in the order of the file.

    Each line is the response to the search for one query; the user has added the query's id under a key of its own
    (``qid``). A hit has one log of features in ``fields._ltrlog``, which ``"ext": {"ltr_log": ...}`` asks for; ``_id``
    is the id of the document. A feature has no value if its query did not match the document; it becomes 0, or NaN if
    values may be missing. Features are in the order in which the file first names them.

    Parameters
    ----------
    content : bytes
        The file, compressed or not.
    name : str
        Its name, for messages.
    columns : Columns
        The key of the query id, and features that are not read. Labels must not be required: a log has none.
    dtype : numpy.dtype
        Type of X; None: float32, as in the engine.

    Raises
    ------
    ParseError
        When a line is not JSON.
    DataError
        When a line is not a response of the plugin, a hit has no logged features, or labels are required.
    """
    if columns.require_labels:
        raise DataError(
            f"{name} is a log of features, which has no labels: pass relevance judgments (--qrels FILE), or read it "
            "with require_labels=False and set the labels (Qrels.labels_of)."
        )
    qid: list[Any] = []
    docid: list[str] = []
    values: list[dict[str, float | None]] = []
    kind = np.dtype(np.float32 if dtype is None else dtype)
    for line, query, hit in _hits(content, name, columns.qid):
        if "_id" not in hit:
            raise DataError(f"{name}:{line}: a hit has no _id, which says which document it is.")
        qid.append(query)
        docid.append(str(hit["_id"]))
        values.append(_features(hit, f"{name}:{line}", kind))
    names = [key for key in dict.fromkeys(key for row in values for key in row) if key not in columns.ignore]
    if not names:
        raise DataError(f'{name} has no hit with features: search with "ext": {{"ltr_log": ...}}.')
    absent = np.nan if columns.missing else 0.0
    X = np.full((len(values), len(names)), absent, dtype=kind)
    for row, found in zip(X, values, strict=True):
        row[:] = [absent if (value := found.get(key)) is None else value for key in names]
    ids = np.array(qid if all(isinstance(query, int) for query in qid) else list(map(str, qid)))
    return {"X": X, "y": np.zeros(len(X)), "qid": ids, "docid": np.array(docid), "feature_names": names}


def _hits(content: bytes, name: str, key: str) -> Iterator[tuple[int, Any, dict[str, Any]]]:
    """For each hit: the number of its line, the id of its query, and the hit."""
    kind = compression_of(content)
    try:
        text = content if kind is None else b"".join(decompressed(io.BytesIO(content), kind))
    except BrokenStreamError as error:
        raise DataError(f"{name}: {error}") from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            response = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ParseError(name, number, 1, f"a line must be one response in JSON: {error}") from None
        query = response.get(key) if isinstance(response, dict) else None
        if not isinstance(query, str | int) or isinstance(query, bool) or query == "":
            raise DataError(
                f"{name}:{number}: the response has no query id {key!r}, a number or text, which has to be added to it."
            )
        try:
            hits = response["hits"]["hits"]
            yield from ((number, query, dict(hit)) for hit in hits)
        except (KeyError, TypeError, ValueError):
            raise DataError(f"{name}:{number}: there is no hits.hits: this is no response to a search.") from None


def _features(hit: dict[str, Any], place: str, kind: np.dtype) -> dict[str, float | None]:
    """The logged features of a hit, within the range of a type; None for a feature without a value."""
    try:
        logs = [log for entry in hit["fields"][_FIELD] for log in entry.values()]
        if len(logs) != 1:
            raise DataError(f"{place}: the document {hit.get('_id')!r} has {len(logs)} logs: log one feature set.")
        return {feature["name"]: _number(feature, place, kind) for feature in logs[0]}
    except (KeyError, TypeError, AttributeError):
        raise DataError(
            f'{place}: the document {hit.get("_id")!r} has no logged features in fields.{_FIELD}: search with "ext": '
            '{"ltr_log": ...}.'
        ) from None


def _number(feature: dict[str, Any], place: str, kind: np.dtype) -> float | None:
    value, largest = feature.get("value"), float(np.finfo(kind).max)
    if value is None:
        return None
    # an int may be too large for a float
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= largest:
        raise DataError(
            f"{place}: the value of the feature {feature['name']!r} is {value!r:.40}, not a finite number of {kind}."
        )
    return float(value)
