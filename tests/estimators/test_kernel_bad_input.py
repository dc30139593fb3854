"""Kernel models of bad and odd input: named where it is refused, certified or an honest warning where it is not."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from oracle import ExplicitPairs
from ranksvm import KernelRankSVM, make_ranking
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError
from ranksvm.kernels import kernel_named
from ranksvm.objectives import KernelObjective

KERNELS = ("rbf", "poly", "linear", "laplacian", "cosine")


@pytest.fixture(scope="module")
def data():
    data = make_ranking(9, 11, 5, n_levels=4, random_state=0)
    return data.X.astype(np.float64), data.y, data.qid


# ---- kernels that are none


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda X, Z: X @ Z.T * np.nan, "kernel 'callable' is NaN"),
        (lambda X, Z: 10.0 * X @ Z.T + X[:, :1] * Z[:, 1:2].T, "kernel 'callable' is not symmetric|is indefinite"),
        (lambda X, Z: np.tanh(X @ Z.T - 1.0), "kernel 'callable' is not positive semi-definite|is indefinite"),
        (lambda X, Z: [["a"] * len(Z)] * len(X), "rows must return an array of numbers, got list: could not convert"),
        (lambda X, Z: None, r"rows must have shape \(\d+, \d+\), got \(\)"),
        (lambda X, Z: X @ Z[:1].T, "must have shape"),
    ],
)
@pytest.mark.parametrize("approximation", [None, "nystroem"])
def test_callables_that_are_no_kernels(kernel, message, approximation, data):
    X, y, qid = data
    ranker = KernelRankSVM(kernel=kernel, approximation=approximation, n_components=60, random_state=0)
    with pytest.raises(DataError, match=message):
        ranker.fit(X, y, qid=qid)
    with pytest.raises(NotFittedError):
        ranker.predict(X)


def test_an_error_of_a_callable_is_raised_as_it_is(data):
    X, y, qid = data

    def broken(X, Z):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        KernelRankSVM(kernel=broken).fit(X, y, qid=qid)


@pytest.mark.parametrize("approximation", [None, "nystroem"])
def test_callables_may_return_sparse_matrices(approximation, data):
    X, y, qid = data
    X = X * (X > 0.5)
    options = {"approximation": approximation, "n_components": 20, "random_state": 0}
    plain = KernelRankSVM(0.1, kernel="linear", **options).fit(X, y, qid=qid)
    for form in (sp.csr_array, sp.csr_matrix):
        model = KernelRankSVM(0.1, kernel=lambda A, B: A @ B.T, **options).fit(form(X), y, qid=qid)
        assert model.objective_ == pytest.approx(plain.objective_, rel=2e-4)
        np.testing.assert_allclose(model.predict(form(X)), plain.predict(X), atol=0.05)


def test_precomputed_kernels_of_other_shapes_and_values(data):
    X, y, qid = data
    K = X @ X.T
    spoilt = K.copy()
    spoilt[3, 40] = np.nan
    with pytest.raises(DataError, match=r"contains NaN at X\[3, 40\]: "):
        KernelRankSVM(kernel="precomputed").fit(spoilt, y, qid=qid)
    model = KernelRankSVM(kernel="precomputed").fit(K, y, qid=qid)
    for wrong, message in [(K[:, :50], "50 features"), (K[0], "1D array"), (spoilt, "contains NaN")]:
        with pytest.raises(DataError, match=message):
            model.predict(wrong)
    for form in (np.asfortranarray(K), K.tolist(), pd.DataFrame(K)):
        same = KernelRankSVM(kernel="precomputed").fit(form, y, qid=qid)
        np.testing.assert_array_equal(same.dual_coef_, model.dual_coef_)


# ---- documents


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("approximation", [None, "nystroem", "fourier"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_documents_that_are_all_the_same(kernel, approximation, storage, data):
    """No function tells them apart: f = 0 is optimal up to what all pairs cost."""
    if approximation == "fourier" and kernel not in ("rbf", "laplacian"):
        pytest.skip("no random features of it are known")
    X, y, qid = data
    for value in (0.0, 1.0):
        model = KernelRankSVM(0.5, kernel=kernel, approximation=approximation, n_components=10, random_state=0)
        model.fit(storage(np.full_like(X, value)), y, qid=qid)
        assert model.converged_
        assert model.objective_ == pytest.approx(0.5 * model.n_pairs_, rel=1e-4)
        assert np.ptp(model.predict(storage(np.full_like(X, value)))) <= 1e-9


@pytest.mark.parametrize("solver", ["newton", "tron"])
@pytest.mark.parametrize("gamma", [1e5, 1e-7])
def test_gamma_so_large_that_Q_is_the_identity_or_so_small_that_it_is_ones(gamma, solver, data):
    X, y, qid = data
    for dtype in ("float32", "float64"):
        model = KernelRankSVM(0.5, gamma=gamma, kernel_dtype=dtype, solver=solver, tol=1e-8).fit(X, y, qid=qid)
        assert model.converged_
        assert model.duality_gap_ <= 1e-8 * model.objective_
        if gamma > 1.0:
            oracle = ExplicitPairs(y, qid, np.eye(len(y)))
            best = oracle.value(oracle.solve(0.5), 0.5)
            assert -1e-9 * best <= model.objective_ - best <= model.duality_gap_ + 1e-9 * best
            # f(x_i) = b_i
            np.testing.assert_allclose(model.predict(X)[model.support_], model.dual_coef_, atol=1e-12)
        else:  # a function that tells documents apart is too long
            assert model.objective_ == pytest.approx(0.5 * model.n_pairs_, rel=2e-4)


def test_many_equal_documents():
    """Of 400 rows five different ones: the matrix has rank 5, and pairs of equal documents cost what they cost."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 3))[rng.integers(0, 5, 400)]
    y, qid = rng.integers(0, 3, 400), rng.integers(0, 8, 400)
    values, vectors = np.linalg.eigh(kernel_named("rbf", gamma=0.3).block(X, X))
    oracle = ExplicitPairs(y, qid, vectors[:, -5:] * np.sqrt(values[-5:]))
    best = oracle.value(oracle.solve(2.0), 2.0)
    for options in ({}, {"approximation": "nystroem"}, {"kernel_dtype": "float64"}):
        model = KernelRankSVM(2.0, gamma=0.3, tol=1e-6, **options).fit(X, y, qid=qid)
        assert model.converged_
        assert model.objective_ == pytest.approx(best, rel=2e-6)
    assert len(KernelRankSVM(gamma=0.3, approximation="nystroem").fit(X, y, qid=qid).support_) == 5


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber"])
def test_one_pair(kernel, loss):
    """The margin of x over z grows along k(x, .) - k(z, .) alone: the optimum is known."""
    x, z, C = np.array([[1.0, 2.0]]), np.array([[0.5, -1.0]]), 0.7
    k = kernel_named(kernel, gamma=0.4, degree=2)
    squared = float(k.diagonal(x)[0] + k.diagonal(z)[0] - 2.0 * k.block(x, z)[0, 0])
    alpha = 2.0 * C / (1.0 + 2.0 * C * squared) if loss == "squared_hinge" else min(C, 1.0 / squared)
    if loss == "huber":
        alpha = min(C, C / (0.5 + C * squared))
    expected = alpha - 0.5 * squared * alpha**2
    expected -= {"squared_hinge": alpha**2 / (4.0 * C), "hinge": 0.0, "huber": 0.5 * alpha**2 / (2.0 * C)}[loss]
    options = {"kernel": kernel, "loss": loss, "gamma": 0.4, "degree": 2, "tol": 1e-8, "huber_width": 0.5}
    X = np.vstack([x, z])
    for model in (
        KernelRankSVM(C, kernel_dtype="float64", **options).fit(X, [1, 0]),
        KernelRankSVM(C, kernel_dtype="float64", **options).fit(np.vstack([X, X + 9.0]), pairs=[[0, 1]]),
    ):
        assert model.objective_ == pytest.approx(expected, rel=1e-7)
        np.testing.assert_array_equal(model.support_, [0, 1])
        np.testing.assert_allclose(model.dual_coef_, [alpha, -alpha], rtol=1e-3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_other_dtypes_and_layouts_of_X(kernel):
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(80, 4)) * (rng.random((80, 4)) < 0.6)
    y, qid = rng.integers(0, 3, 80), rng.integers(0, 6, 80)
    explicit = sp.csr_array(X.astype(np.float64) + 99.0)
    explicit.data -= 99.0  # zeros that are stored
    unsorted = sp.csr_array(X.astype(np.float64))
    for start, stop in zip(unsorted.indptr[:-1], unsorted.indptr[1:], strict=True):
        unsorted.indices[start:stop] = unsorted.indices[start:stop][::-1].copy()
        unsorted.data[start:stop] = unsorted.data[start:stop][::-1].copy()
    unsorted.has_sorted_indices = False
    rows, columns = X.nonzero()
    twice = sp.coo_array((np.tile(X[rows, columns] / 2.0, 2), (np.tile(rows, 2), np.tile(columns, 2))), X.shape)
    forms = [X.astype(np.float64), X, X.tolist(), np.asfortranarray(X, dtype=np.float64), X.astype(np.float32)]
    forms += [np.repeat(X.astype(np.float64), 2, axis=1)[:, ::2], explicit, unsorted, twice]
    forms += [sp.csc_array(X.astype(np.float64)), pd.DataFrame(X, columns=list("abcd"))]
    for approximation in (None, "nystroem"):
        options = {"approximation": approximation, "n_components": 200, "gamma": 0.1, "tol": 1e-6}
        models = [KernelRankSVM(0.1, kernel=kernel, **options).fit(form, y, qid=qid) for form in forms]
        for model, form in zip(models, forms, strict=True):
            assert model.objective_ == pytest.approx(models[0].objective_, rel=1e-5)
            np.testing.assert_allclose(model.predict(form), models[0].predict(forms[0]), atol=0.02)


def test_threads_change_round_off_only():
    data = make_ranking(60, 30, 8, random_state=0)
    for options in ({}, {"kernel": "laplacian"}, {"approximation": "nystroem", "n_components": 50, "random_state": 0}):
        one, two, three = (
            KernelRankSVM(0.1, n_jobs=n, tol=1e-8, **options).fit(data.X, data.y, qid=data.qid) for n in (1, 2, 3)
        )
        for other in (two, three):
            assert other.objective_ == pytest.approx(one.objective_, rel=1e-7)
            np.testing.assert_allclose(other.predict(data.X), one.predict(data.X), atol=1e-3)


# ---- C over ten decades


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize(
    ("kernel", "gamma"),
    [("rbf", 1e-3), ("rbf", 0.1), ("rbf", 10.0), ("linear", 1.0), ("poly", 0.1), ("laplacian", 0.1)],
)
def test_no_certificate_is_false(kernel, gamma, loss, data):
    X, y, qid = data
    values, vectors = np.linalg.eigh(kernel_named(kernel, gamma=gamma).block(X, X))
    oracle, hinge = ExplicitPairs(y, qid, vectors * np.sqrt(np.maximum(values, 0.0))), loss == "hinge"
    options = {"kernel": kernel, "gamma": gamma, "loss": loss, "kernel_dtype": "float64"}

    def bounds(model, C):
        """The objective of a model, and a lower bound on the optimum."""
        b = np.zeros(len(y))
        b[model.support_] = model.dual_coef_
        oracle.width = model.width_
        w = oracle.X.T @ b
        return oracle.hinge_value(w, C) if hinge else oracle.value(w, C), oracle.dual_value(w, C, hinge=hinge)

    for C in 10.0 ** np.arange(-5, 6):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model = KernelRankSVM(C, **options).fit(X, y, qid=qid)
        assert model.converged_ == (not any(each.category is ConvergenceWarning for each in caught))
        value, bound = bounds(model, C)
        assert model.objective_ == pytest.approx(value, rel=1e-6)
        if model.converged_ and hinge and C > 1e4:
            # An error of 1e-10 in a margin changes a dual variable by C / width times as much. The dual variables of
            # conjugate gradients may therefore give the better bound.
            bound = max(bound, bounds(KernelRankSVM(C, solver="newton", **options).fit(X, y, qid=qid), C)[1])
        if model.converged_:
            assert value - bound <= 1.01e-4 * value


def test_C_so_large_that_loose_steps_go_to_and_fro():
    """Conjugate gradients that stop early took 1000 steps between the same few places."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(30, 100)), rng.integers(0, 2, 30)
    y = np.clip(np.round(X[:, 0] + rng.normal(size=30) + 2.0), 0.0, 4.0)
    values, vectors = np.linalg.eigh(kernel_named("poly", gamma=0.1).block(X, X))
    oracle = ExplicitPairs(y, qid, vectors * np.sqrt(np.maximum(values, 0.0)))
    for C in (1e4, 1e5):
        model = KernelRankSVM(C, kernel="poly", gamma=0.1, kernel_dtype="float64", max_iter=150).fit(X, y, qid=qid)
        assert model.converged_
        best = oracle.value(oracle.solve(C), C)
        assert -1e-6 * best <= model.objective_ - best <= model.duality_gap_ + 1e-6 * best


# ---- many levels


@pytest.mark.parametrize("options", [{}, {"memory_limit": 2_500_000}, {"approximation": "nystroem"}])
def test_distinct_labels(options):
    """As many levels as documents in a query."""
    data = make_ranking(4, 300, 46, n_levels=None, random_state=0)
    model = KernelRankSVM(1e-3, n_components=200, random_state=0, **options).fit(data.X, data.y, qid=data.qid)
    assert model.n_pairs_ == 4 * 300 * 299 // 2
    assert model.converged_
    scores = model.predict(data.X)
    oracle = ExplicitPairs(data.y, data.qid)
    b = model.dual_coef_
    norm = b @ kernel_named("rbf", gamma=model.gamma_).block(model.support_vectors_, model.support_vectors_) @ b
    assert model.objective_ == pytest.approx(0.5 * norm + 1e-3 * oracle.loss(scores), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"memory_limit": "1.5GB"}, {"approximation": "nystroem", "memory_limit": "100MB"}])
def test_distinct_labels_of_37000_rows(options):
    """As many rows, features and levels as MQ2007-list has in 5 % of its queries."""
    data = make_ranking(33, 1129, 46, n_levels=None, random_state=0)
    model = KernelRankSVM(1e-4, n_components=300, random_state=0, **options).fit(data.X, data.y, qid=data.qid)
    assert model.n_pairs_ == 33 * 1129 * 1128 // 2
    assert model.converged_
    assert model.n_iter_ <= 10


# ---- fits that do not end well


@pytest.mark.parametrize("solver", ["newton", "tron"])
def test_an_interrupted_fit_keeps_the_best_so_far_if_asked_for(solver, data, interrupt_at):
    X, y, qid = data
    options = {"solver": solver, "tol": 1e-8, "kernel_dtype": "float64"}
    whole = KernelRankSVM(**options).fit(X, y, qid=qid)
    assert whole.n_iter_ >= 3
    interrupt_at(3, KernelObjective)
    model = KernelRankSVM(**options, keep_on_interrupt=True).fit(X, y, qid=qid)
    assert not model.converged_
    assert model.status_.startswith("Interrupted")
    assert 0 < model.n_iter_ < whole.n_iter_
    assert 0.0 < model.objective_ - whole.objective_ <= model.duality_gap_
    assert model.predict(X).shape == y.shape
    model.set_params(warm_start=True).fit(X, y, qid=qid)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-7)


def test_an_interrupt_is_raised_and_leaves_the_last_model(data, interrupt_at):
    X, y, qid = data
    model = KernelRankSVM(tol=1e-8).fit(X, y, qid=qid)
    before, scores = dict(vars(model)), model.predict(X)
    interrupt_at(2, KernelObjective)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(C=5.0).fit(X[:50], y[:50], qid=qid[:50])
    assert vars(model) == {**before, "C": 5.0}
    np.testing.assert_array_equal(model.predict(X), scores)


@pytest.mark.parametrize("approximation", [None, "nystroem", "fourier"])
def test_a_failed_fit_leaves_the_estimator_as_it_was(approximation, data):
    X, y, qid = data
    options = {"approximation": approximation, "n_components": 10, "random_state": 0}
    model = KernelRankSVM(**options).fit(X, y, qid=qid)
    before, scores = dict(vars(model)), model.predict(X)
    broken = KernelRankSVM(**options)
    for error, arguments in [
        (NoComparablePairsError, {"X": X[:, :3], "y": np.ones(len(y)), "qid": qid}),
        (NoComparablePairsError, {"X": X, "y": y, "qid": np.arange(len(y))}),
        (NoComparablePairsError, {"X": X, "y": y, "qid": qid, "sample_weight": np.zeros(len(y))}),
        (DataError, {"X": X, "y": y[:-1], "qid": qid}),
        (DataError, {"X": X, "y": np.where(qid == 2, np.nan, y), "qid": qid}),
        (DataError, {"X": np.where(X > 1.0, np.inf, X), "y": y, "qid": qid}),
        (DataError, {"X": X, "y": y, "qid": qid, "eval_set": [(X[:, :2], y)], "eval_qid": [qid]}),
    ]:
        with pytest.raises(error):
            model.fit(**arguments)
        assert vars(model) == before
        with pytest.raises(error):
            broken.fit(**arguments)
        assert vars(broken).keys() == broken.get_params().keys()
    np.testing.assert_array_equal(model.predict(X), scores)
    with pytest.raises(OptionError, match="memory"):
        model.set_params(approximation=None, memory_limit=10).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.set_params(approximation=approximation).predict(X), scores)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_copies_and_clones(kernel, data):
    X, y, qid = data
    given = X @ X.T if kernel == "precomputed" else X
    model = KernelRankSVM(0.1, kernel=kernel, n_jobs=1).fit(given, y, qid=qid)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(given), model.predict(given))
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "dual_coef_")
    np.testing.assert_array_equal(other.fit(given, y, qid=qid).predict(given), model.predict(given))
