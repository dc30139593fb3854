"""AdditiveRanker: contributions, explanations, importances, shapes and their edits."""

import sys

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.pipeline import make_pipeline

import ranksvm
from ranksvm import AdditiveRankSVM, AdditiveRankSVMCV, QueryStandardScaler, analysis
from ranksvm.exceptions import DataError, OptionError

NAMES = ["price", "new", "none", "color", "age", "rating"]


def curved(n_queries=30, n_docs=10, seed=0):
    """Queries whose labels depend on features by curves, with a constant, a category and missing values."""
    random = np.random.default_rng(seed)
    n = n_queries * n_docs
    X = random.normal(size=(n, 6))
    X[:, 1] = random.integers(0, 2, n)
    X[:, 2] = 4.0
    X[:, 3] = random.integers(0, 5, n)
    utility = -(X[:, 0] ** 2) + X[:, 1] + np.sin(3 * X[:, 4]) + (X[:, 3] == 2) + 2.0 * X[:, 0] * (X[:, 5] > 0)
    X[random.random(n) < 0.1, 5] = np.nan
    y = np.digitize(utility + 0.3 * random.normal(size=n), [-1.0, 0.5, 1.5])
    return X, y.astype(float), np.repeat(np.arange(n_queries), n_docs)


@pytest.fixture(scope="module")
def data():
    return curved()


@pytest.fixture(scope="module")
def model(data):
    X, y, qid = data
    return AdditiveRankSVM(C=1.0, interactions=[(0, 5), (1, 3)], categorical=[3], tol=1e-8).fit(X, y, qid=qid)


def test_contributions_add_up_to_scores(model, data):
    found, scores = model.contributions(data[0]), model.predict(data[0])
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, scores, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.values.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.base_values, scores.mean())
    assert found.feature_names[-2:] == ["f1 x f6", "f2 x f4"]
    np.testing.assert_array_equal(found.data[:, :6], data[0])
    assert np.isnan(found.data[:, 6:]).all()
    assert list(found.to_frame(library="pandas").columns) == found.feature_names
    assert repr(found).startswith("Contributions(300 documents, 8 terms)")


def test_sparse_rows_have_the_same_contributions(model, data):
    X = data[0]
    sparse = scipy.sparse.csr_matrix(X)
    np.testing.assert_array_equal(model.contributions(sparse).values, model.contributions(X).values)
    pair = model.explain(sparse, data[2]).pair(3, 0)
    np.testing.assert_array_equal(pair.contributions, model.explain(X, data[2]).pair(3, 0).contributions)
    np.testing.assert_array_equal(pair.values, model.explain(X, data[2]).pair(3, 0).values)


def test_shap_takes_them(model, data, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, "build/shap"])
    shap = pytest.importorskip("shap", reason="shap is not installed")
    found = model.contributions(data[0])
    given = shap.Explanation(
        values=found.values, base_values=found.base_values, data=found.data, feature_names=found.feature_names
    )
    assert given.shape == found.values.shape
    assert given[0].feature_names == found.feature_names
    assert given.abs.mean(0).values.shape == (8,)


def test_an_explanation_has_the_terms(model, data):
    X, _, qid = data
    explanation = model.explain(X, qid, feature_names=NAMES)
    scores = model.predict(X)
    parts = explanation.contributions
    np.testing.assert_allclose(parts.sum(axis=1), scores - explanation.mean_scores, atol=1e-12)
    pair = explanation.pair(3, 5)
    assert abs(pair.contributions.sum() - (scores[3] - scores[5])) < 1e-12
    all_values = model.contributions(X).values
    np.testing.assert_allclose(pair.contributions, (all_values[3] - all_values[5])[pair.columns], atol=1e-12)
    assert pair.weights is None
    for column, name, value in zip(pair.columns, pair.names, pair.values, strict=True):
        assert name == [*NAMES, "price x rating", "new x color"][column]
        assert (value == X[3, column]) if column < 6 else np.isnan(value)
    first = explanation.document(0)
    known = first.columns < 6
    np.testing.assert_allclose(first.other_values[known], np.nanmean(X[:10], axis=0)[first.columns[known]])
    assert first.to_dict()["features"][0]["weight"] is None
    query = explanation.query(0)
    np.testing.assert_allclose(query.importances, all_values[:10].std(axis=0, ddof=1)[query.columns])
    assert "weight" not in repr(query) + repr(pair)
    assert "weight" not in repr(first)


def test_importance_is_the_spread_within_queries(model, data):
    X, _, qid = data
    parts = model.explain(X, qid).contributions
    np.testing.assert_allclose(model.feature_importance(X, qid), np.sqrt((parts**2).sum(axis=0) / (300 - 30)))


def test_importances_are_shares_of_the_spread_over_the_training_rows(model, data):
    spread = np.std(model.contributions(data[0]).values, axis=0)
    expected = spread[:6]
    for pair, each in zip([(0, 5), (1, 3)], spread[6:], strict=True):
        expected[list(pair)] += each / 2
    np.testing.assert_allclose(model.feature_importances_, expected / expected.sum(), atol=0.005)  # of levels, not rows
    assert not hasattr(AdditiveRankSVM(), "feature_importances_")


@pytest.mark.parametrize("make", [AdditiveRankSVM, lambda: AdditiveRankSVMCV(Cs=[0.1], step_weights=[1.0], cv=2)])
def test_scikit_learn_selects_the_features_with_curves(make):
    """It would take the weights of the linear part for importances if they were called coef_."""
    random = np.random.default_rng(0)
    X, qid = random.normal(size=(600, 3)), np.repeat(np.arange(30), 20)
    y = np.where(np.abs(X[:, 0]) < 0.7, 2, 0) + (X[:, 1] + random.normal(size=600) > 0)
    with sklearn.config_context(enable_metadata_routing=True):
        assert RFE(make(), n_features_to_select=1).fit(X, y, qid=qid).support_.tolist() == [True, False, False]
        assert SelectFromModel(make()).fit(X, y, qid=qid).get_support().tolist() == [True, False, False]


def test_a_pipeline_is_explained(data):
    import sklearn

    X, y, qid = data
    X = np.nan_to_num(X)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(QueryStandardScaler(), AdditiveRankSVM()).fit(X, y, qid=qid)
        scores = pipeline.predict(X, qid=qid)
    found = analysis.explain(pipeline, X, qid)
    np.testing.assert_allclose(found.contributions.sum(axis=1), scores - found.mean_scores, atol=1e-12)
    assert analysis.feature_importance(pipeline, X, qid).shape == (6,)


def test_a_choosing_estimator_has_the_same_methods(data, tmp_path):
    X, y, qid = data
    model = AdditiveRankSVMCV([0.1, 1.0], step_weights=[0.5, 1.0], interactions=1, cv=2).fit(X, y, qid=qid)
    found = model.contributions(X)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict(X))
    edited = model.edit_shape(4, {1: 0.0}, X, y, qid=qid)
    assert edited.objective_ >= model.objective_ - model.duality_gap_
    edited.save(tmp_path / "edited")
    assert ranksvm.load(tmp_path / "edited").edited_ == edited.edited_


def test_shapes_are_those_of_the_training_rows(model, data):
    X, values = data[0], model.contributions(data[0]).values
    shapes, cells = model.shapes(), model.interaction_shapes()
    assert [shape.name for shape in shapes] == ["f1", "f2", "f3", "f4", "f5", "f6"]
    for j, shape in enumerate(shapes):
        levels = shape.bins.levels_of(X[:, j])
        means = np.bincount(levels, values[:, j], minlength=shape.bins.n_levels)
        counts = np.bincount(levels, minlength=shape.bins.n_levels)
        np.testing.assert_allclose(shape.values[counts > 0], (means / counts.clip(1))[counts > 0], atol=1e-10)
        np.testing.assert_allclose(shape.shares, counts / len(X))
        assert abs(shape.shares @ shape.values) < 1e-12
    for k, each in enumerate(cells):
        codes = each.first_bins.levels_of(X[:, each.first]), each.second_bins.levels_of(X[:, each.second])
        np.testing.assert_allclose(each.values[codes], values[:, 6 + k], atol=1e-12)
        assert each.shares.sum() == pytest.approx(1.0)
    assert cells[0].spread == pytest.approx(values[:, 6].std())


def test_an_edit_has_its_price(model, data):
    X, y, qid = data
    steps = model.shapes()[4].steps
    same = model.edit_shape(4, steps, X, y, qid=qid)
    assert same.objective_ == pytest.approx(model.objective_, rel=1e-12)
    assert same.duality_gap_ <= model.duality_gap_ * 1.001 + 1e-12 * model.objective_
    shifted = model.edit_shape(4, steps + 3.0, X, y, qid=qid)
    np.testing.assert_allclose(shifted.predict(X), model.predict(X))
    edited = same.edit_shape(4, {5: steps[5] + 1.0}, X.tolist(), y.astype(int).tolist(), qid=qid.tolist())
    assert edited.objective_ > model.objective_
    assert edited.objective_ - edited.duality_gap_ <= model.objective_
    assert edited.duality_gap_ <= edited.objective_ - model.objective_ + same.duality_gap_ + 1e-9
    assert edited.edited_["feature"] == [4, 4]
    pairs = np.array([(0, 1), (13, 12)])
    by_pairs = AdditiveRankSVM(C=0.5, tol=1e-8).fit(X, qid=qid, pairs=pairs)
    again = by_pairs.edit_shape(0, by_pairs.shapes()[0].steps, X, qid=qid, pairs=pairs)
    assert again.objective_ == pytest.approx(by_pairs.objective_)
    assert edited.edited_["objective"] == [model.objective_, same.objective_]
    at_level = model.shapes()[4].bins.levels_of(X[:, 4]) == 5
    np.testing.assert_allclose(edited.predict(X) - model.predict(X), at_level.astype(float), atol=1e-12)
    assert model.edited_ is None
    assert not edited.converged_


def test_an_edit_without_data_proves_nothing(model):
    edited = model.edit_shape(1, [0.0, 1.0])
    assert edited.duality_gap_ == np.inf
    assert edited.objective_ == model.objective_


def test_the_hinge_has_a_price_too(data):
    X, y, qid = data
    model = AdditiveRankSVM(C=0.5, loss="hinge", tol=1e-4).fit(X, y, qid=qid)
    same = model.edit_shape(0, model.shapes()[0].steps, X, y, qid=qid)
    assert same.objective_ == pytest.approx(model.objective_, rel=1e-9)
    assert same.duality_gap_ <= model.duality_gap_ * 1.001


def test_an_edit_of_a_model_of_preferences_has_its_price(data):
    X = data[0]
    preferences = ranksvm.Preferences(X[:100], X[100:200], weight=np.linspace(0.5, 2.0, 100)).taken(range(5, 95))
    model = AdditiveRankSVM(C=0.5, tol=1e-8).fit(preferences)
    same = model.edit_shape(0, model.shapes()[0].steps, preferences)
    assert same.objective_ == pytest.approx(model.objective_, rel=1e-12)
    assert same.duality_gap_ <= model.duality_gap_ * 1.001 + 1e-12 * model.objective_
    with pytest.raises(DataError, match="qid is given in addition to Preferences"):
        model.edit_shape(0, {1: 0.0}, preferences, qid=np.zeros(200))


def test_an_edit_says_what_to_pass_instead_of_ranking_data_or_a_path(model, data):
    ranking_data = ranksvm.RankingData(*data)
    with pytest.raises(DataError, match="RankingData are not an array of features: give X="):
        model.edit_shape(1, [0.0, 1.0], ranking_data)
    with pytest.raises(DataError, match=r"X is 'train.txt': read the file first, .*, and pass X=data.X, y=data.y"):
        model.edit_shape(1, [0.0, 1.0], "train.txt")


def test_edits_that_are_refused(model, data):
    X, y, qid = data
    with pytest.raises(OptionError, match="names the feature 'f9'"):
        model.edit_shape("f9", {0: 1.0})
    with pytest.raises(OptionError, match="no level 2"):
        model.edit_shape(1, {2: 1.0})
    with pytest.raises(OptionError, match=r"shape \(3,\)"):
        model.edit_shape(1, [0.0, 1.0, 2.0])
    with pytest.raises(OptionError, match="not finite"):
        model.edit_shape(1, [0.0, np.nan])
    for values in ({1: "high"}, {1: [1.0, 2.0]}):
        with pytest.raises(OptionError, match="the step of level 1 must be a number, got"):
            model.edit_shape(1, values)
    with pytest.raises(OptionError, match=r"values must be a list of numbers, got \['low', 'high'\]"):
        model.edit_shape(1, ["low", "high"])
    with pytest.raises(DataError, match="not the data"):
        model.edit_shape(1, [0.0, 1.0], X[:150], y[:150], qid=qid[:150])
    with pytest.raises(DataError, match="X is given without y or pairs"):
        model.edit_shape(1, [0.0, 1.0], X, qid=qid)
    flat = AdditiveRankSVM(step_weight=0.0).fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="step at level 1"):
        flat.edit_shape(1, [0.0, 1.0])
    rising = AdditiveRankSVM(monotone={1: 1}).fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="monotone does not admit"):
        rising.edit_shape(1, [0.0, -1.0])
    assert rising.edit_shape(1, [0.0, 1.0], X, y, qid=qid).duality_gap_ < np.inf
