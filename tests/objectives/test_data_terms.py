"""Every data term against every property; sums over partitions, pickled and unpickled terms."""

import multiprocessing
import pickle

import numpy as np
import pytest

from ranksvm.data import as_design_matrix, partition
from ranksvm.losses import LossSpec
from ranksvm.objectives import LinearObjective, PartitionedTerm, ThreadedTerm, threaded_term as threaded_module
from ranksvm.objectives.partitioned_term import tree_sum
from ranksvm.solvers import Status, newton, tron
from term_checks import CHECKS, LOSSES, PROBLEMS, TermProblem, check_all


def threaded(X, spec, pairs, n_threads=1):
    return ThreadedTerm(as_design_matrix(X), spec.over(pairs), n_threads)


def shared(n_parts):
    """Parts that read the same X."""

    def make(X, spec, pairs):
        return PartitionedTerm([threaded(X, spec, part) for part in partition(pairs, n_parts)])

    return make


def split(n_parts):
    """Parts with rows of X of their own."""

    def make(X, spec, pairs):
        parts = partition(pairs, n_parts)
        return PartitionedTerm([threaded(X[part.rows], spec, part.renumbered()) for part in parts])

    return make


def sent(X, spec, pairs):
    """Parts as another process has them."""
    return pickle.loads(pickle.dumps(shared(3)(X, spec, pairs)))


TERMS = {
    "one thread": threaded,
    "two threads": lambda X, spec, pairs: threaded(X, spec, pairs, 2),
    "pickled": lambda X, spec, pairs: pickle.loads(pickle.dumps(threaded(X, spec, pairs))),
    "1 part": shared(1),
    "3 parts": shared(3),
    "3 parts, X split": split(3),
    "more parts than queries": split(14),
    "nested parts": lambda X, spec, pairs: PartitionedTerm([shared(2)(X, spec, part) for part in partition(pairs, 2)]),
    "parts sent": sent,
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Threads and blocks of a few rows for the smallest data."""
    monkeypatch.setattr(threaded_module, "BLOCK_BYTES", 400)
    monkeypatch.setattr(threaded_module, "HESSIAN_BLOCK_ROWS", 9)
    monkeypatch.setattr(threaded_module, "PARALLEL_WORK", 0)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("term", TERMS)
def test_every_property(term, loss, kind, check):
    check_all(TERMS[term], loss, kind, check)


@pytest.mark.parametrize("make", [threaded, shared(3), split(3)])
def test_scores_are_those_of_the_rows(make):
    problem = TermProblem()
    w = problem.rng.normal(size=6)
    scores = make(problem.X, problem.spec, problem.pairs).scores(w)
    np.testing.assert_allclose(
        np.concatenate([np.atleast_1d(part) for part in scores]), (problem.X @ w)[problem.pairs.rows]
    )


# -- fits --------------------------------------------------------------------------------------------------------------


def objective(term, loss, C):
    return LinearObjective(term, C, loss.first_width, loss.smoothed)


@pytest.mark.parametrize("solver", [newton, tron])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("C", [0.02, 1.0])
def test_fits_do_not_depend_on_the_partition(solver, loss, kind, C):
    """The same iterations, and objectives to ten digits, whatever the parts: without pairs, of one query, X split."""
    problem = TermProblem(loss, n=240, **PROBLEMS[kind])
    # at 1e-7 the ring of the hinge is so narrow that round-off decides on a product of conjugate gradients more or less
    tol = 1e-6 if loss == "hinge" else 1e-7
    whole = solver(objective(threaded(problem.X, problem.spec, problem.pairs), problem.spec, C), np.zeros(6), tol=tol)
    assert whole.status is Status.CONVERGED
    for make in (shared(1), shared(2), split(3), shared(4), split(5), split(14)):
        term = make(problem.X, problem.spec, problem.pairs)
        term.positions_at_once = 1
        result = solver(objective(term, problem.spec, C), np.zeros(6), tol=tol)
        assert result.n_iter == whole.n_iter
        assert result.history.evaluations == whole.history.evaluations
        assert result.history.hessian_products == whole.history.hessian_products
        assert result.value == pytest.approx(whole.value, rel=1e-10)
        # several positions of a line at once lead elsewhere on the way, to the same certified optimum
        term = make(problem.X, problem.spec, problem.pairs)
        result = solver(objective(term, problem.spec, C), np.zeros(6), tol=tol)
        assert result.status is Status.CONVERGED
        assert result.gap <= tol * result.value
        assert abs(result.value - whole.value) <= max(result.gap, whole.gap) + 1e-12 * whole.value


@pytest.mark.parametrize(("loss", "most"), [("squared_hinge", 23), ("function", 23), ("huber", 40), ("hinge", 100)])
@pytest.mark.parametrize("solver", [newton, tron])
def test_a_fit_takes_few_reductions(solver, loss, most):
    problem = TermProblem(loss, n=600)
    term = shared(4)(problem.X, problem.spec, problem.pairs)
    result = solver(objective(term, problem.spec, 0.1), np.zeros(6), tol=1e-4)
    assert result.status is Status.CONVERGED
    assert term.n_reductions <= most
    one_by_one = shared(4)(problem.X, problem.spec, problem.pairs)
    one_by_one.positions_at_once = 1
    solver(objective(one_by_one, problem.spec, 0.1), np.zeros(6), tol=1e-4)
    assert term.n_reductions <= one_by_one.n_reductions + 2


@pytest.mark.parametrize("loss", LOSSES)
def test_a_fit_by_samples_of_the_parts(loss):
    """A sampled Hessian, and the problem on a sample first: the parts are sampled each by itself."""
    problem = TermProblem(loss, n=2000)
    optimum = newton(
        objective(threaded(problem.X, problem.spec, problem.pairs), problem.spec, 0.1), np.zeros(6), tol=1e-9
    )
    for make in (threaded, shared(3), split(14)):
        found = objective(make(problem.X, problem.spec, problem.pairs), problem.spec, 0.1)
        found.hessian_fraction = 0.2
        sample = found.sample()
        assert sample.term.n_rows < 0.5 * problem.pairs.n_rows
        assert sample.C * sample.term.weight == pytest.approx(0.1 * problem.pairs.weight)
        result = newton(found, np.zeros(6), tol=1e-6)
        assert result.status is Status.CONVERGED
        assert abs(result.value - optimum.value) <= result.gap + optimum.gap + 1e-12 * optimum.value
        assert found.refine()


# -- parts -------------------------------------------------------------------------------------------------------------


def test_a_part_without_pairs_has_a_loss_of_nothing():
    problem = TermProblem()
    empty = problem.pairs.of_queries(np.zeros(0, dtype=np.int64))
    for pairs in (empty, empty.renumbered()):
        term = threaded(problem.X[:0], problem.spec, pairs, 2)
        at = term.evaluate(np.ones(6), None)
        assert at.sums == (0.0, 0.0, 0.0)
        np.testing.assert_array_equal(at.gradient, np.zeros(6))
        np.testing.assert_array_equal(term.curvature_product(at, np.ones(6)), np.zeros(6))
        np.testing.assert_array_equal(term.curvature(at, 1.0, 0), np.zeros((6, 6)))
        np.testing.assert_array_equal(term.curvature(at, 0.5, 0), np.zeros((6, 6)))
        np.testing.assert_array_equal(term.curvature_diagonal(at), np.zeros(6))
        values, slopes = term.along(at, at, np.array([0.5, 1.0]), None)
        assert (values.tolist(), slopes.tolist()) == ([0.0, 0.0], [0.0, 0.0])
        assert term.sample(3, 0) is None
        assert len(term.scores(np.ones(6))) == 0


def test_sums_over_parts_are_balanced_trees():
    assert tree_sum(list("abcde"), lambda a, b: f"({a}{b})") == "(((ab)c)(de))"
    assert tree_sum(["a"], lambda a, b: f"({a}{b})") == "a"


def _fit_elsewhere(queue, parts, spec, C):
    term = PartitionedTerm(parts)
    queue.put(newton(LinearObjective(term, C, spec.first_width, spec.smoothed), np.zeros(6), tol=1e-8).value)


def test_terms_cross_the_border_of_a_process():
    problem = TermProblem("hinge")
    term = shared(2)(problem.X, problem.spec, problem.pairs)
    expected = newton(objective(term, problem.spec, 0.1), np.zeros(6), tol=1e-8).value
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=_fit_elsewhere, args=(queue, term.parts, problem.spec, 0.1))
    process.start()
    assert queue.get() == pytest.approx(expected, rel=1e-10)
    process.join()
    assert process.exitcode == 0


def test_a_pickled_sample_takes_its_own_rows_only():
    problem = TermProblem(n=900)
    term = threaded(problem.X, problem.spec, problem.pairs)
    sample = term.sample(90, 0)
    assert len(pickle.dumps(sample)) < 0.4 * len(pickle.dumps(term))
    w = problem.rng.normal(size=6)
    there = pickle.loads(pickle.dumps(sample))
    assert there.evaluate(w, None).sums.value == pytest.approx(sample.evaluate(w, None).sums.value, rel=1e-12)
    assert there.design.X.shape == (sample.n_rows, 6)


def test_a_loss_by_name_is_small_and_picklable():
    for spec, _ in LOSSES.values():
        assert pickle.loads(pickle.dumps(spec)).name == spec.name
        assert len(pickle.dumps(spec)) < 300
    assert hash(LossSpec("hinge")) == hash(LossSpec("hinge"))
