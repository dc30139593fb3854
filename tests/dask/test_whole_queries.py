"""Which rows move, and hashes of ids: without a cluster."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("distributed")

from ranksvm.dask.evaluation import Sums
from ranksvm.dask.inputs import are_files
from ranksvm.dask.rows import Report, Rows, hashes_of, together
from ranksvm.dask.whole_queries import moves
from ranksvm.model_selection.cross_validation import standard_error_over_queries


def report(sizes):
    queries = np.array(list(sizes), dtype=np.uint64)
    return Report(queries, np.array(list(sizes.values())), 100.0, 5, 1.0, None, False, None)


def test_nothing_moves_where_no_query_is_cut():
    found = moves([report({1: 5, 2: 3}), report({}), report({3: 4})])
    assert (found.pieces, found.n_rows, found.n_queries, found.n_parts) == ({}, 0, 0, 3)


def test_rows_move_to_where_most_of_their_query_are():
    found = moves([report({1: 9, 2: 3}), report({2: 6, 3: 9}), report({3: 1, 4: 2, 2: 1}), report({5: 3, 4: 2})])
    pieces = {pair: hashes.tolist() for pair, hashes in found.pieces.items()}
    assert pieces == {(0, 1): [2], (2, 1): [2, 3], (3, 2): [4]}  # of equal parts the first
    assert (found.n_rows, found.n_queries, found.n_parts) == (7, 3, 4)


def test_a_query_larger_than_every_part_gets_one_of_its_own():
    found = moves([report({7: 6, 1: 2}), report({7: 5}), report({7: 4, 2: 1})])
    assert {pair: hashes.tolist() for pair, hashes in found.pieces.items()} == {(0, 3): [7], (1, 3): [7], (2, 3): [7]}
    assert (found.n_rows, found.n_parts) == (15, 4)


def test_hashes_depend_on_the_content_alone():
    numbers = [0, 1, -5, 2**40]
    forms = [np.array(numbers), np.array(numbers, dtype=float), np.array(numbers, dtype=object)]
    assert len({hashes_of(form).tobytes() for form in forms}) == 1
    words = np.array(["a", "b", "1"])
    np.testing.assert_array_equal(hashes_of(words), hashes_of(words.astype(object)))
    assert hashes_of(np.array(["1"])) != hashes_of(np.array([1]))
    for plain, scalar in [("a", np.str_("a")), (3, np.float32(3)), (0.5, np.float64(0.5)), (7, np.int8(7))]:
        assert hashes_of(np.array([scalar], dtype=object)) == hashes_of(np.array([plain]))
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")
    np.testing.assert_array_equal(hashes_of(days), hashes_of(days.astype("datetime64[ns]")))
    assert len(np.unique(hashes_of(np.arange(10_000)) % np.uint64(8))) == 8
    assert len(np.unique(hashes_of(np.linspace(0.0, 1.0, 100)))) == 100


def test_hashes_are_those_of_another_process():
    """Python's own hash of strings differs from process to process."""
    code = (
        "import numpy as np; from ranksvm.dask.rows import hashes_of; print(hashes_of(np.array(['q1', 'q2'])).tolist())"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.strip() == str(hashes_of(np.array(["q1", "q2"])).tolist())


def test_parts_of_different_kinds_of_ids_keep_them_apart():
    X = np.zeros((1, 2))
    parts = [Rows(X, np.zeros(1), np.array([one])) for one in (1, "1", 1.0)]
    assert together(parts).queries.n_queries == 2
    assert together(parts[::2]).queries.n_queries == 1


def test_standard_errors_from_sums():
    rng = np.random.default_rng(0)
    values, weights = rng.random(50), rng.integers(0, 4, 50).astype(float)
    values[3] = np.nan
    halves = Sums.of(values[:20], weights[:20]).plus(Sums.of(values[20:], weights[20:]))
    assert halves.standard_error == pytest.approx(standard_error_over_queries(values, weights), rel=1e-10)
    assert np.isnan(Sums.of(values[:1], weights[:1]).standard_error)


def test_lists_of_paths():
    assert are_files("a.txt")
    assert are_files(["a.txt", "b.txt"])
    assert not are_files([[1.0, 2.0]])
    assert not are_files([])


def test_nothing_else_imports_dask():
    code = "import sys, ranksvm, ranksvm.estimators, ranksvm.cli; ranksvm.RankSVM; print('dask' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_workers_do_without_scikit_learn():
    """Its import would take a new worker seconds, after a kill too."""
    code = (
        "import sys, ranksvm.dask.backend, ranksvm.dask.rows; print('sklearn' in sys.modules, 'pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False False"
