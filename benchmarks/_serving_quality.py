"""Check that a service that gets labels after each ranking has exactly the NDCG of `progressive_validation`."""

import tempfile
from pathlib import Path

import _common as common
import ranksvm
from ranksvm.serving.simulation import Connection, each_query, simulate

__all__ = ["part"]


def driven(start, data, drift):
    """Let a new service rank and then learn from each query; return its NDCG@10 and its weights."""
    with tempfile.TemporaryDirectory() as folder:
        service = start(Path(folder, "events.db"), data.X.shape[1], "--every", "1")
        connection = Connection(f"http://127.0.0.1:{service.port}")
        queries = each_query(data, passes=1, drift=drift)
        for _ in simulate(connection, queries, feedback="labels", metrics="ndcg@10", in_step=True):
            pass
        connection.close()
        found = service.get("/v1/models")
        service.stop()
    return found["measures"]["champion"]["mean"], {one["feature"]: one["weight"] for one in found["weights"]}


def part(start, data, name, drifts):
    """The part of the page about quality."""
    rows = []
    for drift in drifts:
        queries = ((one.X, one.y) for one, _ in each_query(data, passes=1, drift=drift))
        model = ranksvm.SOLARRanker(order=2, gamma=100.0, random_state=0)
        expected = ranksvm.progressive_validation(model, queries, metrics="ndcg@10")
        ndcg, weights = driven(start, data, drift)
        own = dict(zip((f"f{j + 1}" for j in range(data.X.shape[1])), expected.models[0].coef_.tolist(), strict=True))
        same = all(own[feature] == weight for feature, weight in weights.items())
        equal = "all bits: met" if ndcg == expected["ndcg@10"] and same else "**DIFFERENT**"
        rows.append([name, drift, f"{data.queries.n_queries:,}", repr(ndcg), repr(expected["ndcg@10"]), equal])
    text = (
        "## Quality\n\n`ranksvm simulate --clicks none --in-step` has each query ranked, sends its labels, and waits "
        "until they were learnt from. Nothing is random then: the NDCG@10 of the service's model and its weights must "
        "equal those of `progressive_validation` on the same queries. With drift each feature takes its neighbor's "
        "place, from the second half on."
    )
    head = ["data", "drift", "queries", "NDCG@10 of the service", "`progressive_validation`", "equal (goal: all bits)"]
    return "\n\n".join([text, common.table(head, rows)])
