"""Every data term against every property; sums over partitions, pickled and unpickled terms."""

import multiprocessing
import pickle
from functools import partial

import numpy as np
import pytest

from ranksvm.data import ComparablePairs, PairList, Queries, as_design_matrix, joined, partition
from ranksvm.losses import LossSpec
from ranksvm.objectives import LinearObjective
from ranksvm.solvers import Status, newton, tron
from ranksvm.terms import host as threaded_module
from ranksvm.terms.host import ThreadedTerm
from ranksvm.terms.parts import term as partitioned_term
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.serial_backend import SerialBackend
from ranksvm.terms.parts.shared_rounds import side_by_side
from ranksvm.terms.parts.term import PartitionedTerm
from ranksvm.terms.parts.tree_sum import tree_sum
from term_checks import CHECKS, LOSSES, PROBLEMS, TermProblem, check_all, parts_of


def threaded(X, spec, pairs, n_threads=1):
    return ThreadedTerm(as_design_matrix(X), spec.with_pairs(pairs), n_threads)


def over(backend, parts, spec):
    backend.put(parts)
    return PartitionedTerm(backend, spec)


def shared(n_parts, n_threads=1):
    """Parts that read the same X."""

    def make(X, spec, pairs):
        return over(SerialBackend(n_threads), [Part(X, part) for part in partition(pairs, n_parts)], spec)

    return make


def split(n_parts, send=lambda part: part):
    """Parts with rows of X of their own."""

    def make(X, spec, pairs):
        parts = parts_of(X, pairs, n_parts)
        return over(SerialBackend(), [send(part) for part in parts], spec)

    return make


def sent(part):
    """A part as another process has it."""
    return pickle.loads(pickle.dumps(part))


class Forgetful(SerialBackend):
    """Parts that move after every round: they lose what they keep, and are added up by somebody else."""

    def round(self, jobs):
        found = super().round(jobs)
        self._parts = [sent(part) for part in self._parts]
        return found


def forgetful(X, spec, pairs):
    return over(Forgetful(2), parts_of(X, pairs, 3), spec)


TERMS = {
    "one thread": threaded,
    "two threads": lambda X, spec, pairs: threaded(X, spec, pairs, 2),
    "pickled": lambda X, spec, pairs: pickle.loads(pickle.dumps(threaded(X, spec, pairs))),
    "1 part": shared(1),
    "3 parts": shared(3),
    "3 parts, X split": split(3),
    "more parts than queries": split(14),
    "parts on two threads": shared(4, 2),
    "parts sent": split(3, sent),
    "parts that forget": forgetful,
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Threads and blocks of a few rows for the smallest data."""
    monkeypatch.setattr(threaded_module, "BLOCK_BYTES", 400)
    monkeypatch.setattr(threaded_module, "HESSIAN_BYTES", 400)
    monkeypatch.setattr(threaded_module, "PYTHON_HESSIAN_ROWS", 9)
    monkeypatch.setattr(threaded_module, "PARALLEL_WORK", 0)
    monkeypatch.setattr(threaded_module, "PARALLEL_PYTHON", 0)


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


def objective(term, loss, C, **options):
    return LinearObjective(term, C, loss.first_width, loss.smoothed, **options)


def part_of(term, fraction, size):
    """Hessians of a fraction of one term's rows, and of all rows of a sample."""
    return fraction if size is term else 1.0


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
        term = make(problem.X, problem.spec, problem.pairs)
        found = objective(term, problem.spec, 0.1, fraction_of=partial(part_of, term, 0.2))
        sample = found.sample()
        assert sample.term.n_rows < 0.5 * problem.pairs.n_rows
        assert sample.C * sample.term.weight == pytest.approx(0.1 * problem.pairs.weight)
        result = newton(found, np.zeros(6), tol=1e-6)
        assert result.status is Status.CONVERGED
        assert abs(result.value - optimum.value) <= result.gap + optimum.gap + 1e-12 * optimum.value
        assert found.refine() or found.hessian_fraction == term.max_fraction


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
    term = over(SerialBackend(), parts, spec)
    queue.put(newton(LinearObjective(term, C, spec.first_width, spec.smoothed), np.zeros(6), tol=1e-8).w)


def test_parts_cross_the_border_of_a_process(monkeypatch):
    """A part is its arrays: what it keeps stays behind, and a fit elsewhere has the same bits."""
    monkeypatch.undo()  # the other process has blocks of the usual size
    problem = TermProblem("hinge")
    parts = parts_of(problem.X, problem.pairs, 2)
    fresh = len(pickle.dumps(parts))
    term = over(SerialBackend(), parts, problem.spec)
    expected = newton(objective(term, problem.spec, 0.1), np.zeros(6), tol=1e-8).w
    assert len(pickle.dumps(parts)) == fresh
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=_fit_elsewhere, args=(queue, parts, problem.spec, 0.1))
    process.start()
    np.testing.assert_array_equal(queue.get(), expected)
    process.join()
    assert process.exitcode == 0


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", [newton, tron])
def test_bits_depend_on_the_partition_alone(solver, loss, kind):
    """Neither on threads, nor on what parts have kept, nor on what was computed before."""
    problem = TermProblem(loss, n=240, **PROBLEMS[kind])
    used = over(SerialBackend(), parts_of(problem.X, problem.pairs, 5), problem.spec)
    solver(objective(used, problem.spec, 3.0), np.zeros(6), tol=1e-3)
    terms = [
        over(backend, parts_of(problem.X, problem.pairs, 5), problem.spec)
        for backend in (SerialBackend(2), Forgetful())
    ]
    fits = [solver(objective(term, problem.spec, 0.5), np.zeros(6), tol=1e-6) for term in (used, *terms)]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.w, fits[0].w)
        assert fit.history == fits[0].history


def test_long_lists_of_tied_scores_have_the_same_bits():
    """Equal scores are added up in the order in which they were sorted: that of the rows, each time."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (3000, 4)).astype(float)
    y, queries = rng.integers(0, 5, 3000).astype(float), Queries.from_group([2000, 1000], 3000)
    pairs = ComparablePairs.from_labels(queries, y, sample_weight=rng.random(3000))
    assert pairs.n_swept == 2
    spec, points = LossSpec("hinge"), rng.normal(size=(4, 4))
    term = over(SerialBackend(), [Part(X, part) for part in partition(pairs, 2)], spec)
    for w in points:
        near = term.evaluate(w, 0.5)
    end = term.evaluate(points[0], 0.5, near)
    middle = term.along(near, end, np.array([0.3]), 0.5)
    parts = [Part(X, part) for part in partition(pairs, 2)]
    again = over(Forgetful(), parts, spec)
    a, b = again.evaluate(points[3], 0.5), again.evaluate(points[0], 0.5)
    np.testing.assert_array_equal(b.gradient, end.gradient)
    assert (b.sums, a.sums) == (end.sums, near.sums)
    np.testing.assert_array_equal(again.along(a, b, np.array([0.3]), 0.5), middle)
    np.testing.assert_array_equal(again.curvature_product(b, points[1]), term.curvature_product(end, points[1]))


# -- the sample --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_no_matrix_travels(storage, monkeypatch):
    """Start, Hessians and preconditioner come from a sample of 500 rows a variable; rounds are sums of n numbers."""
    monkeypatch.setattr(partitioned_term, "SAMPLE_ROWS_PER_VARIABLE", 100)
    problem = TermProblem(n=6000, storage=storage)
    asked, fetched = [], []

    class Watched(SerialBackend):
        def round(self, jobs):
            found = super().round(jobs)
            asked.append(len(pickle.dumps((jobs, found))))
            return found

        def sample(self, n_rows, seed):
            fetched.append(n_rows)
            return super().sample(n_rows, seed)

    term = over(Watched(), parts_of(problem.X, problem.pairs, 5), problem.spec)
    found = objective(term, problem.spec, 0.01, fraction_of=partial(part_of, term, 0.05))
    result = newton(found, np.zeros(6), tol=1e-4)
    assert result.status is Status.CONVERGED
    assert term.max_fraction == 600 / problem.pairs.n_rows
    while found.refine():
        assert found.hessian_fraction <= term.max_fraction
    assert fetched == [600]
    assert max(asked) < 2500
    assert term.n_reductions == len(asked) <= 12
    optimum = newton(
        objective(threaded(problem.X, problem.spec, problem.pairs), problem.spec, 0.01), np.zeros(6), tol=1e-9
    )
    assert abs(result.value - optimum.value) <= result.gap + optimum.gap


def test_a_sample_of_all_rows_is_all_of_them():
    """Even of long queries: the Hessian is then exact."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 3, 400).astype(float)
    pairs = ComparablePairs.from_labels(Queries.from_group([390, 3, 7], 400), y)
    term = over(SerialBackend(), [Part(X, part) for part in partition(pairs, 2)], LossSpec("squared_hinge"))
    whole = threaded(X, LossSpec("squared_hinge"), pairs)
    w = rng.normal(size=3)
    expected = whole.curvature(whole.evaluate(w, None), 1.0, 0)
    np.testing.assert_allclose(term.curvature(term.evaluate(w, None), 1.0, 0), expected, rtol=1e-12)


# -- solvers side by side ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_a_path_shares_its_rounds(loss):
    """Every C has the bits that it has alone, and all together take the rounds of the longest."""
    problem = TermProblem(loss, n=300)
    Cs = [1e-3, 1e-2, 0.1, 1.0]

    def fit(term, C):
        return newton(objective(term, problem.spec, C), np.zeros(6), tol=1e-6)

    alone, n_rounds = [], []
    for C in Cs:
        term = over(SerialBackend(), parts_of(problem.X, problem.pairs, 3), problem.spec)
        alone.append(fit(term, C))
        n_rounds.append(term.n_reductions)
    counted = Counted()
    term = over(counted, parts_of(problem.X, problem.pairs, 3), problem.spec)
    solvers = [lambda backend, C=C: fit(term.with_backend(backend), C) for C in Cs]
    for found, expected in zip(side_by_side(counted, solvers), alone, strict=True):
        np.testing.assert_array_equal(found.w, expected.w)
    assert counted.n_rounds == max(n_rounds)


class Counted(SerialBackend):
    n_rounds = 0

    def round(self, jobs):
        self.n_rounds += 1
        return super().round(jobs)


def test_a_solver_that_fails_ends_the_others():
    problem = TermProblem(n=300)
    backend = SerialBackend()
    term = over(backend, parts_of(problem.X, problem.pairs, 2), problem.spec)

    def fail(shared):
        term.with_backend(shared).evaluate(np.zeros(6), None)
        raise ValueError("as expected")

    def go_on(shared):
        own = term.with_backend(shared)
        for step in range(1000):
            own.evaluate(np.full(6, 0.1 * step), None)

    with pytest.raises(ValueError, match="as expected"):
        side_by_side(backend, [fail, go_on, go_on])

    def stop_all(shared):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side(backend, [stop_all, go_on])


def test_an_error_in_a_part_reaches_every_solver():
    problem = TermProblem()
    backend = SerialBackend()
    term = over(backend, parts_of(problem.X, problem.pairs, 2), problem.spec)
    with pytest.raises(ValueError):  # noqa: PT011  NumPy's own words
        side_by_side(backend, [lambda shared: term.with_backend(shared).evaluate(np.ones(5), None)] * 2)


def test_parts_forget_what_nobody_needs():
    problem = TermProblem()
    backend, parts = SerialBackend(), parts_of(problem.X, problem.pairs, 2)
    term = over(backend, parts, problem.spec)
    first, second = term.evaluate(np.zeros(6), None), term.evaluate(np.ones(6), None)
    assert len(parts[0].points(term.fit, term._owner)) == 2
    term.release(first)
    term.curvature_product(second, np.ones(6))
    assert list(parts[0].points(term.fit, term._owner)) == [second.at.number]
    term.close()
    assert not parts[0].points(term.fit, term._owner)
    # and it comes back when it is asked for
    np.testing.assert_array_equal(term.evaluate(np.ones(6), None).gradient, second.gradient)


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


@pytest.mark.parametrize("kind", PROBLEMS)
def test_joined_parts_are_the_pairs_again(kind):
    problem = TermProblem(n=120, **PROBLEMS[kind])
    parts = [part.renumbered() for part in partition(problem.pairs, 4)]
    together, pairs = joined(parts), problem.pairs.renumbered()
    assert isinstance(together, PairList if kind == "listed" else ComparablePairs)
    assert together.n_pairs == pairs.n_pairs
    np.testing.assert_array_equal(together.weight_per_query, pairs.weight_per_query)
    for query in range(pairs.n_queries):
        for found, expected in zip(together.explicit(query), pairs.explicit(query), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_joined_parts_of_which_some_have_weights():
    queries, y = Queries.from_group([3, 2], 5), np.array([0, 1, 2, 0, 1.0])
    plain = ComparablePairs.from_labels(queries, y)
    weighted = ComparablePairs.from_labels(queries, y, sample_weight=np.array([1, 2, 3, 4, 5.0]))
    assert joined([plain, weighted]).weight_per_query.tolist() == [3.0, 1.0, 11.0, 20.0]
