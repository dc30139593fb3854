"""AdditiveRankSVM against RankSVM on explicitly made columns, and what users do with it."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import ranksvm
from ranksvm import AdditiveRankSVM, Preferences, RankSVM, make_ranking
from ranksvm.additive import AdditiveDesign
from ranksvm.estimators.base.ranker import additive_options
from ranksvm.exceptions import DataError, ModelFileError, OptionError
from ranksvm.fits.additive import additive_problem, additive_training_set
from ranksvm.fits.training_set import TrainingArguments

TIGHT = {"tol": 1e-10, "max_iter": 5000}


def curved(n_queries=40, n_docs=12, seed=0, dtype=np.float64):
    """Queries whose labels depend on features by curves, with ties, a constant, a category and missing values."""
    random = np.random.default_rng(seed)
    n = n_queries * n_docs
    X = random.normal(size=(n, 6))
    X[:, 1] = random.integers(0, 2, n)
    X[:, 2] = 4.0
    X[:, 3] = random.integers(0, 5, n)
    utility = -(X[:, 0] ** 2) + X[:, 1] + np.sin(3 * X[:, 4]) + (X[:, 3] == 2) + 2.0 * X[:, 0] * (X[:, 5] > 0)
    X[random.random(n) < 0.1, 5] = np.nan
    y = np.digitize(utility + 0.3 * random.normal(size=n), [-1.0, 0.5, 1.5])
    return X.astype(dtype), y.astype(float), np.repeat(np.arange(n_queries), n_docs)


def explicit(X, y, qid, sample_weight=None, **params):
    """The columns of a model, dense, and its problem."""
    model = AdditiveRankSVM(**params)
    options = additive_options(model)
    data = additive_training_set(TrainingArguments(X, y, qid=qid, sample_weight=sample_weight), options)
    problem = additive_problem(data, options)
    if params.get("interactions"):
        problem = problem.with_pairs(problem.listed_pairs())
    design = AdditiveDesign.of(data.features, data.codes, problem.terms)
    Z = np.empty((len(X), design.n_features))
    design.gather(None, 0, len(X), Z)
    return Z, problem


def test_a_weight_of_2_has_the_effect_of_two_rows():
    X, y, qid = curved(20)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"C": 0.1, "interactions": 2, **TIGHT}
    found = AdditiveRankSVM(**options).fit(X, y, qid=qid, sample_weight=weight)
    rows = [np.repeat(values, weight, axis=0) for values in (X, y, qid)]
    expected = AdditiveRankSVM(**options).fit(*rows[:2], qid=rows[2])
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-8)
    assert np.array_equal(found.interactions_, expected.interactions_)
    np.testing.assert_allclose(found.level_shares_, expected.level_shares_, rtol=1e-12)
    np.testing.assert_allclose(found.cell_shares_, expected.cell_shares_, rtol=1e-12)
    values = found.contributions(X).values
    np.testing.assert_allclose(np.average(values, axis=0, weights=weight), 0.0, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber", "logistic"])
@pytest.mark.parametrize(
    ("weighting", "selection"),
    [("uniform", "all"), ("per_query", "all"), ("gain_gap", "all"), ("label_gap", "adjacent")],
)
def test_it_is_the_rank_svm_of_the_columns(loss, weighting, selection):
    X, y, qid = curved()
    params = {"C": 0.3, "loss": loss, "pair_weighting": weighting, "pair_selection": selection}
    tight = TIGHT if loss != "hinge" else {"tol": 1e-7, "max_iter": 5000}
    own = {"step_weight": 0.6, "categorical": [3], "interactions": [(0, 5), (1, 3)], "max_bins": 12}
    model = AdditiveRankSVM(**params, **own, **tight).fit(X, y, qid=qid)
    Z, problem = explicit(X, y, qid, **params, **own)
    oracle = RankSVM(**params, **tight).fit(Z, y, qid=qid)
    assert model.converged_
    assert model.n_pairs_ == oracle.n_pairs_
    assert model.objective_ == pytest.approx(oracle.objective_, rel=2e-7 if loss == "hinge" else 1e-9)
    found = problem.terms.variables_of(model._function())
    # the objective is 1-strongly convex: certificates bound the distance from the optimum
    apart = np.sqrt(2 * model.duality_gap_) + np.sqrt(2 * oracle.duality_gap_)
    assert np.linalg.norm(found - oracle.coef_) <= apart < (0.1 if loss == "hinge" else 2e-3)
    assert np.allclose(model.predict(X), Z @ found, rtol=0, atol=1e-12)


@pytest.mark.parametrize("own", [{}, {"categorical": [3], "interactions": [(0, 5), (1, 3)]}], ids=["features", "pairs"])
def test_it_is_the_rank_svm_of_the_columns_of_many_rows(own):
    """Then products take a value for each cell of the levels of two columns."""
    X, y, qid = curved(400)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    own, params = {"max_bins": 12, **own}, {"C": 0.03, "n_jobs": 2, **TIGHT}
    model = AdditiveRankSVM(**params, **own).fit(X, y, qid=qid, sample_weight=weight)
    Z, problem = explicit(X, y, qid, weight, **params, **own)
    assert problem.objective.term.design.vector_basis.n_numbers > problem.terms.level_basis.n_numbers
    oracle = RankSVM(**params).fit(Z, y, qid=qid, sample_weight=weight)
    assert model.objective_ == pytest.approx(oracle.objective_, rel=1e-9)
    found = problem.terms.variables_of(model._function())
    apart = np.sqrt(2 * model.duality_gap_) + np.sqrt(2 * oracle.duality_gap_)
    assert np.linalg.norm(found - oracle.coef_) <= apart < 2e-3
    assert np.allclose(model.predict(X), Z @ found, rtol=0, atol=1e-12)


@pytest.mark.parametrize("solver", ["newton", "tron"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_solvers_and_precisions_agree(solver, dtype):
    X, y, qid = curved(dtype=dtype)
    weights = np.random.default_rng(1).random(len(y))
    model = AdditiveRankSVM(C=0.1, solver=solver, **TIGHT).fit(
        X, y, qid=qid, sample_weight=weights, propensity=1 - weights / 2
    )
    Z, _ = explicit(X, y, qid, weights, C=0.1)
    oracle = RankSVM(C=0.1, **TIGHT).fit(Z, y, qid=qid, sample_weight=weights, propensity=1 - weights / 2)
    assert model.objective_ == pytest.approx(oracle.objective_, rel=1e-9)


def test_without_steps_it_is_the_linear_model_of_scaled_features():
    data = make_ranking(n_queries=40, n_docs=10, n_features=5, random_state=0)
    X = data.X.astype(np.float64)
    extent = np.ptp(X, axis=0)
    model = AdditiveRankSVM(C=0.1, step_weight=0.0, **TIGHT).fit(X, data.y, qid=data.qid)
    linear = RankSVM(C=0.1, **TIGHT).fit(X / extent, data.y, qid=data.qid)
    assert np.allclose(model.linear_coef_, linear.coef_ / extent, rtol=0, atol=1e-5)
    assert not model.shape_values_.any()
    assert model.objective_ == pytest.approx(linear.objective_, rel=1e-9)


def test_an_increasing_transformation_changes_nothing_but_the_cuts():
    X, y, qid = curved()
    Y = X.copy()
    Y[:, [0, 4, 5]] = np.exp(Y[:, [0, 4, 5]])
    first = AdditiveRankSVM(C=0.1, linear=False).fit(X, y, qid=qid)
    second = AdditiveRankSVM(C=0.1, linear=False).fit(Y, y, qid=qid)
    assert np.array_equal(first.shape_values_, second.shape_values_)
    assert np.array_equal(first.predict(X), second.predict(Y))


def test_it_learns_curves_that_a_linear_model_cannot():
    X, y, qid = curved(200)
    Z, v, q = curved(100, seed=7)
    linear = RankSVM(C=0.1).fit(np.nan_to_num(X), y, qid=qid).score(np.nan_to_num(Z), v, qid=q)
    additive = AdditiveRankSVM(C=0.1).fit(X, y, qid=qid).score(Z, v, qid=q)
    both = AdditiveRankSVM(C=0.1, interactions=1).fit(X, y, qid=qid)
    assert both.interactions_.tolist() == [[0, 5]]
    assert linear + 0.05 < additive < both.score(Z, v, qid=q) - 0.02


def test_bounds_of_interactions_hold():
    X, y, qid = curved()
    model = AdditiveRankSVM(C=0.1, interactions=1, **TIGHT).fit(X, y, qid=qid)
    single = AdditiveRankSVM(C=0.1, **TIGHT).fit(X, y, qid=qid)
    table = model.interaction_table()
    assert table["chosen"].tolist() == [True] + [False] * 14
    assert table["left"][0] == 0.0
    for first, second, bound in zip(table["first"], table["second"], table["bound"], strict=True):
        pair = (int(first[1:]) - 1, int(second[1:]) - 1)
        with_it = AdditiveRankSVM(C=0.1, interactions=[pair], **TIGHT).fit(X, y, qid=qid)
        assert single.objective_ - with_it.objective_ <= bound + single.duality_gap_ + with_it.duality_gap_
        assert tuple(with_it.interactions_[0]) == pair
    everything = AdditiveRankSVM(C=0.1, interactions=15, **TIGHT).fit(X, y, qid=qid)
    assert model.objective_ - everything.objective_ <= model.interaction_bounds_.sum() + model.duality_gap_


def test_bounds_without_interactions():
    X, y, qid = curved()
    model = AdditiveRankSVM(C=0.1, interactions=[]).fit(X, y, qid=qid)
    assert model.interactions_.shape == (0, 2)
    assert np.array_equal(model.interaction_bounds_, model.candidate_bounds_)
    assert model.interaction_bounds_.argmax() == 4  # the pair (0, 5)


def test_interactions_in_an_array():
    X, y, qid = curved()
    listed = AdditiveRankSVM(C=0.1, interactions=[(0, 5), (1, 3)])
    array = AdditiveRankSVM(C=0.1, interactions=np.array([[0, 5], [1, 3]]))
    np.testing.assert_array_equal(array.fit(X, y, qid=qid).predict(X), listed.fit(X, y, qid=qid).predict(X))
    assert array.path(X, y, qid=qid, Cs=[0.1]).models[0].interactions_.tolist() == [[0, 5], [1, 3]]


def test_the_number_of_interactions_is_chosen_on_validation_data():
    X, y, qid = curved(150)
    Z, v, q = curved(80, seed=3)
    auto = AdditiveRankSVM(C=0.1, interactions="auto").fit(X, y, qid=qid, eval_set=[(Z, v)], eval_qid=[q])
    values = [
        AdditiveRankSVM(C=0.1, interactions=count).fit(X, y, qid=qid).score(Z, v, qid=q) for count in (0, 4, 8, 16)
    ]
    assert auto.evals_result_["valid_0"]["ndcg@10"][0] == pytest.approx(max(values), abs=1e-3)
    with pytest.raises(OptionError, match="give eval_set"):
        AdditiveRankSVM(interactions="auto").fit(X, y, qid=qid)


@pytest.mark.parametrize("interactions", [0, 3, [(0, 4)]])
def test_monotone_shapes_hold_at_every_cut(interactions):
    X, y, qid = curved()
    signs = {0: "decreasing", 4: -1, 1: 1}
    model = AdditiveRankSVM(C=1.0, monotone=signs, interactions=interactions, tol=1e-6).fit(X, y, qid=qid)
    assert model.converged_
    assert model.monotone_.tolist() == [-1, 1, 0, 0, -1, 0]
    function = model._function()
    random = np.random.default_rng(0)
    rows = X[random.integers(0, len(X), 50)]
    for j, sign in ((0, -1), (4, -1), (1, 1)):
        values = np.sort(np.concatenate([function.bins[j].cuts, function.bins[j].cuts - 1e-9]))
        for row in rows:
            line = np.repeat(row[None], len(values), axis=0)
            line[:, j] = values
            assert (sign * np.diff(model.predict(line)) >= -1e-12).all()


def test_monotone_is_certified():
    X, y, qid = curved()
    monotone = AdditiveRankSVM(C=0.3, monotone={0: 1, 4: -1}, solver="newton", tol=1e-9).fit(X, y, qid=qid)
    Z, problem = explicit(X, y, qid, C=0.3, monotone={0: 1, 4: -1})
    oracle = RankSVM(C=0.3, monotone=problem.signs, tol=1e-9).fit(Z, y, qid=qid)
    assert monotone.objective_ == pytest.approx(oracle.objective_, rel=1e-8)


def test_missing_values_and_unseen_ones():
    X, y, qid = curved()
    model = AdditiveRankSVM(C=0.1, categorical=[3]).fit(X, y, qid=qid)
    row = X[:1].copy()
    row[0, 5] = np.nan
    assert np.isfinite(model.predict(row)).all()
    row[0, 3] = 17.0  # a category that the training data do not have
    other = row.copy()
    other[0, 3] = -2.0
    assert model.predict(row) == model.predict(other)
    row[0, 0] = np.nan
    with pytest.raises(DataError, match=r"NaN at X\[0, 0\] \(feature f1\): this feature had no missing value in the"):
        model.predict(row)
    row[0, 0] = np.inf
    with pytest.raises(DataError, match=r"infinity at X\[0, 0\] \(feature f1\)"):
        model.predict(row)
    X[3, 4] = np.inf
    with pytest.raises(DataError, match=r"infinity at X\[3, 4\] \(feature f5\)"):
        AdditiveRankSVM().fit(X, y, qid=qid)


def test_places_of_values_are_those_of_the_whole_table():
    pd = pytest.importorskip("pandas")
    X, y, qid = curved()
    names = [f"x{j}" for j in range(X.shape[1])]
    model = AdditiveRankSVM(C=0.1).fit(pd.DataFrame(X, columns=names), y, qid=qid)
    many = pd.DataFrame(np.tile(X, (30_000 // len(X), 1)), columns=names)
    for value, kind in ((np.nan, "NaN"), (np.inf, "infinity")):
        many.iloc[20_001, 2] = value
        with pytest.raises(DataError, match=rf"{kind} at X\[20001, 2\] \(feature x2\)"):
            model.predict(many)
    with pytest.raises(DataError, match=r"infinity at X\[20001, 2\] \(feature x2\)"):
        model.fit(
            pd.DataFrame(X, columns=names), y, qid=qid, eval_set=(many, np.zeros(len(many))), eval_group=[len(many)]
        )


def test_sparse_rows_have_zeros_as_values():
    X, y, qid = curved()
    X = np.where(np.isnan(X) | (X < 0.3), 0.0, X)
    dense = AdditiveRankSVM(C=0.1, **TIGHT).fit(X, y, qid=qid)
    sparse = AdditiveRankSVM(C=0.1, **TIGHT).fit(scipy.sparse.csr_array(X), y, qid=qid)
    assert np.array_equal(sparse.cuts_, dense.cuts_)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-9)
    assert np.allclose(sparse.predict(scipy.sparse.csr_array(X)), dense.predict(X), rtol=0, atol=1e-5)


def test_preferences_and_listed_pairs():
    random = np.random.default_rng(0)
    data = Preferences(random.normal(0.3, 1.0, (200, 4)), random.normal(0.0, 1.0, (200, 4)))
    model = AdditiveRankSVM(C=0.1).fit(data)
    pairs = np.column_stack([np.arange(200), np.arange(200, 400)])
    same = AdditiveRankSVM(C=0.1).fit(
        np.vstack([data.chosen, data.rejected]), pairs=pairs, qid=np.tile(np.arange(200), 2)
    )
    assert model.objective_ == pytest.approx(same.objective_, rel=1e-6)
    assert model.calibrate(data).predict_proba(data).shape == (200,)


def test_frames_name_the_features():
    X, y, qid = curved()
    frame = pd.DataFrame(X, columns=["age", "links", "one", "kind", "bm25", "clicks"]).assign(qid=qid)
    model = AdditiveRankSVM(C=0.1, categorical=["kind"], interactions=[("age", "clicks")], monotone={"links": 1})
    model.fit(frame, y, qid="qid")
    assert model.interactions_.tolist() == [[0, 5]]
    assert model.is_categorical_.tolist() == [0, 0, 0, 1, 0, 0]
    table = model.interaction_table()
    assert isinstance(table, pd.DataFrame)
    assert set(table.loc[table["chosen"], ["first", "second"]].iloc[0]) == {"age", "clicks"}
    assert np.array_equal(model.predict(frame), model.predict(frame.drop(columns="qid")))


def test_files_and_pickles(tmp_path):
    X, y, qid = curved()
    model = AdditiveRankSVM(C=0.1, categorical=[3], interactions=2).fit(X, y, qid=qid)
    model.save(tmp_path / "model.rsm")
    for other in (ranksvm.load(tmp_path / "model.rsm"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict(X), model.predict(X))
        assert other.get_params() == model.get_params()
        assert np.array_equal(other.interaction_bounds_, model.interaction_bounds_)
    model.cuts_ = model.cuts_[::-1].copy()
    model.save(tmp_path / "model.rsm")
    with pytest.raises(ModelFileError, match="cuts of a feature do not ascend"):
        ranksvm.load(tmp_path / "model.rsm")


def test_warm_start_and_dual_variables():
    X, y, qid = curved()
    model = AdditiveRankSVM(C=0.1, warm_start=True).fit(X, y, qid=qid)
    before = model.n_iter_
    model.fit(X, y, qid=qid)
    assert model.n_iter_ < before
    alpha = model.dual_coef(X, y, qid=qid)
    assert alpha[0].shape[0] > 0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"step_weight": -1.0}, "step_weight must be"),
        ({"max_bins": 1}, "max_bins must be an integer from 2 to 255"),
        ({"max_bins": 256}, "max_bins must be an integer from 2 to 255"),
        ({"interaction_bins": 17}, "interaction_bins must be an integer from 2 to 16"),
        ({"interactions": -1}, "interactions must be a number"),
        ({"interactions": "all"}, "interactions must be a number"),
        ({"interactions": [(0, 1, 2)]}, "interactions must be a number"),
        ({"interactions": [(1, 1)]}, "feature f2 with itself"),
        ({"interactions": [(0, 1), (1, 0)]}, "the pair of f1 and f2 twice"),
        ({"interactions": [(0, 9)]}, "interactions has the feature 9"),
        ({"interactions": [("age", 1)]}, "X has no feature names"),
        ({"interactions": [(0, 1)], "monotone": {0: 1, 1: -1}}, "the pair of f1 and f2, whose signs"),
        ({"categorical": "kind"}, "categorical must be a list"),
        ({"categorical": [8]}, "categorical has the feature 8"),
        ({"categorical": [3], "monotone": {3: 1}}, "feature f4, which is a category"),
        ({"linear": 2}, "linear must be"),
        ({"linear": False, "step_weight": 0.0}, "nothing to learn"),
        ({"solver": "dual"}, "solver must be one of"),
    ],
)
def test_invalid_options(params, message):
    X, y, qid = curved(10)
    with pytest.raises(OptionError, match=message):
        AdditiveRankSVM(**params).fit(X, y, qid=qid)


def test_one_row_queries_and_constant_features():
    X = np.ones((6, 2))
    with pytest.warns(ranksvm.exceptions.UninformativeWarning):
        model = AdditiveRankSVM().fit(X, [0, 1, 0, 1, 1, 0], qid=[0, 0, 1, 2, 3, 3])
    assert model.predict(X).tolist() == [0.0] * 6


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_table_with_missing_values(tmp_path, monkeypatch, in_memory):
    pytest.importorskip("pyarrow")
    pd = pytest.importorskip("pandas")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    X, y, qid = curved()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    path = tmp_path / "data.csv"
    pd.DataFrame(X).add_prefix("x").assign(label=y, qid=qid).to_csv(path, index=False)
    if not in_memory:
        monkeypatch.setattr("ranksvm.datasets.file_data.memory_bytes", lambda limit: 1000)
        monkeypatch.setattr("ranksvm.datasets.file_data.in_file", lambda path, limit: True)
    found = AdditiveRankSVM(C=0.1, **TIGHT).fit(path)
    expected = AdditiveRankSVM(C=0.1, **TIGHT).fit(X, y, qid=qid)
    assert found.has_missing_.all()
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-7)
    np.testing.assert_allclose(found.shape_values_, expected.shape_values_, atol=1e-3)


@pytest.mark.parametrize("interactions", [0, [(0, 5)]])
def test_a_path_has_the_models_of_single_fits(interactions):
    X, y, qid = curved()
    Cs = [0.1, 0.001, 0.01]
    path = AdditiveRankSVM(interactions=interactions, **TIGHT).path(X, y, qid=qid, Cs=Cs)
    assert path.Cs.tolist() == sorted(Cs)
    for C, model, spreads in zip(path.Cs, path.models, path.spreads, strict=True):
        expected = AdditiveRankSVM(C=C, interactions=interactions, **TIGHT).fit(X, y, qid=qid)
        assert (model.C, model.fitted_params_) == (C, expected.fitted_params_)
        assert model.objective_ == pytest.approx(expected.objective_, rel=1e-7)
        np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-3)
        parts = [*expected.shapes(), *expected.interaction_shapes()]
        np.testing.assert_allclose(spreads, [each.spread for each in parts], atol=1e-3)
        assert path.names == [each.name for each in parts]


def test_a_path_does_not_choose_interactions():
    X, y, qid = curved()
    with pytest.raises(OptionError, match="list the pairs"):
        AdditiveRankSVM(interactions=2).path(X, y, qid=qid)
    with pytest.raises(OptionError, match="Cs"):
        AdditiveRankSVM().path(X, y, qid=qid, Cs=[-1.0])


def test_a_model_before_its_fit_has_no_importances():
    with pytest.raises(NotFittedError):
        AdditiveRankSVM().feature_importance(np.ones((2, 3)))


def test_advice_for_more_iterations_leaves_out_the_scale_of_features():
    data = make_ranking(n_queries=20, n_docs=10, n_features=3, random_state=0)
    ranker = AdditiveRankSVM(C=100.0, tol=1e-9, max_iter=1)
    message = r"Stopped at max_iter before the certificate met tol: raise max_iter or lower C\."
    with pytest.warns(ConvergenceWarning, match=message):
        ranker.fit(data.X, data.y, qid=data.qid)
    assert "scale" not in ranker.status_
    with pytest.warns(ConvergenceWarning, match=f"C = 100: {message}"):
        ranker.path(data.X, data.y, qid=data.qid, Cs=[100.0])


def test_advice_at_the_limit_of_precision_leaves_out_the_scale_of_features():
    data = make_ranking(n_queries=20, n_docs=10, n_features=3, random_state=0)
    ranker = AdditiveRankSVM(C=100.0, tol=1e-15)
    with pytest.warns(ConvergenceWarning, match=r"Raise tol or lower C\."):
        ranker.fit(data.X, data.y, qid=data.qid)
