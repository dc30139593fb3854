"""evaluate_run against trec_eval, and against evaluate where a run ranks every judged document."""

import collections
import math

import numpy as np
import pandas as pd
import pytest

from ranksvm import metrics
from ranksvm.datasets import Qrels, Run, write_qrels, write_run
from ranksvm.exceptions import DataError, OptionError

TREC = {
    "ndcg": "ndcg",
    "ndcg@5": "ndcg_cut_5",
    "ndcg@20": "ndcg_cut_20",
    "map": "map",
    "map@5": "map_cut_5",
    "mrr": "recip_rank",
    "p@5": "P_5",
    "p@20": "P_20",
    "r@5": "recall_5",
    "r@100": "recall_100",
}


@pytest.fixture
def judged():
    """Judgments and a run as dictionaries.

    Unjudged and unranked documents, queries that one of them lacks, ties in double and in single precision.
    """
    rng = np.random.default_rng(3)
    qrels, run = {}, {}
    for query in range(40):
        documents = [f"d{number}" for number in rng.permutation(200)[:30]]
        n_judged = rng.integers(1, 20)
        labels = rng.choice(4, n_judged, p=[0.5, 0.2, 0.2, 0.1]) * (query not in (5, 9))
        if query % 7 != 3:
            qrels[f"q{query}"] = dict(zip(documents[:n_judged], labels.tolist(), strict=True))
        ranked = rng.permutation(documents)[: rng.integers(1, 30)].tolist()
        scores = rng.integers(0, 6, len(ranked)) / 2 + 1e-9 * rng.integers(0, 3, len(ranked))
        if query % 9 != 4:
            run[f"q{query}"] = dict(zip(ranked, scores.tolist(), strict=True))
    return qrels, run


@pytest.mark.parametrize("relevance", [1, 2])
def test_values_are_those_of_trec_eval(judged, relevance):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")
    qrels, run = judged
    families = {"ndcg", "ndcg_cut.5,20", "map", "map_cut.5", "recip_rank", "P.5,20", "recall.5,100"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, families, relevance_level=relevance).evaluate(run)
    without, complete = (
        metrics.evaluate_run(run, qrels, list(TREC), relevance=relevance, missing=missing)
        for missing in ("skip", "zero")
    )
    assert set(without.qid) == set(theirs)
    assert set(complete.qid) == set(qrels)
    assert complete.n_missing == len(set(qrels) - set(run)) == without.n_missing > 0
    assert set(run) - set(qrels)
    for ours, name in TREC.items():
        expected = [theirs[query][name] for query in without.qid]
        np.testing.assert_allclose(without.per_query[ours], expected, atol=1e-12, err_msg=ours)
        assert without.means[ours] == pytest.approx(np.mean(expected))
        # trec_eval -c
        assert complete.means[ours] == pytest.approx(np.sum(expected) / len(qrels))


@pytest.mark.parametrize("convention", list(metrics.CONVENTIONS))
def test_where_every_document_is_judged_and_ranked_it_is_evaluate(convention):
    rng = np.random.default_rng(4)
    qid = rng.integers(0, 20, 300).astype(str)
    docid = np.array([f"d{number}" for number in rng.permutation(300)])
    y, scores = rng.integers(0, 4, 300), rng.integers(0, 50, 300) / 4
    names = [
        "ndcg",
        "ndcg@3",
        "mean_ndcg",
        "map",
        "map@3",
        "mrr",
        "err",
        "p@3",
        "r@3",
        "pairwise_accuracy",
        "kendall_tau",
    ]
    expected = metrics.evaluate(y, scores, qid, names, convention=convention, docid=docid)
    rows = rng.permutation(300) if convention in ("trec", "default", "sklearn") else np.arange(300)
    found = metrics.evaluate_run(
        Run(qid[rows], docid[rows], scores[rows]), Qrels(qid, docid, y), names, convention=convention
    )
    assert found.qid.tolist() == expected.qid.tolist()
    assert found.convention == convention
    for name in names:
        np.testing.assert_allclose(found.per_query[name], expected.per_query[name], atol=1e-12, err_msg=name)
        assert found.means[name] == pytest.approx(expected.means[name])
    assert (found.n_rows, found.n_without_relevant, found.n_missing) == (300, expected.n_without_relevant, 0)


def test_exponential_gains_include_documents_that_the_run_lacks():
    qrels = {"a": {"x": 3, "y": 1, "z": 0}}
    found = metrics.evaluate_run({"a": {"z": 3.0, "y": 2.0, "w": 1.0}}, qrels, "ndcg,mean_ndcg", convention="default")
    ideal = np.cumsum([7, 1 / math.log2(3), 0])
    assert found.means["ndcg"] == pytest.approx(1 / math.log2(3) / ideal[-1])
    assert found.means["mean_ndcg"] == pytest.approx(np.mean(np.array([0, 1, 1]) / math.log2(3) / ideal))


def test_pairs_of_a_query_that_the_run_lacks_are_left_out():
    qrels = {"a": {"x": 1, "y": 0}, "b": {"x": 1, "y": 0}}
    found = metrics.evaluate_run({"a": {"x": 1.0, "y": 0.0, "z": 2.0}}, qrels, "pairwise_accuracy,kendall_tau,map")
    assert found.means["pairwise_accuracy"] == 0.5
    assert found.means["map"] == 0.25
    assert math.isnan(found.per_query["kendall_tau"][1])
    assert found.to_dict()["n_missing"] == 1


def test_files_are_read(judged, tmp_path):
    qrels, run = judged
    write_qrels(tmp_path / "qrels", qrels)
    write_run(tmp_path / "run.gz", run)
    found = metrics.evaluate_run(tmp_path / "run.gz", str(tmp_path / "qrels"))
    assert found.means == metrics.evaluate_run(run, qrels).means
    assert metrics.compare(found, metrics.evaluate_run(run, qrels), "map").difference == 0


@pytest.mark.parametrize(
    ("query", "document", "label"),
    [("query_id", "doc_id", "relevance"), ("qid", "docno", "label"), ("q_id", "docid", "rel")],
)
@pytest.mark.parametrize("library", ["pandas", "polars", "named tuples"])
def test_rows_are_the_dictionaries_that_they_hold(judged, query, document, label, library):
    qrels, run = judged
    rows = []
    for nested, value in ((qrels, label), (run, "score")):
        table = [(q, d, value, "0") for q, found in nested.items() for d, value in found.items()]
        row = collections.namedtuple("Row", [query, document, value, "iteration"])
        if library == "named tuples":
            rows.append(iter([row(*each) for each in table]))
        else:
            columns = dict(zip(row._fields, map(list, zip(*table, strict=True)), strict=True))
            rows.append(pytest.importorskip(library).DataFrame(columns))
    expected = metrics.evaluate_run(run, qrels, "ndcg@10,map")
    found = metrics.evaluate_run(rows[1], rows[0], "ndcg@10,map")
    assert found.means == expected.means
    assert found.qid.tolist() == expected.qid.tolist()


def test_the_tuples_and_frames_of_ir_measures_go_where_its_own_values_come_from(judged):
    ir_measures = pytest.importorskip("ir_measures", reason="ir_measures is not installed")
    qrels, run = judged
    tuples = (
        [ir_measures.ScoredDoc(q, d, score) for q, found in run.items() for d, score in found.items()],
        [ir_measures.Qrel(q, d, label) for q, found in qrels.items() for d, label in found.items()],
    )
    frames = [pd.DataFrame(rows) for rows in tuples]
    names = {"nDCG@10": ir_measures.nDCG @ 10, "AP": ir_measures.AP, "RR": ir_measures.RR}
    theirs = ir_measures.calc_aggregate(names.values(), tuples[1], tuples[0])
    expected = pytest.approx({name: theirs[each] for name, each in names.items()})
    for given in (tuples, frames):
        found = metrics.evaluate_run(*given, list(names))
        assert {name: found[name] for name in names} == expected


def test_the_tuples_of_ir_datasets_are_rows():
    formats = pytest.importorskip("ir_datasets.formats", reason="ir_datasets is not installed")
    qrels = [formats.TrecQrel("q1", "d1", 2, "0"), formats.TrecQrel("q1", "d2", 0, "0")]
    run = [formats.GenericScoredDoc("q1", "d2", 3.0), formats.GenericScoredDoc("q1", "d1", 2.0)]
    assert metrics.evaluate_run(iter(run), iter(qrels), "mrr")["mrr"] == 0.5


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (3, "run must be a Run, the path of a file, a dict of dicts, or a DataFrame or named tuples .* got int"),
        ([("q", "d", 1.0)], "with query_id, doc_id and score; got rows of type tuple"),
        (
            pd.DataFrame({"qid": ["q"], "score": [1.0]}),
            "run has no 'doc_id' or 'docid' or 'docno', only 'qid'",
        ),
        ([], "no query in common"),
    ],
)
def test_rows_that_are_not_a_run(judged, rows, message):
    with pytest.raises(DataError, match=message):
        metrics.evaluate_run(rows, judged[0])


def test_refused(judged):
    qrels, run = judged
    with pytest.raises(DataError, match="no query in common: the first one of the run is 'z', of the qrels 'q0'"):
        metrics.evaluate_run({"z": {"d": 1.0}}, qrels)
    with pytest.raises(OptionError, match="missing must be 'zero' or 'skip'"):
        metrics.evaluate_run(run, qrels, missing="one")
    with pytest.raises(OptionError, match="max_label is 1"):
        metrics.evaluate_run(run, qrels, "err", max_label=1)
    with pytest.raises(DataError, match="no query in common"):
        metrics.evaluate_run({}, qrels)
