"""Each convention against the tool it is named after."""

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score

from ranksvm import RankSVM, metrics, read_letor
from ranksvm.exceptions import OptionError

pytestmark = pytest.mark.filterwarnings("ignore::ranksvm.exceptions.OneQueryWarning")


@pytest.fixture
def ranked():
    """Labels, scores with ties, and 80 queries of 1 to 30 documents, some without a relevant one."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 31, 80)
    qid = np.repeat(np.arange(80), sizes)
    y = rng.choice(5, len(qid), p=[0.5, 0.2, 0.15, 0.1, 0.05])
    y[np.isin(qid, [3, 40])] = 0
    scores = rng.integers(-8, 9, len(qid)) / 4 + 0.3 * y
    return y, scores, qid, sizes


def test_trec_is_trec_eval(ranked):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")
    y, scores, qid, _ = ranked
    scores = scores + 1e-9 * np.arange(len(scores))  # different in double, tied in single precision
    docid = np.array([f"d{number * 7919 % 10007}" for number in range(len(y))])
    qrel, run = {}, {}
    for query, doc, label, score in zip(qid.astype(str), docid, y, scores, strict=True):
        qrel.setdefault(query, {})[doc] = int(label)
        run.setdefault(query, {})[doc] = float(score)
    theirs = {
        "ndcg": "ndcg",
        "ndcg@5": "ndcg_cut_5",
        "map": "map",
        "map@5": "map_cut_5",
        "mrr": "recip_rank",
        "p@5": "P_5",
        "p@10": "P_10",
        "r@5": "recall_5",
    }
    families = {"ndcg", "ndcg_cut.5", "map", "map_cut.5", "recip_rank", "P.5,10", "recall.5"}
    expected = pytrec_eval.RelevanceEvaluator(qrel, families).evaluate(run)
    order = np.random.default_rng(0).permutation(len(y))  # rows in any order
    result = metrics.evaluate(
        y[order], scores[order], qid[order].astype(str), list(theirs), convention="trec", docid=docid[order]
    )
    for ours, name in theirs.items():
        np.testing.assert_allclose(
            result.per_query[ours], [expected[query][name] for query in result.qid], atol=1e-12, err_msg=ours
        )


@pytest.mark.parametrize("k", [None, 1, 5, 40])
def test_sklearn_is_ndcg_score(ranked, k):
    y, scores, qid, _ = ranked
    name = "ndcg" if k is None else f"ndcg@{k}"
    values = metrics.evaluate(y, scores, qid, name, convention="sklearn").per_query[name]
    for query in np.unique(qid):
        rows = qid == query
        if rows.sum() > 1:  # ndcg_score refuses single documents
            assert values[query] == pytest.approx(ndcg_score([y[rows]], [scores[rows]], k=k), abs=1e-12)


@pytest.mark.filterwarnings("ignore:No positive class")
def test_sklearn_is_average_precision_score(ranked):
    y, scores, qid, _ = ranked
    values = metrics.evaluate(y, scores, qid, "map", convention="sklearn").per_query["map"]
    expected = [average_precision_score(y[qid == query] > 0, scores[qid == query]) for query in np.unique(qid)]
    np.testing.assert_allclose(values, expected, atol=1e-12)


def test_the_order_of_tied_rows_does_not_change_average_precision_at_k_of_sklearn():
    y, scores = np.array([2.0, 0.0, 0.0, 1.0]), np.array([3.0, 3.0, 2.0, 2.0])
    for rows in ([0, 1, 2, 3], [1, 0, 3, 2]):
        found = metrics.evaluate(y[rows], scores[rows], np.zeros(4), "map@1,map@3,map", convention="sklearn")
        # each tied place holds a relevant document with probability 1/2, and the precision at each tie's end is 1/2
        assert found.means == pytest.approx({"map@1": 0.125, "map@3": 0.375, "map": 0.5})


@pytest.mark.parametrize("metric", ["pairwise_accuracy", "kendall_tau", "concordance_index"])
def test_conventions_affect_pairs_only_by_rounding_scores(metric):
    y, close = np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0 + 1e-9, 1.0 + 2e-9])
    values = {
        name: metrics.evaluate(y, close, np.zeros(3), metric, convention=name)[metric] for name in metrics.CONVENTIONS
    }
    equal = 0.5 if metric == "concordance_index" else 0.0
    assert values == {name: equal if rules.float32_scores else 1.0 for name, rules in metrics.CONVENTIONS.items()}


def test_lightgbm_is_lightgbm(ranked):
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    y, scores, qid, sizes = ranked
    X = np.zeros((len(y), 1))
    X[0] = 1
    train = lightgbm.Dataset(X, y, group=sizes, init_score=np.zeros(len(y)))
    valid = lightgbm.Dataset(X, y, group=sizes, init_score=scores, reference=train)
    cutoffs = [1, 3, 5, 10, 50]
    found = {}
    lightgbm.train(
        # leaves too large for any split: the scores stay those given
        {
            "objective": "lambdarank",
            "metric": ["ndcg", "map"],
            "eval_at": cutoffs,
            "min_data_in_leaf": len(y),
            "verbose": -1,
        },
        train,
        num_boost_round=1,
        valid_sets=[valid],
        valid_names=["valid"],
        callbacks=[lightgbm.record_evaluation(found)],
    )
    result = metrics.evaluate(y, scores, qid, list(found["valid"]), convention="lightgbm")
    assert len(result.means) == 2 * len(cutoffs)
    for name, values in found["valid"].items():
        assert result.means[name] == pytest.approx(values[0], abs=1e-9), name


def test_xgboost_is_xgboost(ranked):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    y, scores, qid, _ = ranked
    binary = (y > 0).astype(float)
    for labels, names in ((y, ["ndcg@1", "ndcg@5", "ndcg"]), (binary, ["map", "map@5", "pre@5", "pre@10"])):
        data = xgboost.DMatrix(np.zeros((len(y), 1)), labels, qid=qid, base_margin=scores)
        booster = xgboost.train({"objective": "rank:ndcg", "eval_metric": names}, data, num_boost_round=0)
        found = dict(part.split(":") for part in booster.eval(data).split("\t")[1:])
        for name in names:
            ours = name.replace("pre", "p")
            value = metrics.evaluate(labels, scores, qid, ours, convention="xgboost").means[ours]
            assert value == pytest.approx(float(found[f"eval-{name}"]), abs=1e-6), name


def test_why_xgboost_prints_081_where_the_default_is_048(shared_data):
    """Queries without a relevant document count 1 there: this is the whole difference."""
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    train, test = (read_letor(shared_data / "MQ2008" / "Fold1" / f"{part}.txt.gz") for part in ("train", "test"))
    scores = RankSVM(C=2**-3).fit(train.X, train.y, qid=train.qid).predict(test.X)
    ours = metrics.evaluate(test.y, scores, test.qid, "ndcg@10")
    theirs = metrics.evaluate(test.y, scores, test.qid, "ndcg@10", convention="xgboost")
    assert (ours.n_queries, ours.n_without_relevant) == (156, 51)
    assert ours["ndcg@10"] == pytest.approx(0.4841, abs=5e-4)
    assert theirs["ndcg@10"] == pytest.approx(ours["ndcg@10"] + 51 / 156, abs=1e-9)
    number = test.queries.numbers()
    order = np.argsort(number, kind="stable")
    data = xgboost.DMatrix(np.zeros((len(order), 1)), test.y[order], qid=number[order], base_margin=scores[order])
    booster = xgboost.train({"objective": "rank:ndcg", "eval_metric": "ndcg@10"}, data, num_boost_round=0)
    printed = float(booster.eval(data).split(":")[1])
    assert printed == pytest.approx(theirs["ndcg@10"], abs=1e-6)
    assert printed == pytest.approx(0.8110, abs=5e-4)


def test_a_convention_of_ones_own():
    own = dataclasses.replace(metrics.CONVENTIONS["default"], name="linear", gain="linear")
    y, scores = [3, 2, 0], [1.0, 3.0, 2.0]
    linear = metrics.evaluate(y, scores, metrics="ndcg", convention=own)
    assert linear.convention == "linear"
    assert linear.means == metrics.evaluate(y, scores, metrics="ndcg", convention="sklearn").means
    with pytest.raises(OptionError, match="gain of a convention must be one of"):
        dataclasses.replace(own, gain="cubic")


def test_unknown_convention_lists_what_there_is():
    with pytest.raises(OptionError, match="unknown convention 'trek': choose from default, letor, mslr, trec"):
        metrics.evaluate([1], [1], convention="trek")
