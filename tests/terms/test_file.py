"""The data term of rows in a file against every property of data terms; blocks of a few rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm.data import ComparablePairs, as_design_matrix
from ranksvm.datasets import RankingData
from ranksvm.datasets.cache import layout, reader
from ranksvm.datasets.cache.reader import CacheFile, QueryRuns
from ranksvm.datasets.cache.rows import FileRows
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError
from ranksvm.objectives import LinearObjective
from ranksvm.solvers import Status, newton
from ranksvm.terms import file as file_term, host as threaded_module
from ranksvm.terms.file import FileTerm
from ranksvm.terms.host import ThreadedTerm
from ranksvm.terms.parts import file_backend
from ranksvm.terms.parts.file_backend import FileBackend
from ranksvm.terms.parts.tree_sum import TreeSum, tree_sum
from term_checks import CHECKS, LOSSES, PROBLEMS, TermProblem, check_all

MEMORY = 1 << 20


class GivenPairs(FileRows):
    """Rows of a file whose pairs have been made elsewhere."""

    def __init__(self, file, runs, given):
        self.given = given
        super().__init__(file, runs)

    def pairs(self, first, last):
        return self.given.of_queries(np.arange(first, last)).renumbered()


@pytest.fixture
def make(tmp_path, monkeypatch):
    """A factory of terms over a file of the rows, by position."""
    monkeypatch.setattr(file_backend, "BLOCK_BYTES", 500)
    monkeypatch.setattr(reader, "_ROWS", 7)
    monkeypatch.setattr(threaded_module, "BLOCK_BYTES", 400)
    monkeypatch.setattr(threaded_module, "HESSIAN_BYTES", 400)
    monkeypatch.setattr(threaded_module, "PYTHON_HESSIAN_ROWS", 9)

    def term(X, spec, pairs, n_threads=1):
        rows = np.arange(len(pairs.levels)) if pairs.rows is None else pairs.rows
        qid = np.repeat(np.arange(pairs.n_queries), np.diff(pairs.pointers))
        path = tmp_path / "data.rsd"
        RankingData(X[rows], np.zeros(len(rows)), qid).save(path)
        file = CacheFile(path)
        empty = [query for query in range(pairs.n_queries) if pairs.pointers[query] == pairs.pointers[query + 1]]
        found = GivenPairs(file, QueryRuns.of(file), pairs.of_queries(np.setdiff1d(np.arange(pairs.n_queries), empty)))
        return FileTerm(FileBackend(found, MEMORY, n_threads, 500), spec, n_threads, MEMORY)

    return term


def in_memory(problem):
    return ThreadedTerm(as_design_matrix(problem.X), problem.spec.with_pairs(problem.pairs))


def two_threads(make):
    return lambda X, spec, pairs: make(X, spec, pairs, 2)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("kind", [kind for kind in PROBLEMS if kind != "listed"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_every_property(make, n_threads, loss, kind, check):
    check_all(make if n_threads == 1 else two_threads(make), loss, kind, check)


def test_sums_of_items_in_any_order_are_those_of_the_tree():
    rng = np.random.default_rng(0)
    for length in range(1, 20):
        items = [chr(97 + number) for number in range(length)]
        total = TreeSum(length, lambda a, b: f"({a}{b})")
        for place in rng.permutation(length):
            total.add(int(place), items[place])
        assert total.result == tree_sum(items, lambda a, b: f"({a}{b})")


def test_hessians_come_with_values(make):
    problem = TermProblem(n=240)
    term = make(problem.X, problem.spec, problem.pairs)
    reads = term.backend.n_reads
    at = term.evaluate(np.ones(6), None)
    term.curvature(at, 1.0, 0, True)
    assert term.backend.n_reads - reads == 1
    term.sizes()
    other = term.evaluate(np.full(6, 0.5), None)
    term.round_off(other, None, 1e-15, False)
    assert term.backend.n_reads - reads == 2


def test_of_many_rows_hessians_take_a_part(make, monkeypatch):
    monkeypatch.setattr(file_term, "HESSIAN_ROWS_PER_VARIABLE", 40)
    monkeypatch.setattr(file_term, "SINGLE_WORK", 0)
    problem = TermProblem(n=3000)
    monkeypatch.setattr(file_backend, "BLOCK_BYTES", 8000)
    term = make(problem.X, problem.spec, problem.pairs)
    at, exact = (
        term.evaluate(np.zeros(6), None),
        ThreadedTerm(as_design_matrix(problem.X), problem.spec.with_pairs(problem.pairs)),
    )
    H = exact.curvature(exact.evaluate(np.zeros(6), None), 1.0, 0)
    estimate = term.curvature(at, 1.0, 0, False)
    assert 0 < np.abs(estimate - H).max() < 0.5 * np.abs(H).max()
    np.testing.assert_allclose(term.curvature(at, 1.0, 0, True), H, rtol=1e-9)
    np.testing.assert_allclose(term.curvature(term.evaluate(np.zeros(6), None), 1.0, 0, False), H, rtol=1e-9)


# -- rows --------------------------------------------------------------------------------------------------------------


def rows_of(tmp_path, data, **options):
    path = tmp_path / "rows.rsd"
    data.save(path)
    file = CacheFile(path)
    return FileRows(file, QueryRuns.of(file), **options)


QIDS = {
    "sorted": lambda rng, n: np.sort(rng.integers(0, 12, n)),
    "any order": lambda rng, n: rng.integers(0, 12, n),
    "text": lambda rng, n: np.array([f"q{number}" for number in np.sort(rng.integers(0, 12, n))]),
    "long text": lambda rng, n: np.array(["x" * 300 if i > n - 5 else f"{i // 9}" for i in range(n)], dtype=object),
    "none": lambda rng, n: None,
}
WEIGHTS = {
    "none": {},
    "rows": {"sample_weight": True},
    "per query": {"weighting": "per_query", "query_weight": True},
    "gains": {"weighting": "gain_gap", "propensity": True},
    "adjacent": {"selection": "adjacent", "weighting": "label_gap"},
    "times": {"event": True},
}


@pytest.mark.parametrize("qid", QIDS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_together_are_the_whole(tmp_path, monkeypatch, qid, weights, sparse):
    monkeypatch.setattr(reader, "_ROWS", 7)
    rng, n = np.random.default_rng(1), 80
    X = rng.normal(size=(n, 3)).astype(np.float32) * (rng.random((n, 3)) < 0.5)
    data = RankingData(sp.csr_matrix(X) if sparse else X, rng.integers(0, 4, n).astype(float), QIDS[qid](rng, n))
    by_query = rng.random(n)[data.queries.numbers()]
    given = {"sample_weight": rng.integers(0, 3, n).astype(float), "propensity": rng.uniform(0.1, 1, n)}
    given |= {"query_weight": by_query, "event": rng.random(n) < 0.7}
    options = {name: given[name] if value is True else value for name, value in WEIGHTS[weights].items()}
    rows = rows_of(tmp_path, data, **options)
    if "event" in options:
        options["event"] = options["event"].astype(float)
    whole = ComparablePairs.from_labels(data.queries, data.y, **options)
    blocks = rows.blocks(100)
    assert len(blocks) > 4 or qid == "none"
    assert [block[0] for block in blocks[1:]] == [block[1] for block in blocks[:-1]]
    found = rows.summarize(blocks)
    assert rows.n_pairs == whole.n_pairs
    assert rows.weight == pytest.approx(whole.weight)
    np.testing.assert_allclose(rows.weight_per_query, whole.weight_per_query)
    assert sum(each.n_rows for each in found) == whole.n_rows
    seen = {}

    def look(number, X_block):
        pairs = rows.pairs(*blocks[number])
        dense = X_block.toarray() if sparse else X_block
        seen[number] = dense[:] if pairs.rows is None else dense[pairs.rows]
        seen[number] = seen[number].copy()

    rows.each(blocks, 2, 3, look)
    expected = X if whole.rows is None else X[whole.rows]
    np.testing.assert_array_equal(np.concatenate([seen[number] for number in range(len(blocks))]), expected)
    X_sample, pairs = rows.sample(30, 0)
    assert X_sample.shape[0] == pairs.n_rows
    assert 0.0 < pairs.weight <= 1.0001 * whole.weight


def test_errors_of_the_rows(tmp_path):
    rng = np.random.default_rng(0)
    data = RankingData(rng.normal(size=(20, 3)), np.ones(20), np.arange(20) // 5)
    rows = rows_of(tmp_path, data)
    with pytest.raises(NoComparablePairsError, match=r"4 queries of .*all labels are the same"):
        rows.summarize(rows.blocks(100))
    data.y[13] = np.nan
    rows = rows_of(tmp_path, data)
    with pytest.raises(DataError, match="y is nan in row 13"):
        rows.summarize(rows.blocks(100))
    data.y = np.arange(20.0)
    rows = rows_of(tmp_path, data)
    with pytest.raises(OptionError, match="query 0 has 136 bytes of features, more than memory_limit leaves"):
        FileBackend(rows, 200, 1, 1)
    with pytest.raises(OptionError, match="4 queries have 496 bytes of features, more than memory_limit leaves"):
        FileBackend(rows, 200, 1, 1000)


def _changed_ends(data, places):
    """A cache of ids that are text of very different lengths, whose ends are changed."""
    data.qid = np.array(["x" * 300 if row > 17 else f"{row // 5}" for row in range(20)], dtype=object)
    write_before = layout._arrays

    def arrays(data):
        found = write_before(data)
        found["qid.ends"][list(places)] = list(places.values())
        return found

    return arrays


DAMAGED = {
    "row pointers that descend": lambda data: data.X.indptr.__setitem__(7, 0),
    "a first pointer": lambda data: data.X.indptr.__setitem__(0, -5),
    "row pointers beyond the values": lambda data: data.X.indptr.__setitem__(slice(10, None), 1 << 30),
    "columns": lambda data: data.X.indices.__setitem__(3, 7),
    "a negative column": lambda data: data.X.indices.__setitem__(3, -7),
    "ends that descend": lambda data: _changed_ends(data, {5: 0}),
    "ends beyond the text": lambda data: _changed_ends(data, {5: 1 << 62, 19: 1 << 62}),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damage_that_is_found_in_a_pass_names_the_file(tmp_path, monkeypatch, kind):
    """Only what is read is looked at: checksums of X are not compared."""
    rng = np.random.default_rng(0)
    X = sp.csr_matrix(rng.normal(size=(20, 3)) * (rng.random((20, 3)) < 0.7))
    data = RankingData(X, rng.integers(0, 3, 20).astype(float), np.arange(20) // 5)
    if arrays := DAMAGED[kind](data):
        monkeypatch.setattr(layout, "_arrays", arrays)

    def read():
        rows = rows_of(tmp_path, data)
        rows.each(rows.blocks(100), 1, 2, lambda number, X: None)

    with pytest.raises(DataError, match=r"rows\.rsd is damaged"):
        read()


def test_a_cache_without_rows_or_features(tmp_path):
    with pytest.raises(DataError, match=r"rows\.rsd has no row of data"):
        rows_of(tmp_path, RankingData(np.zeros((0, 3)), np.zeros(0), np.zeros(0)))


def test_a_file_that_is_truncated_meanwhile(tmp_path):
    rng = np.random.default_rng(0)
    rows = rows_of(tmp_path, RankingData(rng.normal(size=(2000, 3)), np.arange(2000.0), np.arange(2000) // 5))
    with open(rows.file.path, "r+b") as file:
        file.truncate(20000)
    with pytest.raises(DataError, match="was truncated while it was read"):
        rows.each(rows.blocks(500), 2, 4, lambda number, X: None)


def test_an_error_in_a_pass_ends_it(tmp_path):
    rng = np.random.default_rng(0)
    rows = rows_of(tmp_path, RankingData(rng.normal(size=(200, 3)), np.arange(200.0), np.arange(200) // 5))

    def work(number, X):
        if number == 7:
            raise ZeroDivisionError

    for n_threads in (1, 2):
        with pytest.raises(ZeroDivisionError):
            rows.each(rows.blocks(100), n_threads, 3, work)


# -- fits --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared_hinge", "huber", "hinge"])
@pytest.mark.parametrize("kind", ["plain", "csr", "weights"])
def test_fits_are_those_of_rows_in_memory(make, loss, kind):
    problem = TermProblem(loss, n=900, **PROBLEMS[kind])
    spec, tol = problem.spec, 1e-6 if loss == "hinge" else 1e-9
    expected = newton(LinearObjective(in_memory(problem), 0.1, spec.first_width, spec.smoothed), np.zeros(6), tol=tol)
    term = make(problem.X, spec, problem.pairs)
    result = newton(LinearObjective(term, 0.1, spec.first_width, spec.smoothed), np.zeros(6), tol=tol)
    assert result.status is Status.CONVERGED
    assert result.value == pytest.approx(expected.value, rel=2 * tol)
