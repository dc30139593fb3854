"""Results as HTML, LaTeX, CSV and DataFrames."""

import csv
import io
import sys

import numpy as np
import pytest

import ranksvm
from ranksvm import metrics
from ranksvm._util.tables import Table, facts_html, frame_of
from ranksvm.exceptions import DataError, MissingDependencyError, OptionError


@pytest.fixture
def data():
    return ranksvm.make_ranking(20, n_docs=10, n_features=3, random_state=0)


@pytest.fixture
def results(data):
    """One result of every kind that has a table."""
    scores = ranksvm.RankSVM().fit(data.X, data.y, qid=data.qid).predict(data.X)
    a, b = (metrics.evaluate(data.y, values, data.qid, "ndcg@10,map") for values in (data.X[:, 0], scores))
    cv = ranksvm.cross_validate(ranksvm.RankSVM(), data.X, data.y, qid=data.qid, cv=3)
    systems = {"a & b": a, "<ours>": b, "c": a}
    return a, metrics.compare(a, b, "map"), metrics.compare_systems(systems, "map"), cv


def test_every_result_in_every_form(results):
    for result in results:
        rows = list(csv.DictReader(io.StringIO(result.to_csv())))
        frame = result.to_frame()
        assert list(frame.columns) == list(rows[0])
        assert (
            len(frame)
            == len(rows)
            == len(result.to_frame(library="polars"))
            == result.to_frame(library="pyarrow").num_rows
        )
        html, latex = result._repr_html_(), result.to_latex()
        assert "default)</th>" in html  # the convention, in the head
        assert "default) &" in latex
        assert html.count("<tr>") >= 1 + len(rows)
        assert latex.count(" \\\\\n") >= 1 + len(rows)


def test_the_numbers_of_an_evaluation(results):
    found = results[0]
    frame = found.to_frame()
    assert dict(zip(frame["metric"], frame["mean"], strict=True)) == found.means
    assert set(frame["convention"]) == {"default"}
    queries = found.to_frame(per_query=True)
    assert list(queries.columns) == ["qid", "ndcg@10", "map"]
    np.testing.assert_array_equal(queries["map"], found.per_query["map"])
    assert f"{found.means['map']:.4f}" in found._repr_html_()
    assert str(found.means["map"]) in found.to_csv()


def test_an_evaluation_shows_intervals_in_a_notebook(results):
    found = results[0]
    low, high = found.interval("map")
    assert f"{low:.4f} to {high:.4f}" in found._repr_html_()
    assert "20 queries, 0 without a relevant document" in found._repr_html_()


def test_names_and_values_are_escaped():
    html = facts_html([("<b>", "1 < 2 & 3")], "<i>")
    assert '<th scope="row" style="text-align: left">&lt;b&gt;</th>' in html
    assert "1 &lt; 2 &amp; 3" in html
    assert "<caption>&lt;i&gt;</caption>" in html


def test_a_table_for_a_page_with_a_style_sheet():
    html = Table({"name": ["a"], "n": [1]}, "caption").to_html(classes=True)
    assert '<th scope="col">name</th><th scope="col" class="number">n</th>' in html
    assert '<td>a</td><td class="number">1</td>' in html
    assert "style" not in html


def test_the_numbers_of_a_cross_validation(results):
    found = results[3]
    frame = found.to_frame()
    np.testing.assert_array_equal(frame["ndcg@10"], found.scores["ndcg@10"])
    assert f"mean &  & {found.means['ndcg@10']:.4f}" in found.to_latex()


def test_names_cannot_break_html_or_latex(results):
    assert "&lt;ours&gt;" in results[2]._repr_html_()
    assert r"a \& b" in results[2].to_latex()
    table = Table({"a_b": ["50 %", "x^2"], "n": [1, 2.5]}, "caption")
    assert table.to_latex() == (
        "% caption\n\\begin{tabular}{lr}\n\\toprule\na\\_b & n \\\\\n\\midrule\n"
        "50 \\% & 1 \\\\\nx\\textasciicircum{}2 & 2.5000 \\\\\n\\bottomrule\n\\end{tabular}\n"
    )


def test_names_cannot_break_lines_of_text_or_obey_a_terminal():
    table = Table({"a\nb": ["x\ty", "\x1b[31mred"], "n": [1, 2]}, "of\na")
    assert table.to_text() == "of\\na\na\\nb         n\nx\\ty         1\n\\x1b[31mred  2"
    assert table.to_latex().startswith("% of\\na\n\\begin{tabular}")


def test_ranking_data(data, tmp_path):
    named = ranksvm.RankingData(data.X, data.y, data.qid, np.arange(200).astype(str), ["bm25", "length", "clicks"])
    frame = named.to_frame()
    assert list(frame.columns) == ["label", "qid", "docid", "bm25", "length", "clicks"]
    np.testing.assert_array_equal(frame[["bm25", "length", "clicks"]].to_numpy(), data.X)
    assert "<caption>RankingData(200 rows, 3 features" in named._repr_html_()
    assert named._repr_html_().count("<tr>") == 6
    assert "200 & 20 & 3 &" in named.to_latex()
    for name in ("data.csv", "data.tsv.gz"):
        named.to_csv(tmp_path / name)
        again = ranksvm.datasets.read_data(tmp_path / name)
        assert again.X.dtype == np.float64
        np.testing.assert_array_equal(again.X.astype(data.X.dtype), data.X)
        np.testing.assert_array_equal(again.y, data.y)
        assert again.qid.tolist() == data.qid.tolist()
        assert again.feature_names == named.feature_names
    assert (tmp_path / "data.csv").read_text().startswith('"label","qid","docid","bm25"')


def test_sparse_ranking_data(data):
    import scipy.sparse as sp

    sparse = ranksvm.RankingData(sp.csr_matrix(data.X), data.y, data.qid)
    assert "CSR" in sparse._repr_html_()
    with pytest.raises(DataError, match="X is sparse, and a table has a column for every feature"):
        sparse.to_frame()
    with pytest.raises(DataError, match="two columns would be named 'qid'"):
        ranksvm.RankingData(data.X, data.y, data.qid, feature_names=["a", "qid", "b"]).to_frame()


def test_a_library_that_is_not_there(results, monkeypatch):
    with pytest.raises(OptionError, match="library must be one of pandas, polars, pyarrow, got 'dask'"):
        results[0].to_frame(library="dask")
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert type(results[0].to_frame()).__module__.startswith("polars")
    with pytest.raises(MissingDependencyError, match="to_frame needs pandas: pip install pandas"):
        results[0].to_frame(library="pandas")
    for name in ("polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match="to_frame needs pandas, polars or pyarrow: pip install pandas"):
        frame_of({"a": [1]})


def test_dates_as_query_ids(data):
    days = np.datetime64("2026-01-01") + data.qid
    found = metrics.evaluate(data.y, data.X[:, 0], days.astype("M8[ns]")).to_frame(per_query=True)
    assert found["qid"].dtype.kind == "M"


def test_names_that_look_like_formulas_are_escaped_on_request():
    table = Table({"system": ["=1+1", "b"], "@mean": [-0.5, 0.25]}, "caption", footer=[{"system": "-", "@mean": 0.0}])
    assert table.to_csv(footer=True) == "system,@mean\n=1+1,-0.5\nb,0.25\n-,0.0\n"
    assert table.to_csv(True, escape_formulas=True) == "system,'@mean\n'=1+1,-0.5\nb,0.25\n'-,0.0\n"
