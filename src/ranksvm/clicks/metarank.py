"""Events in the format of Metarank: lists that were shown, clicks, and the features of items."""

import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ranksvm._util.compression import BrokenStreamError, compression_of, decompressed, first_text
from ranksvm._util.types import PathLike
from ranksvm.clicks._ids import Coded
from ranksvm.clicks.log import ClickLog
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, ParseError

__all__ = ["MetarankEvents", "has_metarank_events", "read_metarank"]

_REQUIRED = {"item": ("item",), "user": ("user",), "ranking": ("id", "items"), "interaction": ("item", "type")}
_USER = "user events"
_OTHER = "interactions of other types"
_ALONE = "interactions without a ranking"
_ELSEWHERE = "interactions with an item that their ranking did not show"
_REASONS = (_USER, _OTHER, _ALONE, _ELSEWHERE)


@dataclass(frozen=True)
class MetarankEvents:
    """Contents of a file of Metarank's events.

    Parameters
    ----------
    log : ClickLog
        The rankings in the order of time, with the interactions as clicks.
    data : RankingData
        Features of the items that were shown, one row for each query and item.
    skipped : dict of str to int
        Number of events that neither ``log`` nor ``data`` uses, by reason.

    Examples
    --------
    >>> import json, tempfile
    >>> from ranksvm.clicks import read_metarank
    >>> ranking = {"event": "ranking", "id": "r", "timestamp": 1000, "items": [{"id": "a"}]}
    >>> click = {"event": "interaction", "id": "e", "timestamp": 2000, "type": "click", "item": "a"}
    >>> with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
    ...     _ = file.write("\\n".join(map(json.dumps, [ranking, click])))
    ...     file.flush()
    ...     events = read_metarank(file.name)
    >>> events.skipped["interactions without a ranking"]
    1
    """

    log: ClickLog
    data: RankingData
    skipped: dict[str, int]


def read_metarank(
    path: PathLike, *, query: str | None = "query", types: Collection[str] | None = None
) -> MetarankEvents:
    """Read events of Metarank: a click log from rankings and interactions, and features from items.

    The file has one JSON object on each line, whose ``event`` is "item", "ranking", "interaction" or "user"; see
    "Supported events" in the documentation of Metarank. The whole file is read into memory. User events are skipped, as
    are interactions without a ranking, or with an item that their ranking did not show.

    Features are the fields of an item that are numbers or booleans, as they were when the item was first shown for the
    query: later item events do not change them. A number in the ``fields`` of an item within a ranking, and
    its ``relevancy``, are features as well. A feature that is not known is NaN, which `fit` refuses: fill it, or begin
    a Pipeline with ``SimpleImputer``. Fields that are text or lists are not read.

    Parameters
    ----------
    path : path-like
        The file: JSON lines, possibly compressed (gzip, bzip2, xz, zstd).
    query : str or None, default "query"
        Field of a ranking that names its query: rankings with the same value are impressions of one query. A ranking
        without this field has its own query, named by the id of the ranking. With None, every ranking has its own
        query: use it if relevance depends on the user.
    types : collection of str, optional
        Types of the interactions that count as clicks. None: all.

    Returns
    -------
    MetarankEvents
        The log, the features, and the number of events that were skipped. The labels of ``data`` are the ``label`` of
        each item in its ranking, or NaN if it has none.

    Raises
    ------
    ParseError
        When a line is not a JSON object, or not an event, or a ranking has the id of an earlier one.
    DataError
        When there are no rankings, or when `ClickLog` raises it.
    MissingDependencyError
        When the file is compressed by zstd, and zstandard is not installed.

    References
    ----------
    "Supported events", documentation of Metarank, https://docs.metarank.ai/reference/event-schema

    Examples
    --------
    >>> import json, tempfile
    >>> from ranksvm.clicks import read_metarank
    >>> lines = [
    ...     {"event": "item", "id": "e1", "timestamp": "1000", "item": "a", "fields": [{"name": "price", "value": 3}]},
    ...     {"event": "item", "id": "e2", "timestamp": "1000", "item": "b", "fields": [{"name": "price", "value": 5}]},
    ...     {"event": "ranking", "id": "r", "timestamp": "2000", "items": [{"id": "b"}, {"id": "a"}]},
    ...     {"event": "interaction", "id": "e3", "ranking": "r", "timestamp": "3000", "type": "click", "item": "a"},
    ... ]
    >>> with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
    ...     _ = file.write("\\n".join(map(json.dumps, lines)))
    ...     file.flush()
    ...     events = read_metarank(file.name)
    >>> events.log
    ClickLog(1 impressions, 2 rows, 1 clicks, 1 queries)
    >>> events.data.feature_names, events.data.docid.tolist(), events.data.X.tolist()
    (('price',), ['b', 'a'], [[5.0], [3.0]])
    """
    source = os.fspath(path)
    rankings: dict[str, dict[str, Any]] = {}
    items, interactions, skipped = [], [], dict.fromkeys(_REASONS, 0)
    for number, event in _events(source):
        kind = event["event"]
        if kind == "user":
            skipped[_USER] += 1
        elif kind == "item":
            items.append(event)
        elif kind == "interaction":
            interactions.append(event)
        elif str(event["id"]) in rankings:
            raise ParseError(source, number, 1, f"an earlier ranking has the id {event['id']!r} already")
        else:
            rankings[str(event["id"])] = event
    if not rankings:
        raise DataError(f"{source} has no ranking events: without them there is nothing that users were shown.")
    clicked = _clicks(rankings, interactions, types, skipped)
    for id, ranking in rankings.items():
        fields = _values(ranking)
        ranking["query"] = id if query is None or fields.get(query) is None else str(fields[query])
    return MetarankEvents(_log(rankings, clicked), _data(rankings, items), skipped)


def has_metarank_events(path: PathLike) -> bool:
    """Whether a file begins like a JSON object, as a file of Metarank's events does."""
    with open(path, "rb") as file:
        return first_text(file).lstrip().startswith(b"{")


def _events(source: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The events of a file, each with the number of its line, and its timestamp in milliseconds."""
    for number, line in enumerate(_lines(source), 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except ValueError as error:  # includes text that is not UTF-8
            raise ParseError(source, number, 1, f"the line is not JSON: {error}") from None
        kind = event.get("event") if isinstance(event, dict) else None
        if kind not in _REQUIRED:
            known = ", ".join(_REQUIRED)
            raise ParseError(source, number, 1, f"expected an object whose 'event' is one of {known}, got {kind!r}")
        missing = [name for name in (*_REQUIRED[kind], "timestamp") if event.get(name) is None]
        if missing:
            raise ParseError(source, number, 1, f"the {kind} event has no {missing[0]!r}")
        try:
            event["timestamp"] = _milliseconds(event["timestamp"])
            if kind == "ranking":
                event["items"] = [dict(shown, id=str(shown["id"])) for shown in event["items"]]
            _values(event)
        except (ValueError, TypeError, KeyError, AttributeError):
            wanted = "a timestamp, fields [{'name': ..., 'value': ...}], and items [{'id': ...}] in a ranking"
            raise ParseError(source, number, 1, f"the {kind} event is malformed: expected {wanted}") from None
        yield number, event


def _lines(source: str) -> Iterator[bytes]:
    with open(source, "rb") as file:
        kind = compression_of(file.read(6))
        file.seek(0)
        if kind is None:
            yield from file
            return
        rest = b""
        try:
            for chunk in decompressed(file, kind):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from lines
        except BrokenStreamError as error:
            raise DataError(f"{source}: {error}.") from error
        yield rest


def _milliseconds(timestamp: Any) -> int:
    """Milliseconds since 1970, from a number of milliseconds or a date in ISO 8601."""
    if str(timestamp).isdigit():
        return int(timestamp)
    time = datetime.fromisoformat(timestamp)
    return round(1000 * (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())


def _values(event: dict[str, Any]) -> dict[str, Any]:
    return {field["name"]: field["value"] for field in event.get("fields") or ()}


def _clicks(
    rankings: dict[str, dict[str, Any]],
    interactions: list[dict[str, Any]],
    types: Collection[str] | None,
    skipped: dict[str, int],
) -> set[tuple[str, str]]:
    """Pairs (ranking, item) of the interactions that count as clicks; counts the others in ``skipped``."""
    shown = {(id, item["id"]) for id, ranking in rankings.items() for item in ranking["items"]}
    clicked = set()
    for event in interactions:
        key = str(event.get("ranking")), str(event["item"])
        if types is not None and event["type"] not in types:
            skipped[_OTHER] += 1
        elif event.get("ranking") is None:
            skipped[_ALONE] += 1
        elif key not in shown:
            skipped[_ELSEWHERE] += 1
        else:
            clicked.add(key)
    return clicked


def _in_time(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events sorted by time; simultaneous events stay in the order of the file."""
    return sorted(events, key=lambda event: event["timestamp"])


def _log(rankings: dict[str, dict[str, Any]], clicked: set[tuple[str, str]]) -> ClickLog:
    shown = _in_time(rankings.values())
    names = [str(ranking["id"]) for ranking in shown]
    rows = [
        (number, ranking["query"], item["id"], rank, ranking["timestamp"])
        for number, ranking in enumerate(shown)
        for rank, item in enumerate(ranking["items"], 1)
    ]
    if not rows:
        raise DataError("the rankings show no items: there is nothing to learn from.")
    impression, query, document, rank, time = zip(*rows, strict=True)
    return ClickLog(
        query,
        document,
        rank,
        [(names[number], item) in clicked for number, item in zip(impression, document, strict=True)],
        impression=Coded(np.array(impression, dtype=np.int32), np.array(names)),
        time=np.array(time, dtype="datetime64[ms]"),
    )


def _data(rankings: dict[str, dict[str, Any]], items: list[dict[str, Any]]) -> RankingData:
    """Features of each item of each query, as they were when it was first shown for the query."""
    changes = _in_time(items)
    known: dict[str, dict[str, float]] = {}
    rows: dict[tuple[str, str], tuple[dict[str, float], float]] = {}
    place = 0
    for ranking in _in_time(rankings.values()):
        while place < len(changes) and changes[place]["timestamp"] <= ranking["timestamp"]:
            change = changes[place]
            known.setdefault(str(change["item"]), {}).update(_numbers(_values(change)))
            place += 1
        for item in ranking["items"]:
            own = _numbers(_values(item) | {"relevancy": item.get("relevancy")})
            label = _numbers({"label": item.get("label")}).get("label", np.nan)
            rows.setdefault((ranking["query"], item["id"]), (known.get(item["id"], {}) | own, label))
    column = {
        name: number for number, name in enumerate(dict.fromkeys(name for row, _ in rows.values() for name in row))
    }
    X = np.full((len(rows), len(column)), np.nan)
    for number, (features, _) in enumerate(rows.values()):
        X[number, [column[name] for name in features]] = list(features.values())
    return RankingData(
        X,
        np.array([label for _, label in rows.values()]),
        np.array([query for query, _ in rows]),
        np.array([document for _, document in rows]),
        tuple(column),
    )


def _numbers(values: dict[str, Any]) -> dict[str, float]:
    """The values that are numbers or booleans."""
    return {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
