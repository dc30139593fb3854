"""RegularizedRankSVM against a dense solver, its limits, and what it shares with other estimators."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from oracle import pairs_of
from ranksvm import Queries, RankSVM, RegularizedRankSVM, load, make_ranking
from ranksvm.data import ComparablePairs, PairBlocks
from ranksvm.exceptions import DataError, OptionError
from ranksvm.objectives.low_rank.nuclear_norm import required_bytes

PARAMETERS = [(0.3, 0.2, 0.5), (2.0, 0.05, 3.0), (0.05, 1.0, 0.1), (0.3, 0.0, 0.5)]


def make_data(n_levels=3, n_queries=5, n_docs=12, seed=0):
    data = make_ranking(n_queries, n_docs, 4, n_levels=n_levels, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(data.y))
    return data.X[order].astype(np.float64), data.y[order], data.qid[order]


def objective_of(model, X, y, qid):
    """The objective (15) from the dense blocks that the model gives."""
    value, beta = 0.0, np.zeros(len(y))
    for alpha, matrix in zip(model.dual_coef(X, y, qid), model.low_rank_coef(X, y, qid), strict=True):
        assert (alpha.alpha >= 0.0).all()
        assert (alpha.alpha <= model.C * (1 + 1e-12)).all()
        beta[alpha.preferred_rows] += alpha.alpha.sum(axis=1)
        beta[alpha.other_rows] -= alpha.alpha.sum(axis=0)
        value += model.lam * ((alpha.alpha - matrix.alpha) ** 2).sum() - alpha.alpha.sum()
        value += model.gamma * np.linalg.norm(matrix.alpha, "nuc")
    w = X.T @ beta
    return 0.5 * w @ w + value, w


@pytest.mark.parametrize(("C", "gamma", "lam"), PARAMETERS)
@pytest.mark.parametrize("n_levels", [2, 3, 12])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_the_parts_make_up_the_whole(C, gamma, lam, n_levels, storage):
    X, y, qid = make_data(n_levels)
    model = RegularizedRankSVM(C, gamma=gamma, lam=lam, tol=1e-6).fit(storage(X), y, qid=qid)
    assert model.converged_
    assert 0.0 <= model.duality_gap_ <= 1e-6 * abs(model.objective_)
    value, w = objective_of(model, X, y, qid)
    assert value == pytest.approx(model.objective_, rel=1e-7)
    assert np.linalg.norm(w - model.coef_) <= 1e-6 * abs(model.objective_) ** 0.5
    assert model.objective_ == model.history_["objective"][-1]
    assert (np.diff(model.history_["objective"]) <= 1e-9 * abs(model.objective_)).all()
    if gamma > 0.0:
        ranks = [np.linalg.matrix_rank(block.alpha, tol=1e-9) for block in model.low_rank_coef(X, y, qid)]
        np.testing.assert_array_equal(model.ranks_, ranks)
    assert model.n_pairs_ == len(pairs_of(y, qid)[0])


@pytest.mark.parametrize(("C", "gamma", "lam"), PARAMETERS)
@pytest.mark.parametrize("n_levels", [2, 3])
def test_against_a_dense_solver(C, gamma, lam, n_levels):
    cp = pytest.importorskip("cvxpy", reason="the dense solver that this is checked against is not installed")
    X, y, qid = make_data(n_levels, n_queries=2, n_docs=8)
    model = RegularizedRankSVM(C, gamma=gamma, lam=lam, tol=1e-8, max_iter=5000).fit(X, y, qid=qid)
    w, value, box = 0.0, 0.0, []
    for block in (block for block in model.dual_coef(X, y, qid) if block.alpha.size):
        alpha, matrix = cp.Variable(block.shape), cp.Variable(block.shape)
        value += lam * cp.sum_squares(alpha - matrix) + gamma * cp.norm(matrix, "nuc") - cp.sum(alpha)
        w += cp.sum(alpha, axis=1) @ X[block.preferred_rows] - cp.sum(alpha, axis=0) @ X[block.other_rows]
        box += [alpha >= 0.0, alpha <= C * block.weights]
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + value), box)
    problem.solve(solver="CLARABEL")
    assert model.objective_ == pytest.approx(problem.value, rel=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 1e-9])
def test_without_nuclear_norms_it_is_the_plain_dual(gamma):
    X, y, qid = make_data()
    plain = RankSVM(0.3, loss="hinge", tol=1e-9).fit(X, y, qid=qid)
    model = RegularizedRankSVM(0.3, gamma=gamma, lam=0.5, tol=1e-7, max_iter=5000).fit(X, y, qid=qid)
    assert -model.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-3)


def test_large_nuclear_norms_leave_rank_0():
    X, y, qid = make_data()
    model = RegularizedRankSVM(0.3, gamma=1e4, lam=0.5).fit(X, y, qid=qid)
    assert (model.ranks_ == 0).all()
    assert all((block.alpha == 0.0).all() for block in model.low_rank_coef(X, y, qid))


def test_ranks_fall_with_gamma():
    X, y, qid = make_data(n_docs=30)
    ranks = [RegularizedRankSVM(0.5, gamma=gamma).fit(X, y, qid=qid).ranks_.mean() for gamma in (0.05, 1.0, 10.0)]
    assert ranks[0] > ranks[1] > ranks[2]


def test_threads_and_storage_change_nothing_but_round_off():
    X, y, qid = make_data()
    models = [
        RegularizedRankSVM(0.3, n_jobs=n_jobs, tol=1e-8).fit(storage(X), y, qid=qid)
        for n_jobs in (1, 3)
        for storage in (np.asarray, sp.csr_matrix)
    ]
    for model in models[1:]:
        assert model.objective_ == pytest.approx(models[0].objective_, rel=1e-7)
        np.testing.assert_allclose(model.coef_, models[0].coef_, atol=1e-4)


def test_queries_without_pairs():
    X, y, qid = make_data()
    y[qid == 1] = 2.0
    model = RegularizedRankSVM(0.3).fit(X, y, qid=qid)
    query = list(dict.fromkeys(qid.tolist())).index(1)
    assert model.ranks_[query] == 0
    assert model.dual_coef(X, y, qid)[query].shape == (0, 0)
    value, _ = objective_of(model, X, y, qid)
    assert value == pytest.approx(model.objective_)


def test_warm_start_goes_on():
    X, y, qid = make_data()
    model = RegularizedRankSVM(0.3, tol=1e-6, warm_start=True).fit(X, y, qid=qid)
    cold, objective = model.n_iter_, model.objective_
    model.fit(X, y, qid=qid)
    assert model.n_iter_ < cold
    assert model.objective_ == pytest.approx(objective, rel=1e-6)
    with pytest.raises(DataError, match="warm_start: the last fit had other queries"):
        model.fit(X[:-1], y[:-1], qid=qid[:-1])
    with pytest.raises(DataError, match="warm_start: the last fit had 4 features, X has 3"):
        model.fit(X[:, :3], y, qid=qid)
    assert model.objective_ == pytest.approx(objective, rel=1e-6)  # the failed fits left it as it was


@pytest.mark.parametrize(
    "options",
    [{"C": 1e3}, {"C": 1e-9}, {"gamma": 1e6}, {"gamma": 1e-300}, {"lam": 1e3}, {"lam": 1e-12}, {"C": 10, "gamma": 1e4}],
)
@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_extreme_options_take_few_steps(options, scale):
    """Where C, gamma and lam differ most a fixed length of the steps takes a thousand of them."""
    X, y, qid = make_data()
    model = RegularizedRankSVM(**options).fit(scale * X, y, qid=qid)
    assert model.converged_
    assert 0.0 <= model.duality_gap_ <= 1e-4 * abs(model.objective_)
    assert model.n_iter_ < 150


def test_a_lam_that_is_too_large_for_float64():
    X, y, qid = make_data()
    with pytest.raises(DataError, match=r"lam=1e\+300 is too large"):
        RegularizedRankSVM(lam=1e300).fit(X, y, qid=qid)


def test_pairs_whose_margins_all_fall_below_0():
    """The first targets lower every margin, so that alpha, A and with them the first value are 0."""
    X, y, qid = make_data()
    model = RegularizedRankSVM(1.0, gamma=1e4, lam=10.0).fit(1e-6 * X, y, qid=qid)
    assert model.objective_ == pytest.approx(-model.n_pairs_ / 40.0)  # alpha = 1 / (2 lam) for every pair


def test_warm_start_at_other_options():
    X, y, qid = make_data()
    model = RegularizedRankSVM(1.0, warm_start=True, tol=1e-6).fit(X, y, qid=qid)
    for options in ({"C": 1e3}, {"C": 0.1}, {"gamma": 0.0}, {"gamma": 20.0}, {"lam": 0.01}):
        model.set_params(**options).fit(X, y, qid=qid)
        cold = RegularizedRankSVM(**{**model.get_params(), "warm_start": False}).fit(X, y, qid=qid)
        assert model.converged_
        assert model.n_iter_ < 150
        assert model.objective_ == pytest.approx(cold.objective_, rel=2e-6)


@pytest.mark.parametrize("gamma", [1.0, 0.0])
def test_saved_and_loaded(tmp_path, gamma):
    X, y, qid = make_data()
    model = RegularizedRankSVM(0.3, gamma=gamma).fit(X, y, qid=qid)
    model.save(tmp_path / "model.rsvm")
    loaded = load(tmp_path / "model.rsvm")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    for one, other in zip(loaded.low_rank_coef(X, y, qid), model.low_rank_coef(X, y, qid), strict=True):
        np.testing.assert_array_equal(one.alpha, other.alpha)


def test_the_dual_of_other_data_is_refused():
    X, y, qid = make_data()
    model = RegularizedRankSVM(0.3).fit(X, y, qid=qid)
    with pytest.raises(DataError, match="give the training data"):
        model.dual_coef(X[:-1], y[:-1], qid[:-1])
    with pytest.raises(DataError, match="give the training data"):
        model.low_rank_coef(X, -y, np.zeros(len(y)))


@pytest.mark.parametrize("solver", ["splitting", "alternating"])
def test_the_dual_of_rows_in_another_order_is_refused(solver):
    X, y, qid = make_data()
    model = RegularizedRankSVM(0.3, gamma=0.1, tol=1e-2, solver=solver).fit(X, y, qid=qid)
    order = np.argsort(qid + 0.1 * y, kind="stable")
    for method in (model.dual_coef, model.low_rank_coef):
        with pytest.raises(DataError, match="in the same order"):
            method(X[order], y[order], qid[order])


def test_the_dual_of_queries_without_rows():
    X, y, qid = make_data()
    order = np.argsort(qid, kind="stable")
    X, y, sizes = X[order], y[order], np.unique(qid, return_counts=True)[1]
    model = RegularizedRankSVM(0.3).fit(X, y, group=[0, *sizes])
    expected = model.dual_coef(X, y, group=[0, *sizes]).per_document()
    np.testing.assert_allclose(X.T @ expected, model.coef_, rtol=0, atol=0.02 * np.abs(model.coef_).max())


def test_the_dual_of_one_document_against_many_takes_little_memory():
    X = np.random.default_rng(0).normal(size=(4000, 3))
    y = (np.arange(4000) == 7).astype(float)
    model = RegularizedRankSVM(1.0).fit(X, y, group=[4000])
    tracemalloc.start()
    alpha, matrix = model.dual_coef(X, y)[0].alpha, model.low_rank_coef(X, y)[0].alpha
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert alpha.shape == matrix.shape == (1, 3999)
    assert peak < 8e6


def test_what_does_not_fit_into_memory_is_refused_before_it_begins():
    X, y, qid = make_data()
    model = RegularizedRankSVM(memory_limit=10_000)
    with pytest.raises(OptionError, match=r"entries\) may take, at the highest rank: [\d.]+ KB, more than 10 KB"):
        model.fit(X, y, qid=qid)
    assert not hasattr(model, "coef_")


def most_between(y, qid):
    """Nearly all documents of a level between two others: far more entries than pairs."""
    return np.where(np.arange(len(y)) % 100 == 0, 2.0, np.where(np.arange(len(y)) % 100 == 1, 0.0, 1.0))


@pytest.mark.parametrize("gamma", [0.0, 5.0])
@pytest.mark.parametrize(
    ("n_queries", "n_docs", "labels"), [(1, 120, None), (1, 200, most_between), (20, 40, None), (200, 3, None)]
)
def test_a_fit_takes_no_more_memory_than_it_says(n_queries, n_docs, labels, gamma):
    X, y, qid = make_data(3, n_queries, n_docs)
    y = y if labels is None else labels(y, qid)
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y.astype(float))
    tracemalloc.start()
    RegularizedRankSVM(0.1, gamma=gamma, tol=0.01, n_jobs=1).fit(X, y, qid=qid)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= required_bytes(PairBlocks(pairs), 1) + X.nbytes + 100_000


@pytest.mark.parametrize(
    ("name", "value"),
    [("C", 0.0), ("gamma", -1.0), ("gamma", True), ("lam", 0.0), ("tol", -1.0), ("max_iter", 0), ("memory_limit", "x")],
)
def test_wrong_options_are_named(name, value):
    X, y, qid = make_data()
    with pytest.raises(OptionError, match=f"^{name} must be"):
        RegularizedRankSVM(**{name: value}).fit(X, y, qid=qid)


def test_too_few_steps_warn():
    X, y, qid = make_data()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = RegularizedRankSVM(0.3, tol=1e-12, max_iter=2).fit(X, y, qid=qid)
    assert not model.converged_


def test_evaluation_sets_and_steps_are_reported(caplog):
    X, y, qid = make_data()
    caplog.set_level("INFO", "ranksvm")
    model = RegularizedRankSVM(0.3, verbose=1).fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid])
    assert model.evals_result_["valid_0"]["ndcg@10"] == [pytest.approx(model.score(X, y, qid=qid))]
    assert [record.message[:5] for record in caplog.records] == ["step "] * model.n_iter_


def test_interrupted_it_keeps_the_model_so_far(interrupt_at):
    X, y, qid = make_data()
    interrupt_at(8)
    model = RegularizedRankSVM(0.3, tol=1e-12, keep_on_interrupt=True).fit(X, y, qid=qid)
    assert "Interrupted" in model.status_
    value, _ = objective_of(model, X, y, qid)
    assert value == pytest.approx(model.objective_)


def test_ohsumed(shared_data):
    """A certificate for 367,663 pairs, and the ranks of the queries of the paper's table 6."""
    from ranksvm import read_letor

    data = read_letor(shared_data / "OHSUMED" / "Fold1" / "train.txt.gz")
    model = RegularizedRankSVM().fit(data.X, data.y, qid=data.qid)
    assert model.n_pairs_ == 367_663
    assert model.converged_
    assert model.n_iter_ < 60
    assert model.ranks_.max() < 40
