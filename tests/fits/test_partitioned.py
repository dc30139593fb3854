"""Fits over parts against fits of all rows in memory: every option of the linear problem."""

import numpy as np
import pytest

from ranksvm import RankSVM, make_ranking
from ranksvm.data import ComparablePairs, Queries, partition
from ranksvm.estimators.base.ranker import linear_options
from ranksvm.exceptions import OptionError
from ranksvm.fits.options import loss_of, monotone_signs
from ranksvm.fits.partitioned import PartitionedProblem
from ranksvm.terms.parts import term as partitioned_term
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.serial_backend import SerialBackend
from ranksvm.terms.parts.term import PartitionedTerm


def term_of(data, estimator, n_parts=3, **weights):
    pairs = ComparablePairs.from_labels(
        Queries.from_qid(data.qid, data.n_rows),
        data.y.astype(float),
        selection=estimator.pair_selection,
        weighting=estimator.pair_weighting,
        **weights,
    )
    backend = SerialBackend()
    backend.put([Part(data.X[part.rows], part.renumbered()) for part in partition(pairs, n_parts)])
    return PartitionedTerm(backend, loss_of(estimator.loss, estimator.huber_width))


def problem_of(data, estimator):
    term, options = term_of(data, estimator), linear_options(estimator)
    return PartitionedProblem(term, options, monotone_signs(options.monotone, term.n_variables))


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=60, n_docs=15, n_features=8, random_state=0)


OPTIONS = [
    {},
    {"loss": "hinge"},
    {"loss": "huber", "huber_width": 0.5},
    {"pair_weighting": "per_query"},
    {"pair_weighting": "gain_gap", "loss": "hinge"},
    {"pair_weighting": "label_gap", "pair_selection": "adjacent"},
    {"monotone": "increasing"},
    {"monotone": {0: 1, 3: -1}, "solver": "tron"},
    {"solver": "tron"},
    {"solver": "tron", "stopping": "gradient", "tol": 1e-8},
    {"solver": "newton"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(map(str, options.values())) or "default")
def test_fits_are_those_of_the_rows_in_memory(data, options):
    estimator = RankSVM(C=0.05, **{"tol": 1e-9, **options})
    expected = RankSVM(C=0.05, **{"tol": 1e-9, **options}).fit(data.X, data.y, qid=data.qid)
    problem = problem_of(data, estimator)
    result = problem.solve(0.05)
    outcome = problem.outcome(result)
    assert outcome.objective == pytest.approx(expected.objective_, rel=1e-9)
    assert (outcome.n_pairs, outcome.n_queries) == (expected.n_pairs_, expected.n_queries_)
    assert outcome.converged
    np.testing.assert_allclose(result.w, expected.coef_, atol=1e-4)


def test_the_dual_is_for_rows_in_memory(data):
    estimator = RankSVM(solver="dual")
    with pytest.raises(OptionError, match="rows in memory"):
        problem_of(data, estimator)


def test_the_sample_is_all_that_hessians_see(data, monkeypatch):
    monkeypatch.setattr(partitioned_term, "SAMPLE_ROWS_PER_VARIABLE", 40)
    estimator = RankSVM(C=0.05, tol=1e-8)
    problem = problem_of(data, estimator)
    assert problem.solver == "newton"
    assert problem.objective.hessian_fraction == problem.objective.term.max_fraction == 320 / 900
    expected = RankSVM(C=0.05, tol=1e-9).fit(data.X, data.y, qid=data.qid)
    assert problem.solve(0.05).value == pytest.approx(expected.objective_, rel=1e-8)


@pytest.mark.parametrize("options", [{}, {"loss": "hinge"}, {"monotone": "increasing"}, {"solver": "tron"}])
@pytest.mark.parametrize("rows_a_variable", [40, 500])
def test_a_path_in_shared_rounds(data, options, rows_a_variable, monkeypatch):
    """The solutions of fits alone, whether the path on a sample gives their starts or not; the same bits every time."""
    monkeypatch.setattr(partitioned_term, "SAMPLE_ROWS_PER_VARIABLE", rows_a_variable)
    estimator = RankSVM(tol=1e-8, **options)
    Cs = np.array([1e-3, 1e-2, 1e-1])
    paths = [problem_of(data, estimator).solve_path(Cs) for _ in range(2)]
    for C, result, again in zip(Cs.tolist(), *paths, strict=True):
        alone = problem_of(data, estimator).solve(C)
        assert abs(result.value - alone.value) <= result.gap + alone.gap
        assert max(result.relative_gap, alone.relative_gap) <= 1e-8
        np.testing.assert_array_equal(result.w, again.w)
