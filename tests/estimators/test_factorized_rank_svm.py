"""FactorizedRankSVM: what it learns, how it stops, what it keeps, and ordinary input."""

import pickle
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ranksvm import FactorizedRankSVM, RankSVM, load, make_ranking
from ranksvm.datasets import read_letor
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError
from ranksvm.metrics import evaluate
from ranksvm.objectives import FactorizedDual


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_docs=(4, 20), n_features=6, n_levels=4, random_state=0)


@pytest.fixture(scope="module")
def other():
    return make_ranking(n_queries=30, n_docs=(4, 20), n_features=6, n_levels=4, random_state=1)


def fitted(data, C=0.1, **options):
    return FactorizedRankSVM(C, random_state=0, **options).fit(data.X, data.y, qid=data.qid)


def values(model, data, metric="ndcg@10"):
    return evaluate(data.y, model.predict(data.X), data.qid, [metric]).means[metric]


def test_the_objective_never_rises_and_the_projected_gradient_vanishes(data):
    model = fitted(data, tol=1e-10, max_epochs=3000)
    objective = np.array(model.history_["objective"])
    assert (np.diff(objective) <= 1e-12 * abs(objective[-1])).all()
    assert model.converged_
    assert model.status_.startswith("Converged")
    assert model.n_iter_ == len(objective) == len(model.history_["projected_gradient"])
    assert model.history_["projected_gradient"][-1] < 1e-2 * max(model.history_["projected_gradient"])
    assert model.objective_ == pytest.approx(objective[-1], rel=1e-12)
    assert model.factors_.min() >= 0.0
    assert model.factors_.max() <= np.sqrt(0.1 / 5)


def test_the_objective_is_not_below_the_optimum_of_the_plain_dual(data):
    exact = RankSVM(0.1, loss="hinge", tol=1e-8).fit(data.X, data.y, qid=data.qid)
    model = fitted(data, tol=1e-7)
    assert -exact.objective_ < model.objective_ < -0.5 * exact.objective_
    assert values(model, data) > 0.9 * values(exact, data)


@pytest.mark.parametrize("interleaved", [False, True])
def test_dual_blocks_are_products_of_factors_and_make_the_weights(data, interleaved):
    order = np.random.default_rng(0).permutation(len(data.y)) if interleaved else np.arange(len(data.y))
    X, y, qid = data.X[order].astype(float), data.y[order], data.qid[order]
    model = FactorizedRankSVM(0.1, n_components=3, random_state=0).fit(X, y, qid=qid)
    dual = model.dual_coef(X, y, qid)
    assert dual.n_pairs == model.n_pairs_
    for block in dual:
        expected = model.factors_[block.preferred_rows] @ model.factors_[block.other_rows].T
        np.testing.assert_allclose(block.alpha, expected * (block.weights > 0), atol=1e-14)
        assert (block.alpha <= 0.1 * (1 + 1e-12)).all()
        if block.shape[0]:
            assert np.linalg.matrix_rank(expected) <= 3
    np.testing.assert_allclose(X.T @ dual.per_document(), model.coef_, rtol=1e-10, atol=1e-12)
    alpha = sum(block.alpha.sum() for block in dual)
    assert 0.5 * model.coef_ @ model.coef_ - alpha == pytest.approx(model.objective_, rel=1e-10)


def test_low_rank_matrices_are_products_of_factors_over_whole_blocks(data):
    model = fitted(data, n_components=2)
    low_rank = model.low_rank_coef(data.X, data.y, data.qid)
    for block, dual in zip(low_rank, model.dual_coef(data.X, data.y, data.qid), strict=True):
        np.testing.assert_array_equal(block.weights, dual.weights)
        V, W = model.factors_[block.preferred_rows], model.factors_[block.other_rows]
        np.testing.assert_allclose(block.alpha, V @ W.T, atol=1e-14)
        np.testing.assert_array_equal(block.alpha * (block.weights > 0), dual.alpha)
        if min(block.shape):
            levels = len(np.unique(data.y[data.qid == block.query]))
            assert np.linalg.matrix_rank(block.alpha) <= 2
            assert np.linalg.matrix_rank(dual.alpha) <= 2 * (levels - 1)


def test_dual_blocks_are_of_the_data_of_fit_only(data, other):
    model = fitted(data)
    with pytest.raises(DataError, match=r"pairs in 30 queries, but the model was fitted to [\d,]+ pairs in 40"):
        model.dual_coef(other.X, other.y, other.qid)
    with pytest.raises(DataError, match="give the training data"):
        model.low_rank_coef(other.X, other.y, other.qid)
    more = np.append(data.y, 0.0)
    several = FactorizedRankSVM().fit(np.arange(6.0).reshape(3, 2), [1, 0, 0], qid=[0, 0, 1])
    with pytest.raises(DataError, match="X has 4 rows, but the model was fitted to 3"):
        several.dual_coef(np.arange(8.0).reshape(4, 2), [1, 0, 0, 0], [0, 0, 1, 1])
    with pytest.raises(DataError, match="y has"):
        model.dual_coef(data.X, more, data.qid)


def test_rows_in_another_order_are_other_data(data):
    model = fitted(data)
    order = np.random.default_rng(0).permutation(len(data.y))
    with pytest.raises(DataError, match="give the training data, rows in the same order"):
        model.dual_coef(data.X[order], data.y[order], data.qid[order])
    with pytest.raises(DataError, match=r"With these data the objective .* is .*, with the training data it was"):
        model.low_rank_coef(2.0 * data.X, data.y, data.qid)
    # neither another precision nor parameters set since make other data of them
    dual = model.set_params(C=1e-6, n_components=2).dual_coef(data.X.astype(np.float32), data.y, data.qid)
    np.testing.assert_allclose(data.X.T @ dual.per_document(), model.coef_, rtol=1e-8, atol=1e-8)


def test_one_seed_gives_one_model_and_another_another(data):
    one, same, different = fitted(data), fitted(data), fitted(data).set_params(random_state=1)
    different.fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(one.factors_, same.factors_)
    np.testing.assert_array_equal(one.coef_, same.coef_)
    assert np.abs(one.factors_ - different.factors_).max() > 1e-3
    assert one.objective_ == pytest.approx(different.objective_, rel=0.05)
    state = FactorizedRankSVM(0.1, random_state=np.random.RandomState(0)).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(state.factors_, one.factors_)


@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_matrix, np.asfortranarray])
def test_other_storages_give_the_same(data, storage):
    X = data.X.astype(np.float64)
    expected = FactorizedRankSVM(0.1, random_state=0, max_epochs=20, tol=1e-12)
    with pytest.warns(ConvergenceWarning):
        expected.fit(X, data.y, qid=data.qid)
    with pytest.warns(ConvergenceWarning):
        found = FactorizedRankSVM(**expected.get_params()).fit(storage(X), data.y, qid=data.qid)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)
    np.testing.assert_allclose(found.predict(storage(X)), expected.predict(X), rtol=1e-6, atol=1e-6)


def test_max_epochs_warns_and_warm_start_goes_on(data):
    model = FactorizedRankSVM(0.1, random_state=0, max_epochs=10, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_epochs"):
        model.fit(data.X, data.y, qid=data.qid)
    assert not model.converged_
    first = model.objective_
    model.set_params(warm_start=True, max_epochs=3000).fit(data.X, data.y, qid=data.qid)
    assert model.converged_
    assert model.history_["objective"][0] <= first
    n_iter = model.n_iter_
    model.set_params(tol=1e-8).fit(data.X, data.y, qid=data.qid)
    assert model.n_iter_ < 0.2 * n_iter
    # a smaller C: clipped to its box
    model.set_params(C=0.01, tol=1e-4).fit(data.X, data.y, qid=data.qid)
    assert model.factors_.max() <= np.sqrt(0.01 / 5)
    for change in ({"n_components": 4}, {}):
        rows = slice(None) if change else slice(1, None)
        with pytest.raises(DataError, match=r"warm_start: the last fit had factors of shape \(\d+, 5\)"):
            model.set_params(**change).fit(data.X[rows], data.y[rows], qid=data.qid[rows])
        model.set_params(n_components=5)


def test_early_stopping_keeps_the_best_model(data, other):
    options = {"eval_set": [(other.X, other.y), (data.X, data.y)], "eval_qid": [other.qid, data.qid]}
    model = FactorizedRankSVM(10.0, random_state=0, tol=1e-9, early_stopping_rounds=5, eval_metric="map")
    model.fit(data.X, data.y, qid=data.qid, **options)
    trace = model.evals_result_["valid_0"]["map"]
    assert model.status_.startswith("Stopped early")
    assert not model.converged_
    assert len(trace) == len(model.evals_result_["valid_1"]["map"]) == model.n_iter_
    assert model.best_iteration_ == 1 + int(np.argmax(trace)) == model.n_iter_ - 5
    assert model.best_score_ == max(trace) == values(model, other, "map")
    assert model.evals_result_["valid_1"]["map"][model.best_iteration_ - 1] == values(model, data, "map")
    assert model.objective_ == pytest.approx(model.history_["objective"][model.best_iteration_ - 1], rel=1e-10)
    X = data.X.T @ model.dual_coef(data.X, data.y, data.qid).per_document()
    np.testing.assert_allclose(X, model.coef_, rtol=1e-6, atol=1e-9)


def test_without_early_stopping_sets_are_only_evaluated(data, other):
    plain = fitted(data)
    model = FactorizedRankSVM(0.1, random_state=0)
    model.fit(data.X, data.y, qid=data.qid, eval_set=(other.X, other.y), eval_qid=other.qid)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert len(model.evals_result_["valid_0"]["ndcg@10"]) == model.n_iter_
    assert model.evals_result_["valid_0"]["ndcg@10"][-1] == pytest.approx(values(model, other))
    assert model.best_iteration_ is model.best_score_ is None
    assert plain.evals_result_ == {}


def test_a_fixed_learning_rate(data):
    model = fitted(data, learning_rate=0.01, tol=1e-3, max_epochs=3000)
    assert model.objective_ < 0.0
    assert model.objective_ == pytest.approx(fitted(data).objective_, rel=0.3)
    with pytest.warns(ConvergenceWarning):
        longer = fitted(data, learning_rate=10.0, max_epochs=5, tol=1e-12)
    assert (np.diff(longer.history_["objective"]) > 0).any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fixed_step_from_a_uniform_start_is_that_of_algorithm_1():
    """One query, so that the order of the visits does not matter; the step over explicit pairs."""
    data = make_ranking(1, 12, 4, n_levels=3, dtype=np.float64, random_state=0)
    C, K, step = 0.4, 3, 1e-3
    model = FactorizedRankSVM(C, n_components=K, learning_rate=step, init="uniform", max_epochs=1, random_state=7).fit(
        data.X, data.y, group=[12]
    )
    V = np.sqrt(C / K) * np.random.RandomState(7).uniform(size=(12, K))
    i, j = np.nonzero(data.y[:, None] > data.y[None, :])
    w = (V[i] * V[j]).sum(axis=1) @ (data.X[i] - data.X[j])
    slope = (data.X[i] - data.X[j]) @ w - 1.0
    gradient = np.zeros_like(V)
    np.add.at(gradient, i, slope[:, None] * V[j])
    np.add.at(gradient, j, slope[:, None] * V[i])
    expected = np.clip(V - step * gradient, 0.0, np.sqrt(C / K))
    np.testing.assert_allclose(model.factors_, expected, rtol=1e-10)


def test_a_uniform_start_is_as_good_to_exact_line_searches(data):
    model = fitted(data, init="uniform", tol=1e-6, max_epochs=3000)
    assert model.objective_ == pytest.approx(fitted(data, tol=1e-6, max_epochs=3000).objective_, rel=0.1)


@pytest.mark.parametrize(("C", "scale"), [(0.1, 1.0), (100.0, 100.0), (1e-4, 0.01)])
def test_steps_too_short_to_change_anything_do_not_converge(data, C, scale):
    """It was converged after one epoch, with the gradient where it was."""
    model = FactorizedRankSVM(C, learning_rate=1e-7 / scale**2, max_epochs=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="learning_rate at 'auto'"):
        model.fit(scale * data.X, data.y, qid=data.qid)
    assert not model.converged_
    assert model.n_iter_ == 3


def test_short_steps_from_the_solution_converge_at_once(data):
    model = fitted(data, tol=1e-8, max_epochs=3000, warm_start=True)
    objective = model.objective_
    model.set_params(learning_rate=1e-7, tol=1e-4).fit(data.X, data.y, qid=data.qid)
    assert model.converged_
    assert model.n_iter_ == 1
    assert model.objective_ == pytest.approx(objective, rel=1e-6)


def test_a_fit_that_ends_at_0_is_told(data):
    model = fitted(data, warm_start=True)
    model.factors_[:] = 0.0
    with pytest.warns(ConvergenceWarning, match="All factors and weights are 0"):
        model.fit(data.X, data.y, qid=data.qid)
    assert model.objective_ == 0.0


@pytest.mark.parametrize("kind", ["pickle", "file"])
def test_saved_models(data, kind, tmp_path):
    model = fitted(data)
    if kind == "pickle":
        found = pickle.loads(pickle.dumps(model))
    else:
        model.save(tmp_path / "model")
        found = load(tmp_path / "model")
    np.testing.assert_array_equal(found.predict(data.X), model.predict(data.X))
    np.testing.assert_array_equal(found.factors_, model.factors_)
    assert found.history_ == model.history_
    assert found.get_params() == model.get_params()


@pytest.fixture
def interrupted_in_epoch(monkeypatch):
    """Send SIGINT while some epoch runs."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)

    def arm(number):
        count = 0
        original = FactorizedDual.visit

        def visit(self, queries):
            nonlocal count
            count += 1
            if count == number:
                thread = threading.Thread(target=signal.raise_signal, args=(signal.SIGINT,))
                thread.start()
                thread.join()
            return original(self, queries)

        monkeypatch.setattr(FactorizedDual, "visit", visit)

    yield arm
    signal.signal(signal.SIGINT, handler)


def test_the_model_so_far_is_kept_if_asked_for(data, interrupted_in_epoch):
    whole = fitted(data)
    interrupted_in_epoch(4)
    model = fitted(data, keep_on_interrupt=True)
    assert model.status_.startswith("Interrupted")
    assert not model.converged_
    assert model.n_iter_ == 3
    assert model.history_["objective"] == whole.history_["objective"][:3]
    assert whole.history_["objective"][3] <= model.objective_ <= whole.history_["objective"][2]
    w = data.X.T @ model.dual_coef(data.X, data.y, data.qid).per_document()
    np.testing.assert_allclose(w, model.coef_, rtol=1e-5, atol=1e-8)


def test_the_model_of_an_interrupted_first_epoch_is_kept(data, interrupted_in_epoch):
    interrupted_in_epoch(1)
    options = {"keep_on_interrupt": True, "early_stopping_rounds": 2, "random_state": 0}
    model = FactorizedRankSVM(0.1, **options).fit(
        data.X, data.y, qid=data.qid, eval_set=(data.X, data.y), eval_qid=data.qid
    )
    assert model.status_.startswith("Interrupted")
    assert (model.n_iter_, model.evals_result_, model.best_iteration_) == (0, {}, None)
    assert model.objective_ < 0.0


def test_without_it_fit_is_interrupted_and_leaves_the_old_model(data, interrupted_in_epoch):
    model = fitted(data)
    before = dict(vars(model))
    interrupted_in_epoch(3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data.X, data.y, qid=data.qid)
    assert vars(model) == before


def test_verbose_shows_epochs(data, caplog):
    fitted(data)
    assert not caplog.records
    model = fitted(data, verbose=1)
    assert len(caplog.records) == model.n_iter_
    assert caplog.records[0].message.startswith("epoch 1: objective -")


# ---- ordinary input


def test_queries_without_pairs_keep_no_factors():
    X = np.random.default_rng(0).normal(size=(9, 3))
    y, qid = [1, 0, 0, 5, 2, 2, 1, 0, 3], [0, 0, 0, 1, 2, 2, 3, 3, 3]
    model = FactorizedRankSVM(random_state=0).fit(X, y, qid=qid)
    assert (model.factors_[3:6] == 0.0).all()
    assert (model.factors_[[0, 1, 2, 6, 7, 8]] > 0.0).any(axis=1).all()
    assert (model.n_pairs_, model.n_queries_) == (5, 4)
    alone = FactorizedRankSVM(random_state=0).fit(X[:3], y[:3])
    assert alone.dual_coef(X[:3], y[:3])[0].alpha.shape == (1, 2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_components", [1, 2, 12])
@pytest.mark.parametrize("C", [1e-12, 1.0, 1e12])
def test_any_c_and_number_of_components(data, C, n_components):
    model = FactorizedRankSVM(C, n_components=n_components, random_state=0, max_epochs=300)
    model.fit(data.X, data.y, qid=data.qid)
    assert model.factors_.shape == (len(data.y), n_components)
    assert np.isfinite(model.coef_).all()
    assert model.objective_ < 0.0
    if C == 1e-12:  # all of alpha is C
        np.testing.assert_allclose(model.factors_.max(axis=1)[model.factors_.any(axis=1)], np.sqrt(C / n_components))
        assert model.objective_ == pytest.approx(-C * model.n_pairs_)


def test_constant_features_and_distinct_labels():
    rng = np.random.default_rng(0)
    X, y, qid = np.ones((60, 4)), rng.permutation(60).astype(float), np.repeat([0, 1, 2], 20)
    X[:, 0] = y + rng.normal(size=60)
    model = FactorizedRankSVM(0.01, random_state=0).fit(X, y, qid=qid)
    np.testing.assert_allclose(model.coef_[1:], 0.0, atol=1e-12)
    assert model.n_pairs_ == 3 * 190
    assert model.score(X, y, qid=qid) > 0.8
    assert model.rank(X, qid)[0].tolist() == sorted(range(20), key=lambda row: -X[row, 0])


def test_features_too_large_are_refused(data):
    with pytest.raises(DataError, match="overflows float64"):
        fitted(type(data)(data.X.astype(float) * 1e200, data.y, data.qid))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C must be a positive"),
        ({"n_components": 0}, "n_components must be a whole number"),
        ({"n_components": 2.5}, "n_components must be a whole number"),
        ({"learning_rate": "adaptive"}, "learning_rate must be 'auto' or a positive, finite number"),
        ({"learning_rate": -1.0}, "learning_rate must be 'auto' or"),
        ({"init": "random"}, "init must be one of 'scaled', 'uniform', got 'random'"),
        ({"max_epochs": 0}, "max_epochs must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"eval_metric": "ndgc"}, "ndgc"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds must be"),
        ({"early_stopping_rounds": 3}, r"early_stopping_rounds=3 needs data to evaluate on: fit\(..., eval_set="),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_options_that_cannot_be(data, options, message):
    with pytest.raises(OptionError, match=message):
        FactorizedRankSVM(**options).fit(data.X, data.y, qid=data.qid)


def test_data_that_cannot_be_learnt_from(data):
    with pytest.raises(NoComparablePairsError):
        FactorizedRankSVM().fit(data.X, np.ones(len(data.y)), qid=data.qid)
    with pytest.raises(DataError, match="requires y to be passed"):
        FactorizedRankSVM().fit(data.X, None, qid=data.qid)
    with pytest.raises(TypeError, match="sample_weight"):
        FactorizedRankSVM().fit(data.X, data.y, qid=data.qid, sample_weight=np.ones(len(data.y)))


def test_columns_of_query_ids(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=list("abcdef")).assign(query=data.qid)
    model = FactorizedRankSVM(0.1, random_state=0).fit(frame, data.y, qid="query")
    np.testing.assert_allclose(model.coef_, fitted(data).coef_)
    assert sorted(model.coef_table()["feature"]) == list("abcdef")
    assert model.dual_coef(frame, data.y)[0].query == data.qid[0]


@pytest.mark.parametrize("name", ["OHSUMED", "MQ2008"])
def test_real_data(shared_data, name):
    parts = [read_letor(shared_data / name / "Fold1" / f"{part}.txt.gz") for part in ("train", "vali", "test")]
    train, validation, test = parts
    model = FactorizedRankSVM(0.01, random_state=0, early_stopping_rounds=20)
    model.fit(train.X, train.y, qid=train.qid, eval_set=(validation.X, validation.y), eval_qid=validation.qid)
    exact = RankSVM(0.01, loss="hinge").fit(train.X, train.y, qid=train.qid)
    assert model.score(test.X, test.y, qid=test.qid) > 0.9 * exact.score(test.X, test.y, qid=test.qid)
