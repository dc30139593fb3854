"""Simulation of a running service's users: queries from labeled data, answered by simulated clicks or labels."""

import http.client
import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import numpy as np

from ranksvm._util.types import Json
from ranksvm.clicks import attractiveness
from ranksvm.clicks.simulation import clicks_on_lists, examination
from ranksvm.data.text_categories import refuse_texts
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics import CumulativeMetrics
from ranksvm.serving.requests import FLOAT32, JSON

__all__ = ["USERS", "Connection", "Simulated", "each_query", "simulate"]

# Models of users that answer with clicks; see `ranksvm.clicks.simulate_clicks`.
USERS = ("position", "trust", "cascade")
# Probability of a click on an examined document without relevance.
_NOISE = 0.1


class Connection:
    """A connection to a service that is kept open.

    Parameters
    ----------
    url : str
        Where the service is.
    key : str, optional
        Its API key.
    """

    def __init__(self, url: str, key: str | None = None):
        try:
            parts = urlsplit(url if "//" in url else f"//{url}")
            name, port = parts.hostname, parts.port
        except ValueError:
            name = None
        if not name or parts.scheme not in ("", "http", "https"):
            raise OptionError(f"{url!r} is not the address of a service, such as http://localhost:8765.")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.url = url
        self._connection = kind(name, port, timeout=60)
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def ask(self, method: str, path: str, body: bytes | Json | None = None) -> dict[str, Any]:
        """Send a request, with a body of JSON unless it is bytes, and return the decoded response.

        Raises
        ------
        DataError
            When the service refuses the request; the message is the service's.
        OSError
            When the service does not answer.
        """
        content, kind = (
            (body, FLOAT32) if isinstance(body, bytes) else (None if body is None else json.dumps(body), JSON)
        )
        try:
            self._connection.request(method, path, content, {"Content-Type": kind, **self._headers})
            answer = self._connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise OSError(
                f"{self.url} does not answer as a service does ({reason}): check the address, and that `ranksvm serve` "
                "is running there"
            ) from error
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise DataError(f"{self.url} is not a learning service: it answered {answer.status}, and no JSON object.")
        if answer.status >= 400:
            raise DataError(f"{self.url} answers {answer.status}: {found.get('detail', found)}")
        return found

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Simulated(NamedTuple):
    """Result of a simulation.

    Parameters
    ----------
    metrics : CumulativeMetrics
        Metrics of the rankings as they were shown, by the true labels.
    n_clicks : int
        Number of clicks.
    last : int
        Sequence number of the last feedback.
    seconds : float
        Time taken.
    """

    metrics: CumulativeMetrics
    n_clicks: int
    last: int
    seconds: float


def simulate(
    connection: Connection,
    queries: Iterator[tuple[RankingData, np.ndarray]],
    *,
    feedback: str,
    metrics: str,
    in_step: bool = False,
    random_state: int = 0,
) -> Iterator[Simulated]:
    """Send queries to the service one after another, and give feedback on each ranking.

    Parameters
    ----------
    connection : Connection
        The service.
    queries : iterator of (RankingData, ndarray)
        Queries with labels, each with the relevance of its documents, from 0 to 1.
    feedback : str
        "labels", or one of `USERS`, the model of the users that click.
    metrics : str
        Names of the metrics.
    in_step : bool, default False
        Whether each query waits until the service has learned from the previous one.
    random_state : int, default 0
        Seed of the clicks.

    Yields
    ------
    Simulated
        After each query, the results so far.
    """
    random, start = np.random.default_rng(random_state), time.perf_counter()
    cumulative, n_clicks, last = CumulativeMetrics(metrics), 0, 0
    for data, gain in queries:
        ranking = _ranked(connection, data)
        row = {id: number for number, id in enumerate(_ids(data))}
        order = np.array([row[id] for id in ranking["order"]])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        cumulative.add(data.y, -rank.astype(np.float64))
        answer: dict[str, Any] = {"labels": data.y.tolist()}
        if feedback != "labels":
            gains = gain[order][np.newaxis]
            examined = examination(feedback, gains, np.ones(1), _NOISE)
            (clicked,) = clicks_on_lists(feedback, gains, np.ones_like(gains, dtype=bool), examined, _NOISE, random)
            n_clicks += int(clicked.sum())
            answer = {"clicks": [ranking["order"][place] for place in np.flatnonzero(clicked)]}
        last = connection.ask("POST", f"/v1/events/{ranking['event']}/feedback", answer)["seq"]
        while in_step and connection.ask("GET", "/v1/models")["learning"]["position"] < last:
            time.sleep(0.002)
        yield Simulated(cumulative, n_clicks, last, time.perf_counter() - start)


def _ranked(connection: Connection, data: RankingData) -> dict[str, Any]:
    """The service's ranking of a query, whose features are sent as float32 if they are float32.

    If the documents have ids, all features are sent as JSON, in float64.
    """
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    query = {} if data.qid is None else {"query": str(data.qid[0])}
    if data.docid is not None:
        return connection.ask("POST", "/v1/rank", {"matrix": X.astype(np.float64).tolist(), "ids": _ids(data), **query})
    if X.dtype == np.float32:
        path = "/v1/rank?" + urlencode({"features": X.shape[1], **query})
        return connection.ask("POST", path, X.astype("<f4").tobytes())
    return connection.ask("POST", "/v1/rank", {"matrix": X.astype(np.float64).tolist(), **query})


def _ids(data: RankingData) -> list[str]:
    """Ids of the documents of a query; if the data have no ids, row numbers, as in the service."""
    return [str(id) for id in (range(data.n_rows) if data.docid is None else data.docid.tolist())]


def each_query(data: RankingData, *, passes: int, drift: str) -> Iterator[tuple[RankingData, np.ndarray]]:
    """The queries of data, one after another; drift moves each feature to the next column.

    Parameters
    ----------
    data : RankingData
        Queries with labels.
    passes : int
        Passes over the data.
    drift : str
        "none"; "sudden": in the second half; "gradual": with a chance that grows from 0 to 1.

    Yields
    ------
    tuple of RankingData and ndarray
        A query, and the relevance of its documents, from 0 to 1: the g of `ranksvm.clicks.simulate_clicks`.
    """
    refuse_texts(data, "a service takes numbers")
    random, gain = np.random.default_rng(0), attractiveness(data, 0.0)
    n_queries, number = passes * data.queries.n_queries, 0
    for _ in range(passes):
        for _, rows in data.queries:
            one = data.select(rows)
            chance = {"none": 0.0, "sudden": float(2 * number >= n_queries), "gradual": number / n_queries}[drift]
            if random.random() < chance:
                X = one.X if isinstance(one.X, np.ndarray) else one.X.toarray()
                one = RankingData(np.roll(X, 1, axis=1), one.y, one.qid, one.docid, one.feature_names)
            yield one, gain[rows]
            number += 1
