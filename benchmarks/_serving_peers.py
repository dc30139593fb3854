"""Compare the loop of a learning service (rank a query, get its labels, learn) with River and Vowpal Wabbit.

Each tool learns a linear model from the differences of documents with different labels, in the measuring process and
without the requests and the log of a service. For each tool, the step size is chosen by the NDCG of the whole run.
"""

import importlib.util
import time

import numpy as np

import _common as common
import ranksvm
from ranksvm.metrics import CumulativeMetrics

__all__ = ["part"]

RATES = (0.01, 0.1, 1.0)


class Ours:
    """SOLAR-II of ranksvm; ``rate`` stands for 1 / gamma."""

    name = "ranksvm, SOLAR-II"

    def __init__(self, rate):
        self._model, self._new = ranksvm.SOLARRanker(order=2, gamma=1 / rate, random_state=0), True

    def scores(self, X):
        return np.zeros(len(X)) if self._new else self._model.predict(X)

    def learn(self, X, y):
        self._model.partial_fit(X, y)
        self._new = False


class River:
    """Logistic regression of River on differences, by stochastic gradient steps."""

    name = "River, logistic regression"

    def __init__(self, rate):
        from river import linear_model, optim

        self._model = linear_model.LogisticRegression(optim.SGD(rate), intercept_lr=0.0)

    def scores(self, X):
        return np.array([self._model.predict_proba_one(_named(row))[True] for row in X])

    def learn(self, X, y):
        for difference in _differences(X, y):
            self._model.learn_one(_named(difference), True)


class VowpalWabbit:
    """Logistic regression of Vowpal Wabbit on differences, with its default steps (adaptive, normalized, invariant)."""

    name = "Vowpal Wabbit, logistic regression"

    def __init__(self, rate):
        import vowpalwabbit

        self._model = vowpalwabbit.Workspace(f"--quiet --noconstant --loss_function logistic --learning_rate {rate}")

    def scores(self, X):
        return np.array([self._model.predict(self._example(row)) for row in X])

    def learn(self, X, y):
        for difference in _differences(X, y):
            example = self._example(difference)
            example.set_label_string("1")
            self._model.learn(example)
            self._model.finish_example(example)

    def _example(self, row):
        return self._model.example({"a": list(enumerate(row.tolist()))})


def _named(row):
    return dict(enumerate(row.tolist()))


def _differences(X, y):
    """For each pair with different labels: the preferred document minus the other one."""
    preferred, other = np.nonzero(y[:, None] > y[None, :])
    return X[preferred] - X[other]


def run(tool, queries):
    """NDCG@10 of queries, each ranked before the model learned from it, and seconds for ranking and for learning."""
    metric, seconds = CumulativeMetrics("ndcg@10"), np.zeros(2)
    for X, y in queries:
        start = time.perf_counter()
        scores = tool.scores(X)
        middle = time.perf_counter()
        tool.learn(X, y)
        seconds += middle - start, time.perf_counter() - middle
        metric.add(y, scores)
    return metric.means["ndcg@10"], seconds


def part(data, name):
    """The part of the page about other tools."""
    queries = [(data.X[rows].astype(np.float64), data.y[rows]) for _, rows in data.queries]
    n_pairs = sum(len(_differences(X, y)) for X, y in queries)
    tools = [Ours]
    missing = []
    for module, tool in (("river", River), ("vowpalwabbit", VowpalWabbit)):
        (missing if importlib.util.find_spec(module) is None else tools).append(tool)
    rows = []
    for tool in tools:
        found = [(*run(tool(rate), queries), rate) for rate in RATES]
        ndcg, (ranking, learning), rate = max(found, key=lambda one: one[0])
        rates = len(queries) / (ranking + learning), len(data.y) / ranking, n_pairs / learning
        rows.append([tool.name, f"{rate:g}", f"{ndcg:.4f}", *(f"{one:,.0f}" for one in rates)])
    text = (
        f"## The same loop in other tools\n\nOn {name} ({len(queries)} queries, {n_pairs:,} pairs) each query is "
        "ranked, and then learnt from: a linear model of the differences of documents with different labels, in one "
        "process without requests or a log. The step (for ranksvm 1 / gamma) is the one of "
        f"{', '.join(f'{rate:g}' for rate in RATES)} with the highest NDCG of the whole run."
    )
    head = ["tool", "step", "NDCG@10", "queries per second", "documents ranked per second", "pairs learnt per second"]
    absent = [f"{tool.name.split(',')[0]} is not installed here." for tool in missing]
    versions = ["Versions: " + common.versions("river", "vowpalwabbit") + "."] if not missing else []
    return "\n\n".join([text, common.table(head, rows), *absent, *versions])
