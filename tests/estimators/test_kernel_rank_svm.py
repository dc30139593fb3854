"""KernelRankSVM against explicit pairs and explicit kernel matrices, and against RankSVM where they are the same."""

import weakref

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from _problems import kernel_problem_of
from oracle import ExplicitPairs
from ranksvm import KernelRankSVM, KernelRankSVMCV, RankSVM, make_ranking
from ranksvm.estimators.path import solve_along
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError
from ranksvm.fits.kernel import KernelProblem
from ranksvm.kernels import kernel_matrix, kernel_named

C = 0.3
GAMMA = 0.2
LOSSES = ["squared_hinge", "hinge", "huber"]
KERNELS = ["rbf", "poly", "linear", "laplacian", "cosine", "precomputed", "callable"]
EXACT = {"kernel_dtype": "float64", "tol": 1e-6, "gamma": GAMMA, "degree": 2}
# alpha^2 / (4 C a) for the squared hinge, width alpha^2 / (2 C a) for the Huberized one, nothing for the hinge
QUADRATIC = {"squared_hinge": 0.25, "huber": 0.15, "hinge": 0.0}


@pytest.fixture(scope="module")
def data():
    """Queries in no order, of four levels, one of them without pairs."""
    data = make_ranking(9, 11, 5, n_levels=4, random_state=0)
    order = np.random.default_rng(0).permutation(len(data.y))
    X, y, qid = data.X[order].astype(np.float64), data.y[order].copy(), data.qid[order]
    y[qid == 3] = 1.0
    return X, y, qid


def matrix_of(name, X, Z):
    if name in ("precomputed", "callable"):
        return np.exp(-np.abs(X[:, None] - Z).sum(axis=2) / 7.0)
    return kernel_named(name, gamma=GAMMA, degree=2, coef0=1.0).block(X, Z)


def called(X, Z):
    assert isinstance(X, np.ndarray)
    return matrix_of("callable", X, Z)


def fitted(name, data, **options):
    X, y, qid = data
    kernel = called if name == "callable" else name
    ranker = KernelRankSVM(C, kernel=kernel, **{**EXACT, **options})
    return ranker.fit(matrix_of(name, X, X) if name == "precomputed" else X, y, qid=qid)


@pytest.mark.parametrize("solver", ["newton", "direct", "tron"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", KERNELS)
def test_objective_certificate_and_dual_against_explicit_pairs(name, loss, solver, data):
    X, y, qid = data
    options = {"tol": 1e-4} if loss == "hinge" and solver == "tron" else {}
    ranker = fitted(name, data, loss=loss, huber_width=0.3, solver=solver, **options)
    Q = matrix_of(name, X, X)
    b = np.zeros(len(y))
    b[ranker.support_] = ranker.dual_coef_
    scores = Q @ b
    oracle = ExplicitPairs(y, qid, width=ranker.width_)
    values = oracle.hinges(scores) if loss == "hinge" else oracle.values(scores)
    assert ranker.objective_ == pytest.approx(0.5 * b @ scores + C * oracle.weight @ values, rel=1e-9)
    assert ranker.converged_
    assert ranker.solver_ == solver
    assert ranker.n_pairs_ == oracle.n_pairs
    assert ranker.n_queries_ == 9
    given = Q if name == "precomputed" else X
    dual = ranker.dual_coef(given, y, qid)
    beta = dual.per_document()
    lower = -0.5 * beta @ Q @ beta
    for block in dual:
        a = block.weights > 0
        lower += block.alpha.sum() - QUADRATIC[loss] * np.sum(block.alpha[a] ** 2 / (C * block.weights[a]))
    assert lower <= ranker.objective_ * (1 + 1e-12)
    # the widths of the hinge divide the round-off of scores
    assert ranker.objective_ - lower == pytest.approx(ranker.duality_gap_, rel=1e-4, abs=1e-8)
    distance = np.sqrt(max(0.0, (beta - b) @ Q @ (beta - b)))
    assert distance <= (1 + 1e-6) * np.sqrt(2 * ranker.duality_gap_) + 1e-6
    np.testing.assert_allclose(ranker.predict(given), scores, rtol=1e-9, atol=1e-9 * np.abs(scores).max())


@pytest.mark.parametrize("loss", LOSSES)
def test_the_linear_kernel_is_the_linear_model(loss, data):
    X, y, qid = data
    linear = RankSVM(C, loss=loss, tol=1e-10).fit(X, y, qid=qid)
    kernel = KernelRankSVM(C, kernel="linear", loss=loss, tol=1e-10).fit(X, y, qid=qid)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-9)
    np.testing.assert_allclose(kernel.coef_, linear.coef_, atol=2e-4)
    np.testing.assert_allclose(kernel.coef_, X[kernel.support_].T @ kernel.dual_coef_, atol=1e-12)
    np.testing.assert_allclose(kernel.predict(X), X @ kernel.coef_, atol=1e-12)


@pytest.mark.parametrize("name", ["linear", "precomputed"])
def test_landmarks_are_as_accurate_as_a_matrix_that_is_not_rounded(name, monkeypatch):
    monkeypatch.setattr("ranksvm.fits.kernel.LANDMARK_ROWS", 100)
    made = make_ranking(40, 10, 8, n_levels=3, random_state=0)
    X, y, qid = made.X.astype(np.float64), made.y, made.qid
    given = matrix_of(name, X, X).astype(np.float32) if name == "precomputed" else X
    Q = given.astype(np.float64) if name == "precomputed" else X @ X.T
    ranker = KernelRankSVM(100.0, kernel=name, tol=1e-7).fit(given, y, qid=qid)
    b = np.zeros(len(y))
    b[ranker.support_] = ranker.dual_coef_
    oracle = ExplicitPairs(y, qid)
    value = 0.5 * b @ Q @ b + 100.0 * oracle.weight @ oracle.values(Q @ b)
    assert ranker.objective_ == pytest.approx(value, rel=1e-10)
    assert ranker.converged_


@pytest.mark.parametrize(
    ("degree", "strength", "loss"), [(3, 1e3, "squared_hinge"), (3, 1e3, "hinge"), (5, 0.1, "hinge")]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_direct_steps_beyond_float64_never_end_above_the_function_0(degree, strength, loss):
    options = {"kernel": "poly", "gamma": 0.1, "coef0": 1e3, "degree": degree, "kernel_dtype": "float64"}
    for seed in range(8):
        made = make_ranking(5, 10, 3, n_levels=3, random_state=seed)
        ranker = KernelRankSVM(strength, loss=loss, solver="direct", **options).fit(made.X, made.y, qid=made.qid)
        assert ranker.objective_ <= 1.001 * strength * ranker.n_pairs_


def test_what_fit_keeps(data):
    X, y, qid = data
    ranker = fitted("rbf", data)
    assert ranker.support_.dtype == np.int64
    assert (np.diff(ranker.support_) > 0).all()
    assert not np.isin(ranker.support_, np.flatnonzero(qid == 3)).any()
    np.testing.assert_array_equal(ranker.support_vectors_, X[ranker.support_])
    assert (ranker.dual_coef_ != 0.0).all()
    assert ranker.gamma_ == GAMMA
    assert ranker.n_kernel_products_ > 0
    assert not hasattr(ranker, "coef_")
    ranker.set_params(kernel="linear").fit(X, y, qid=qid)
    assert ranker.gamma_ is None
    ranker.set_params(kernel="rbf", approximation="fourier", n_components=10).fit(X, y, qid=qid)
    assert not any(hasattr(ranker, name) for name in ("coef_", "dual_coef_", "support_", "support_vectors_"))
    assert ranker.frequencies_.shape == (5, 5)
    assert ranker.feature_coef_.shape == (10,)
    assert ranker.n_kernel_products_ == 0
    ranker.set_params(kernel="precomputed", approximation=None).fit(X @ X.T, y, qid=qid)
    assert not any(hasattr(ranker, name) for name in ("frequencies_", "feature_coef_", "support_vectors_"))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_is_that_of_scikit_learn(sparse, dtype, data):
    from sklearn.svm import SVC

    X, y, qid = data
    X = (X * (np.abs(X) > 0.5) + 3.0 * (not sparse)).astype(dtype)
    given = sp.csr_matrix(X) if sparse else X
    for gamma in ("scale", "auto"):
        expected = SVC(gamma=gamma).fit(X.astype(np.float64), y)._gamma
        assert KernelRankSVM(gamma=gamma).fit(given, y, qid=qid).gamma_ == pytest.approx(expected, rel=1e-6)
    assert KernelRankSVM().fit(np.ones_like(X), y, qid=qid).gamma_ == 1.0


@pytest.mark.parametrize("name", ["rbf", "poly", "linear", "laplacian", "cosine"])
@pytest.mark.parametrize("form", ["csr_matrix", "csr_array", "float32", "frame"])
def test_other_forms_of_X(name, form, data, tmp_path):
    X, y, qid = data
    X = np.where(np.abs(X) < 0.4, 0.0, X)
    if form == "float32":
        X = X.astype(np.float32).astype(np.float64)
    plain = fitted(name, (X, y, qid))
    if form == "frame":
        given = pd.DataFrame(X, columns=list("abcde"))
        given.insert(2, "query", qid)
        ranker = KernelRankSVM(C, kernel=name, **EXACT).fit(given, y, qid="query")
        assert ranker.feature_names_in_.tolist() == list("abcde")
    else:
        given = X.astype(np.float32) if form == "float32" else getattr(sp, form)(X)
        ranker = fitted(name, (given, y, qid))
    assert ranker.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    np.testing.assert_allclose(ranker.predict(given), plain.predict(X), atol=0.02)
    assert ranker.predict(given).dtype == np.float64


def test_weights_pairs_and_groups_are_those_of_the_linear_model(data):
    X, y, qid = data
    order = np.argsort(qid, kind="stable")
    X, y, qid = X[order], y[order], qid[order]
    rng = np.random.default_rng(1)
    weights = {
        "sample_weight": rng.integers(0, 3, len(y)),
        "query_weight": rng.uniform(0.5, 2.0, 10)[qid],
        "propensity": rng.uniform(0.3, 1.0, len(y)),
    }
    oracle = ExplicitPairs(y, qid)
    listed = {"pairs": np.column_stack([oracle.upper, oracle.lower])[::3], "pair_weight": None}
    for options, arguments in [
        ({}, {"y": y, "qid": qid, **weights}),
        ({"pair_weighting": "per_query"}, {"y": y, "qid": qid, **weights}),
        ({"pair_selection": "adjacent", "pair_weighting": "label_gap"}, {"y": y, "qid": qid}),
        ({"pair_weighting": "gain_gap"}, {"y": y, "group": np.bincount(qid)[1:]}),
        ({}, {"qid": qid, **listed}),
        ({}, {"group": np.bincount(qid)[1:], **listed, "sample_weight": weights["sample_weight"]}),
    ]:
        linear = RankSVM(C, tol=1e-8, **options).fit(X, **arguments)
        kernel = KernelRankSVM(C, kernel="linear", tol=1e-8, **options).fit(X, **arguments)
        assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-7)
        assert kernel.n_pairs_ == linear.n_pairs_


@pytest.mark.parametrize("options", [{}, {"approximation": "nystroem"}])
def test_pairs_of_a_query_of_weight_0_are_pairs_as_in_the_linear_model(options, data):
    X, y, qid = data
    given = {"qid": qid, "query_weight": 1.0 * (qid != 1)}
    ranker = KernelRankSVM(C, kernel="linear", tol=1e-8, random_state=0, **options).fit(X, y, **given)
    assert ranker.n_pairs_ == RankSVM(C).fit(X, y, **given).n_pairs_
    dual = ranker.dual_coef(X, y, **given)
    np.testing.assert_allclose(X.T @ dual.per_document(), ranker.support_vectors_.T @ ranker.dual_coef_, atol=1e-4)


@pytest.mark.parametrize("listed", [False, True])
def test_queries_of_weight_0_have_no_rows_in_the_matrix_and_no_landmarks(listed, data, caplog):
    X, y, qid = data
    heavy = qid < 2
    given = {"qid": qid, "query_weight": 1.0 * heavy}
    if listed:
        rows = np.lexsort((y, qid))
        pairs = np.column_stack([rows[1:], rows[:-1]])[(qid[rows[1:]] == qid[rows[:-1]])]
        given, y = {"pairs": pairs, "pair_weight": 1.0 * heavy[pairs[:, 0]]}, None
    with caplog.at_level("INFO", logger="ranksvm"):
        KernelRankSVM(C).fit(X, y, **given)
    assert f"kernel matrix of {heavy.sum()} documents" in caplog.text
    landmarks = KernelRankSVM(C, approximation="nystroem", n_components=12, random_state=0).fit(X, y, **given).support_
    assert heavy[landmarks].all()


def test_the_memory_limit_and_threads_change_nothing_but_round_off(data):
    X, y, qid = data
    X = np.repeat(X, 20, axis=0) + 0.1 * np.random.default_rng(2).normal(size=(20 * len(X), 5))
    y, qid = np.repeat(y, 20), np.repeat(qid, 20)
    whole = KernelRankSVM(0.01, tol=1e-6).fit(X, y, qid=qid)
    for options in ({"memory_limit": "4MB"}, {"memory_limit": 6_000_000, "n_jobs": 1}, {"kernel_dtype": "float64"}):
        part = KernelRankSVM(0.01, tol=1e-6, **options).fit(X, y, qid=qid)
        assert part.objective_ == pytest.approx(whole.objective_, rel=2e-6)
    with pytest.raises(OptionError, match="memory"):
        KernelRankSVM(memory_limit=1000).fit(X, y, qid=qid)


# ---- approximations


@pytest.mark.parametrize("name", ["rbf", "poly", "linear", "laplacian", "cosine", "callable"])
@pytest.mark.parametrize("landmarks", ["uniform", "kmeans++", "leverage"])
def test_landmarks_of_all_documents_are_the_exact_model(name, landmarks, data):
    X, _, _ = data
    exact = fitted(name, data)
    options = {"approximation": "nystroem", "n_components": 200, "landmarks": landmarks, "random_state": 0}
    ranker = fitted(name, data, **options)
    assert ranker.objective_ == pytest.approx(exact.objective_, rel=1e-5)
    np.testing.assert_allclose(ranker.predict(X), exact.predict(X), atol=0.05)
    assert len(ranker.dual_coef_) == len(ranker.support_) <= 88


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_an_approximation_certifies_its_own_problem(approximation, data):
    X, y, qid = data
    options = {"approximation": approximation, "n_components": 20, "random_state": 3}
    ranker = fitted("rbf", data, **options)
    assert ranker.gamma_ == GAMMA
    if approximation == "nystroem":
        assert len(ranker.dual_coef_) == 20
        kernel = kernel_named("rbf", gamma=GAMMA)
        Q = kernel.block(ranker.support_vectors_, ranker.support_vectors_)
        norm = ranker.dual_coef_ @ Q @ ranker.dual_coef_
        scores = kernel.block(X, ranker.support_vectors_) @ ranker.dual_coef_
    else:
        phases = X @ ranker.frequencies_.T
        features = np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(10)
        norm, scores = ranker.feature_coef_ @ ranker.feature_coef_, features @ ranker.feature_coef_
    np.testing.assert_allclose(ranker.predict(X), scores, atol=1e-9)
    oracle = ExplicitPairs(y, qid)
    assert ranker.objective_ == pytest.approx(0.5 * norm + C * oracle.loss(scores), rel=1e-6)
    np.testing.assert_array_equal(fitted("rbf", data, **options).predict(X), ranker.predict(X))


# ---- warm starts


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_warm_starts_of_an_approximation_with_few_pairs(approximation, loss, monkeypatch):
    """Solver "auto" chooses the dual, whose variables are not those of the last model."""
    # no other solver replaces the dual
    monkeypatch.setattr("ranksvm.fits.linear.FEW_DIRECTIONS", 2.0)
    monkeypatch.setattr("ranksvm.fits.linear.CORRELATION_EPOCHS", (0.0, 0.0))
    X = np.random.default_rng(0).normal(size=(400, 4))
    y, qid = np.tile([1, 0], 200), np.repeat(np.arange(200), 2)
    options = {"approximation": approximation, "n_components": 400, "random_state": 0, "loss": loss}
    ranker = KernelRankSVM(warm_start=True, **options).fit(X, y, qid=qid)
    assert ranker.solver_ == "dual"
    ranker.set_params(C=3.0).fit(X, y, qid=qid)
    cold = KernelRankSVM(3.0, **options).fit(X, y, qid=qid)
    assert ranker.converged_
    assert ranker.objective_ == pytest.approx(cold.objective_, rel=1e-4)


def test_warm_starts(data):
    X, y, qid = data
    ranker = fitted("rbf", data, warm_start=True)
    assert ranker.n_iter_ > 0
    assert ranker.fit(X, y, qid=qid).n_iter_ == 0
    cold = fitted("rbf", data).set_params(C=2 * C).fit(X, y, qid=qid)
    assert ranker.set_params(C=2 * C).fit(X, y, qid=qid).objective_ == pytest.approx(cold.objective_, rel=1e-5)
    ranker.set_params(solver="tron").fit(X, y, qid=qid)
    assert ranker.n_iter_ == 0
    ranker.set_params(solver="newton", approximation="nystroem", n_components=500)  # from the projection
    assert ranker.fit(X, y, qid=qid).n_iter_ == 0
    assert ranker.set_params(approximation=None).fit(X, y, qid=qid).n_iter_ == 0
    with pytest.raises(DataError, match="warm_start: X does not have the rows of the last fit"):
        ranker.fit(X + 1.0, y, qid=qid)
    with pytest.raises(DataError, match="warm_start: X does not have the rows of the last fit"):
        ranker.fit(X[:20], y[:20], qid=qid[:20])
    with pytest.raises(DataError, match="warm_start: X does not have the rows of the last fit"):
        ranker.fit(sp.csr_matrix(X), y, qid=qid)
    with pytest.raises(DataError, match="warm_start: the last fit has other features"):
        ranker.set_params(approximation="fourier", n_components=50, random_state=0).fit(X, y, qid=qid)
    ranker.set_params(warm_start=False).fit(X, y, qid=qid)
    assert ranker.set_params(warm_start=True).fit(X, y, qid=qid).n_iter_ == 0
    ranker.set_params(approximation="nystroem").fit(X, y, qid=qid)
    with pytest.raises(DataError, match="warm_start: the last fit had another number of features than X"):
        ranker.fit(X[:, :3], y, qid=qid)
    ranker.set_params(approximation="fourier", warm_start=False).fit(X, y, qid=qid)
    with pytest.raises(DataError, match="warm_start: the last fit used random Fourier features"):
        ranker.set_params(approximation=None, warm_start=True).fit(X, y, qid=qid)
    K = np.exp(-GAMMA * ((X[:, None] - X) ** 2).sum(axis=2))
    given = KernelRankSVM(C, kernel="precomputed", tol=1e-6, warm_start=True).fit(K, y, qid=qid)
    assert given.fit(K, y, qid=qid).n_iter_ == 0


def test_a_start_may_have_coefficients_of_rows_that_have_no_pairs_now(data):
    X, y, qid = data
    ranker = fitted("rbf", data, warm_start=True)
    y = np.where(qid == 5, 0.0, y)
    again = ranker.fit(X, y, qid=qid)
    cold = fitted("rbf", (X, y, qid))
    assert again.objective_ == pytest.approx(cold.objective_, rel=1e-5)
    assert not np.isin(again.support_, np.flatnonzero(qid == 5)).any()


# ---- evaluation


def test_eval_sets_rank_and_score(data):
    X, y, qid = data
    K = matrix_of("precomputed", X, X)
    for kernel, train, test in (("rbf", X, X[:40]), ("precomputed", K, K[:40])):
        ranker = KernelRankSVM(C, kernel=kernel)
        ranker.fit(train, y, qid=qid, eval_set=[(test, y[:40]), (train, y)], eval_qid=[qid[:40], qid])
        found = ranker.evals_result_
        assert found["valid_0"]["ndcg@10"] == [ranker.score(test, y[:40], qid=qid[:40])]
        assert found["valid_1"]["ndcg@10"] == [ranker.score(train, y, qid=qid)]
        ranking = ranker.rank(test, qid[:40])
        scores = ranker.predict(test)
        for query, rows in ranking.items():
            assert (qid[rows] == query).all()
            assert (np.diff(scores[rows]) <= 0).all()


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C must be a positive, finite number, got 0.0"),
        ({"kernel": "sigmoid"}, "kernel must be one of 'rbf', .*'precomputed', got 'sigmoid'"),
        ({"kernel": None}, "kernel must be one of"),
        ({"gamma": "wide"}, "gamma must be 'scale', 'auto' or a positive number, got 'wide'"),
        ({"gamma": -1.0}, "gamma must be a positive, finite number, got -1.0"),
        ({"degree": 0}, "degree must be a whole number from 1, got 0"),
        ({"degree": 2.5}, "degree must be a whole number from 1, got 2.5"),
        ({"coef0": -1.0}, r"coef0 must be a finite number from 0 \(below, 'poly' is not positive semidefinite\)"),
        ({"coef0": np.nan}, "coef0 must be a finite number"),
        ({"approximation": "sketch"}, "approximation must be None or one of 'nystroem', 'fourier', got 'sketch'"),
        ({"approximation": "fourier", "kernel": "poly"}, "'fourier' is for the kernels 'rbf' and 'laplacian', not for"),
        ({"approximation": "fourier", "kernel": called}, "not for a callable: use 'nystroem'"),
        ({"approximation": "nystroem", "kernel": "precomputed"}, "kernel='precomputed' has none: leave it at None"),
        ({"n_components": 0}, "n_components must be a whole number from 1"),
        ({"landmarks": "grid"}, "landmarks must be one of 'uniform', 'kmeans\\+\\+', 'leverage', got 'grid'"),
        ({"random_state": "seed"}, "random_state must be None, a whole number from 0 .* or a numpy.random.RandomState"),
        ({"memory_limit": "lots"}, "memory_limit must be None, a positive number of bytes, or text such as '4GB'"),
        ({"memory_limit": 0}, "memory_limit must be None"),
        ({"kernel_dtype": "float16"}, "kernel_dtype must be one of 'float32', 'float64'"),
        ({"loss": "exponential"}, "loss must be one of"),
        ({"solver": "lbfgs"}, "solver must be one of"),
        ({"tol": 0}, "tol must be"),
    ],
)
def test_hyper_parameters_that_cannot_be(options, message, data):
    X, y, qid = data
    ranker = KernelRankSVM(**options)
    with pytest.raises(OptionError, match=message):
        ranker.fit(X, y, qid=qid)
    assert not hasattr(ranker, "n_features_in_")


def test_data_that_cannot_be(data):
    X, y, qid = data
    K = X @ X.T
    given = KernelRankSVM(kernel="precomputed")
    for wrong, message in [
        (X, "must be square"),
        (K + np.triu(np.ones_like(K), 1), "not symmetric"),
        (K - 5.0 * np.eye(len(K)), "on its diagonal"),
        (np.abs(K) * (1.0 - np.eye(len(K))) + np.diag(np.diag(K)) * 1.01, "diagonal allows|semi-definite"),
        (sp.csr_matrix(K), "sparse precomputed kernel is not supported"),
    ]:
        with pytest.raises(DataError, match=message):
            given.fit(wrong, y, qid=qid)
    given.fit(K, y, qid=qid)
    with pytest.raises(DataError, match="99 features"):
        given.predict(X)
    with pytest.raises(DataError, match="sparse precomputed kernel"):
        given.predict(sp.csr_matrix(K))
    with pytest.raises(DataError, match="not positive semi-definite"):
        KernelRankSVM(kernel=lambda X, Z: -X @ Z.T).fit(X, y, qid=qid)
    with pytest.raises(DataError, match="must have shape"):
        KernelRankSVM(kernel=lambda X, Z: X).fit(X, y, qid=qid)
    with pytest.raises(DataError, match="kernel 'poly' is infinite"):
        KernelRankSVM(kernel="poly", degree=200, gamma=1e9).fit(X, y, qid=qid)
    with pytest.raises(NoComparablePairsError):
        KernelRankSVM().fit(X, np.ones(len(y)), qid=qid)
    with pytest.raises(DataError, match="NaN"):
        KernelRankSVM().fit(np.where(X[3, 2] == X, np.nan, X), y, qid=qid)
    with pytest.raises(DataError, match="requires y to be passed"):
        KernelRankSVM().fit(X, qid=qid)


def test_a_failed_fit_leaves_the_model_as_it_was(data):
    X, y, qid = data
    ranker = fitted("rbf", data)
    before = ranker.predict(X)
    with pytest.raises(DataError):
        ranker.set_params(kernel="precomputed").fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.set_params(kernel="rbf").predict(X), before)


def test_duplicate_rows_one_query_and_a_kernel_matrix_that_is_the_identity(data):
    X, y, qid = data
    twice = KernelRankSVM(C, **EXACT).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2), qid=np.repeat(qid, 2))
    weighted = KernelRankSVM(C, **EXACT).fit(X, y, qid=qid, sample_weight=np.full(len(y), 2.0))
    assert twice.objective_ == pytest.approx(weighted.objective_, rel=2e-6)
    np.testing.assert_allclose(twice.predict(X), weighted.predict(X), atol=0.02)
    one = KernelRankSVM(C, **EXACT).fit(X, y)
    assert one.n_queries_ == 1
    assert one.converged_
    identity = KernelRankSVM(C, **{**EXACT, "gamma": 1e6}).fit(X, y, qid=qid)
    assert identity.converged_
    oracle = ExplicitPairs(y, qid, np.eye(len(y)))
    assert identity.objective_ == pytest.approx(oracle.value(oracle.solve(C), C), rel=1e-6)
    np.testing.assert_array_equal(identity.predict(X + 0.5), 0.0)


@pytest.mark.parametrize("C", 10.0 ** np.arange(-5, 6, 2))
def test_ten_decades_of_C(C, data):
    X, y, qid = data
    ranker = KernelRankSVM(C).fit(X, y, qid=qid)
    assert ranker.converged_
    assert ranker.duality_gap_ <= 1e-4 * ranker.objective_


def test_a_kernel_matrix_too_coarse_for_C_is_made_in_float64():
    """In float32 the problem would not be convex, and its certificate no bound."""
    data = make_ranking(n_queries=30, n_docs=20, n_features=5, random_state=0)
    for C, dtype in ((1.0, "float32"), (1e6, "float64")):
        ranker = KernelRankSVM(C=C, gamma=0.01).fit(data.X, data.y, qid=data.qid)
        assert ranker.kernel_dtype_ == dtype
        exact = KernelRankSVM(C=C, gamma=0.01, kernel_dtype="float64", tol=1e-8).fit(data.X, data.y, qid=data.qid)
        assert ranker.converged_
        assert ranker.duality_gap_ <= 1e-4 * ranker.objective_
        assert ranker.objective_ - ranker.duality_gap_ <= exact.objective_ * (1 + 1e-6)
        assert ranker.objective_ == pytest.approx(exact.objective_, rel=1e-4)
    # a trace goes on where float32 ended
    ranker = KernelRankSVM(gamma=0.01, tol=1e-9).fit(data.X, data.y, qid=data.qid)
    assert ranker.kernel_dtype_ == "float64"
    assert {len(trace) for trace in ranker.history_.values()} == {ranker.n_iter_ + 1}
    assert (np.diff(ranker.history_["hessian_products"]) >= 0).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(3))
def test_direct_steps_at_large_C_end_where_round_off_says(seed):
    random = np.random.default_rng(seed)
    X, y, qid = random.normal(size=(18, 100)), random.integers(0, 2, 18), np.repeat(np.arange(3), 6)
    options = {"C": 8e5, "kernel": "linear", "loss": "hinge"}
    direct, other = (KernelRankSVM(solver=solver, **options).fit(X, y, qid=qid) for solver in ("direct", "newton"))
    for fit in (direct, other):  # the certificate includes round-off
        assert fit.duality_gap_ < 1e-3 * fit.objective_
    assert direct.objective_ == pytest.approx(other.objective_, rel=1e-6)
    assert direct.n_iter_ < 20


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("loss", ["squared_hinge", "huber", "logistic"])
@pytest.mark.parametrize("n_queries", [3, 20])
def test_direct_steps_at_large_C_reach_the_optimum_of_conjugate_gradients(kernel, loss, n_queries):
    random = np.random.default_rng(0)
    X, y, qid = random.normal(size=(100, 3)), random.integers(0, 4, 100), np.sort(random.integers(0, n_queries, 100))
    options = {"C": 1e11, "kernel": kernel, "gamma": 1.0, "loss": loss}
    fits = {
        solver: KernelRankSVM(solver=solver, **options).fit(X, y, qid=qid) for solver in ("newton", "direct", "auto")
    }
    assert all(fit.converged_ for fit in fits.values())
    for solver in ("direct", "auto"):
        assert fits[solver].objective_ == pytest.approx(fits["newton"].objective_, rel=2e-4)
    assert fits["direct"].n_iter_ <= fits["newton"].n_iter_ + 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_linear_kernel_is_not_made_again_in_float64(caplog):
    random = np.random.default_rng(0)
    X, y, qid = random.normal(size=(18, 100)), random.integers(0, 2, 18), np.repeat(np.arange(3), 6)
    with caplog.at_level("INFO", logger="ranksvm"):
        fit = KernelRankSVM(C=8e5, kernel="linear", loss="hinge", solver="direct").fit(X, y, qid=qid)
    assert "round-off" in fit.status_
    assert "too coarse" not in caplog.text


def test_a_path_that_goes_on_in_float64_has_accurate_scores():
    data = make_ranking(n_queries=30, n_docs=20, n_features=5, random_state=0)
    problem, dtypes = kernel_problem_of(KernelRankSVM(tol=1e-7), data, 0.01), []
    for _, result in solve_along(problem, 4.0 ** np.arange(-3, 9)):
        dtypes.append(problem.dtype)
        b, scores = result.w
        if problem.dtype == "float64":
            exact = problem.objective.vector(b)[1]
            np.testing.assert_allclose(scores, exact, rtol=1e-9, atol=1e-12 * np.abs(b).sum())
    assert dtypes[0] == "float32"
    assert dtypes[-4:] == ["float64"] * 4


def test_a_path_goes_on_in_float64_where_it_must():
    data = make_ranking(n_queries=30, n_docs=20, n_features=5, random_state=0)
    ranker = KernelRankSVMCV(Cs=[1.0, 1e6], gammas=[0.01])
    ranker.fit(data.X, data.y, qid=data.qid, eval_set=[(data.X, data.y)], eval_qid=[data.qid])
    alone = KernelRankSVM(C=1e6, gamma=0.01).fit(data.X, data.y, qid=data.qid)
    assert ranker.C_ == 1e6
    assert ranker.kernel_dtype_ == "float64"
    assert ranker.objective_ == pytest.approx(alone.objective_, rel=2e-4)


def test_the_kernel_matrix_in_float32_is_freed_before_the_one_in_float64_is_computed(monkeypatch):
    begun, dtypes = [], []

    def watched(*args, **options):
        assert not any(matrix() for matrix in begun)
        matrix = kernel_matrix(*args, **options)
        begun.append(weakref.ref(matrix))
        dtypes.append(options["dtype"])
        return matrix

    monkeypatch.setattr("ranksvm.fits.kernel.kernel_matrix", watched)
    data = make_ranking(n_queries=30, n_docs=20, n_features=5, random_state=0)
    KernelRankSVM(gamma=0.01, tol=1e-9).fit(data.X, data.y, qid=data.qid)
    assert dtypes == ["float32", "float64"]


def test_documents_far_from_each_other_have_an_accurate_laplacian_kernel():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), np.repeat(np.arange(4), 10)
    X = X + 2.0**40 * (qid % 2)[:, np.newaxis]
    options = {"C": 10.0, "kernel_dtype": "float64", "tol": 1e-8}
    Q = np.exp(-0.5 * np.abs(X[:, np.newaxis] - X).sum(axis=2))
    expected = KernelRankSVM(kernel="precomputed", **options).fit(Q, y, qid=qid)
    found = KernelRankSVM(kernel="laplacian", gamma=0.5, **options).fit(X, y, qid=qid)
    assert found.converged_
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_fit_that_continues_in_float64_solves_the_same_problem(loss):
    rng = np.random.default_rng(3)
    X, y, qid = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), np.repeat(np.arange(4), 10)
    options = {"kernel": "laplacian", "C": 5.0, "loss": loss, "huber_width": 0.03, "tol": 1e-9}
    coarse, fine = (KernelRankSVM(kernel_dtype=dtype, **options).fit(X, y, qid=qid) for dtype in ("float32", "float64"))
    assert (coarse.kernel_dtype_, coarse.converged_, fine.converged_) == ("float64", True, True)
    assert coarse.objective_ == pytest.approx(fine.objective_, rel=2e-9)
    assert coarse.width_ == fine.width_ or loss == "hinge"


def test_a_matrix_that_is_clearly_too_coarse_is_replaced_before_the_smoothing_is_reduced_to_the_end(monkeypatch):
    widths, switch, widened = [], KernelProblem._switch_to_float64, []

    def recorded(problem, C, w):
        widths.append(problem.objective.width)
        return switch(problem, C, w)

    monkeypatch.setattr(KernelProblem, "_switch_to_float64", recorded)
    monkeypatch.setattr(KernelProblem, "_widen", widened.append)
    data = make_ranking(n_queries=30, n_docs=20, n_features=5, random_state=0)
    options = {"C": 10.0, "gamma": 0.5, "loss": "hinge", "tol": 1e-7}
    coarse, fine = (
        KernelRankSVM(kernel_dtype=dtype, **options).fit(data.X, data.y, qid=data.qid)
        for dtype in ("float32", "float64")
    )
    (width,) = widths
    assert not widened
    assert width > 30 * coarse.width_
    assert (coarse.kernel_dtype_, coarse.converged_) == ("float64", True)
    assert coarse.objective_ == pytest.approx(fine.objective_, rel=2e-7)
    assert {len(trace) for trace in coarse.history_.values()} == {coarse.n_iter_ + 1}


def test_memory_for_a_hessian_is_required_only_by_solvers_that_build_one():
    data = make_ranking(n_queries=6, n_docs=20, n_features=4, random_state=0)

    def fitted(solver, n_components, memory_limit):
        options = {"approximation": "fourier", "n_components": n_components, "memory_limit": memory_limit}
        return KernelRankSVM(0.1, solver=solver, n_jobs=1, **options).fit(data.X, data.y, qid=data.qid)

    for solver in ("tron", "direct"):
        assert fitted(solver, 1000, "50MB").converged_
    with pytest.raises(OptionError, match="needs at least 7"):
        fitted("newton", 1000, "50MB")
    # no solver builds a Hessian of more than 2,000 features
    assert fitted("auto", 5001, "100MB").converged_
    with pytest.raises(OptionError, match="solver='newton' builds a dense Hessian"):
        fitted("newton", 5001, "100MB")


def test_direct_steps_need_the_features_of_an_approximation_in_memory(data):
    X, y, qid = data
    options = {"approximation": "nystroem", "n_components": 20, "n_jobs": 1}
    assert KernelRankSVM(0.1, solver="direct", **options).fit(X, y, qid=qid).solver_ == "direct"
    with pytest.raises(OptionError, match="solver='direct' needs the features of all documents in memory: raise"):
        KernelRankSVM(0.1, solver="direct", memory_limit="2MB", **options).fit(X, y, qid=qid)
    assert KernelRankSVM(0.1, memory_limit="2MB", **options).fit(X, y, qid=qid).converged_
