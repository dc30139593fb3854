"""Additive models in every format: steps, missing values, categories and functions of two features."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from export_runtimes import RUNTIMES, TREE_RUNTIMES, elasticsearch, need, run, scores_of, solr
from ranksvm import AdditiveRankSVM, QueryMinMaxScaler, QueryStandardScaler, RankSVM, export
from ranksvm.additive import AdditiveFunction, FeatureBins, Interaction, TrainingShares
from ranksvm.exceptions import OptionError, UninformativeWarning
from ranksvm.exporting.registry import FORMATS
from ranksvm.metrics.scorers import predict_scores

WEIGHTS_ONLY = ("svm-rank", "liblinear", "libsvm")
PURE_TREES = ("solr", "elasticsearch", "opensearch", "xgboost")
BY_QUERY = ("onnx", "sql", "python", "javascript", "java", "c", "json")
ALL_RUNTIMES = {key: value for key, value in (RUNTIMES | TREE_RUNTIMES).items() if key[0] not in WEIGHTS_ONLY}
WITH_LINEAR_PART = [key for key in ALL_RUNTIMES if key[0] not in PURE_TREES]
NAMES = ["bm25", "page rank", 'it\'s "quoted"', "été", "a,b;c $n ${n}", "select"]
VESPA_NAMES = ["bm25(title)", "attribute(age)", "fieldMatch(title).completeness", "query(x)", "clicks", "freshness(t)"]
MISSING, CATEGORY, NO_STEPS = 1, 2, 5


@pytest.fixture(autouse=True)
def onnx_where_it_is_needed(request):
    """Skip a test with the parameter "onnx" if ONNX is not installed."""
    if "onnx" in request.node.name:
        pytest.importorskip("onnx", reason="onnx is not installed")


def documents(dtype=np.float64, missing=True, seed=0, n_queries=15, n_docs=8):
    random = np.random.default_rng(seed)
    n = n_queries * n_docs
    X = random.normal(size=(n, 6))
    X[:, 1] = 1000.0 + 3.0 * X[:, 1]
    X[:, CATEGORY] = random.integers(-2, 3, n)
    X[:, 3] = random.integers(0, 4, n) / 3.0
    X[:, 4] *= 1e-5
    if missing:
        X[random.uniform(size=n) < 0.2, MISSING] = np.nan
        X[random.uniform(size=n) < 0.2, CATEGORY] = np.nan
    # engines of float32 read the same numbers
    return X.astype(np.float32).astype(dtype), np.repeat(np.arange(n_queries), n_docs)


def labels(X):
    Z = np.nan_to_num(X, nan=1003.0)
    score = np.abs(X[:, 0]) + np.abs(Z[:, 1] - 1000.0) + 2.0 * (X[:, 2] == 1.0) + X[:, 3] * X[:, 0] + 3e4 * X[:, 4]
    return np.digitize(score, np.quantile(score, [0.3, 0.6, 0.8]))


def fitted(linear, dtype=np.float64, missing=True, scaler=None):
    """A model, and documents: some that it was fitted to, with values at its cuts, and others."""
    X, qid = documents(dtype, missing)
    by_query = type(scaler).__name__.startswith("Query")
    ranker = AdditiveRankSVM(
        C=0.1,
        linear=linear,
        max_bins=9,
        interaction_bins=4,
        interactions=[(0, 3), (1, 2), (2, 0)],
        # values that are scaled by query are equal up to round-off
        categorical=[] if by_query else [CATEGORY],
    )
    queries = {"qid": qid} if by_query else {}
    Z = X if scaler is None else scaler.fit(X).transform(X, **queries)
    ranker.fit(Z, labels(X), qid=qid)
    model = ranker if scaler is None else Pipeline([("scaler", scaler), ("ranker", ranker)])
    more, _ = documents(dtype, missing, seed=1, n_queries=6)
    rows = np.vstack([X[: 9 * 8], more])
    queries = np.repeat(np.arange(len(rows) // 8), 8)
    return model, rows, queries, predict_scores(model, rows, queries)


@pytest.fixture(scope="module")
def models():
    """Whether there is a linear part -> model and documents."""
    return {linear: fitted(linear) for linear in (False, True)}


def check(model, X, qid, expected, target, runtime, folder, single=False, data=None):
    names = VESPA_NAMES if target == "vespa" else NAMES
    if target == "xgboost":
        names = [name.replace("[", "") for name in NAMES]
    result = export(model, to=target, names=names, X=data, qid=None if data is None else qid)
    found = scores_of(target, runtime, result, X, qid, folder)
    single = single or ALL_RUNTIMES[target, runtime][1]
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=(1e-6 if single else 1e-11) * (1 + np.abs(expected).max()))
    return result


@pytest.mark.parametrize(("target", "runtime"), ALL_RUNTIMES)
def test_steps_alone(models, target, runtime, tmp_path):
    model, X, qid, expected = models[False]
    assert not model.linear_coef_.any()
    assert np.isnan(X).any()
    check(model, X, qid, expected, target, runtime, tmp_path)


@pytest.mark.parametrize(("target", "runtime"), WITH_LINEAR_PART)
def test_steps_and_a_linear_part(models, target, runtime, tmp_path):
    model, X, qid, expected = models[True]
    assert model.linear_coef_.any()
    check(model, X, qid, expected, target, runtime, tmp_path, data=X)


@pytest.mark.parametrize("target", PURE_TREES)
def test_trees_have_no_linear_part(models, target):
    with pytest.raises(OptionError, match=r"cannot express the linear part of this AdditiveRankSVM: .*linear=False"):
        export(models[True][0], to=target)


def test_xgboost_takes_no_linear_model():
    X, qid = documents(missing=False)
    with pytest.raises(OptionError, match="cannot express the linear part of this RankSVM: fit an AdditiveRankSVM"):
        export(RankSVM().fit(X, labels(X), qid=qid), to="xgboost")


def test_a_model_whose_weights_are_all_zero():
    X, qid = documents(missing=False)
    with pytest.warns(UninformativeWarning):
        ranker = AdditiveRankSVM(linear=False).fit(0.0 * X, labels(X), qid=qid)
    with pytest.raises(OptionError, match="all weights of the model are 0: there is nothing to export"):
        export(ranker, to="xgboost")


@pytest.mark.parametrize("target", WEIGHTS_ONLY)
def test_files_of_weights_have_no_steps(models, target):
    with pytest.raises(
        OptionError, match=f"{target} files cannot express the steps of this AdditiveRankSVM: export to"
    ):
        export(models[True][0], to=target)


@pytest.mark.parametrize("target", [*PURE_TREES, "onnx"])
def test_large_categories(target, tmp_path):
    """Unknown ids are next to known ones, and float32 does not tell the last two ids apart."""
    bins = FeatureBins(np.empty(0), False, np.array([5e6 + 1, 5e6 + 2, 5e6 + 5, 2.0**24 + 2, 2.0**25, 2.0**25 + 1]))
    function = AdditiveFunction(np.zeros(1), np.zeros(1), [bins], [np.arange(7.0)])
    result = export(with_function(function), to=target)
    assert any(note.startswith("2 levels were lost: float32") for note in result.notes)
    X = np.array([[*5e6 + np.arange(8.0), *2.0**24 + np.arange(0.0, 6.0, 2.0), 2.0**25, 2.0**25 + 4]]).T
    runtime = next(runtime for name, runtime in ALL_RUNTIMES if name == target)
    found = scores_of(target, runtime, result, X, np.zeros(len(X)), tmp_path)
    np.testing.assert_array_equal(found, [0, 1, 2, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0])
    np.testing.assert_array_equal(found, function.scores(X.astype(np.float32)))


@pytest.mark.parametrize(("target", "runtime"), [key for key in ALL_RUNTIMES if key[0] != "java"])
def test_a_model_of_float32(target, runtime, tmp_path):
    model, X, qid, expected = fitted(linear=target not in PURE_TREES, dtype=np.float32)
    check(model, X.astype(np.float64), qid, expected, target, runtime, tmp_path, single=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-1, 3)), RobustScaler()])
@pytest.mark.parametrize(("target", "runtime"), [key for key in ALL_RUNTIMES if key[1] not in ("java", "duckdb")])
def test_scalers_of_the_training_data(target, runtime, scaler, dtype, tmp_path):
    model, X, qid, _ = fitted(target not in PURE_TREES, dtype, missing=target != "vespa", scaler=scaler)
    X = X.astype(np.float64)
    # values at the cuts are on the side where they were in the training data
    expected = model.predict(X.astype(dtype))
    if dtype == np.float32:
        # features far from 0 lose digits when they are scaled in float32
        result = export(model, to=target, names=VESPA_NAMES if target == "vespa" else NAMES)
        found = scores_of(target, runtime, result, X, qid, tmp_path)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4 * np.abs(expected).max())
        return
    check(model, X, qid, expected, target, runtime, tmp_path)


@pytest.mark.parametrize(
    "scaler",
    [
        QueryMinMaxScaler(),
        QueryStandardScaler(),
        QueryStandardScaler(with_mean=False),
        QueryStandardScaler(with_std=False),
    ],
)
@pytest.mark.parametrize(("target", "runtime"), [key for key in ALL_RUNTIMES if key[0] in BY_QUERY])
def test_scalers_by_query(target, runtime, scaler, tmp_path):
    model, X, qid, expected = fitted(linear=True, missing=False, scaler=scaler)
    # equal values of two queries may differ by round-off, which a file does not tell apart and predict does
    below = model[-1].cuts_ - scaler.transform(X, qid=qid)[:, :, np.newaxis]
    clear = ~((below > 0.0) & (below < 1e-12)).any(axis=(1, 2))
    assert clear.mean() > 0.9
    result = export(model, to=target, names=NAMES)
    found = scores_of(target, runtime, result, X, qid, tmp_path)
    tolerance = (1e-6 if target == "onnx" else 1e-11) * (1 + np.abs(expected).max())
    np.testing.assert_allclose(found[clear], expected[clear], rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-1, 1)), QueryMinMaxScaler()])
@pytest.mark.parametrize(("target", "runtime"), [key for key in ALL_RUNTIMES if key[0] in ("python", "sql", "onnx")])
def test_values_with_six_decimals_stay_on_their_side_of_a_cut(target, runtime, scaler, dtype, tmp_path):
    """LETOR files have many zeros, and features whose smallest positive value is 0.000001: a cut between the two."""
    random = np.random.default_rng(0)
    n_queries, n_docs = 40, 10
    X = np.where(random.uniform(size=(n_queries * n_docs, 6)) < 0.5, 0.0, 1e-6 * random.integers(1, 4, (400, 6)))
    X[::n_docs] = 1.0
    X = X.astype(np.float32).astype(np.float64)  # engines of float32 read the same numbers
    qid = np.repeat(np.arange(n_queries), n_docs)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1.5e-6)
    queries = {"qid": qid} if isinstance(scaler, QueryMinMaxScaler) else {}
    Z = scaler.fit(X.astype(dtype)).transform(X.astype(dtype), **queries)
    ranker = AdditiveRankSVM(C=0.1, linear=False).fit(Z, y, qid=qid)
    assert len(np.unique(ranker.shapes()[0].steps)) > 2
    result = export(Pipeline([("scaler", scaler), ("ranker", ranker)]), to=target, names=NAMES)
    found = scores_of(target, runtime, result, X, qid, tmp_path)
    np.testing.assert_allclose(found, ranker.predict(Z), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("categorical", [[], [0]])
@pytest.mark.parametrize("scaler", [StandardScaler(with_std=False), RobustScaler(with_scaling=False)])
def test_scaled_values_far_from_0_stay_on_their_side_of_a_cut(scaler, categorical, dtype, tmp_path):
    """Float32 represents the scaled values, and hence the cuts, exactly, whether or not they are scaled in float32."""
    random = np.random.default_rng(0)
    X, qid = 2.0**24 - random.integers(0, 32, (400, 2)).astype(dtype), np.repeat(np.arange(40), 10)
    Z = scaler.fit(X).transform(X)
    ranker = AdditiveRankSVM(linear=False, categorical=categorical).fit(Z, (X % 4).sum(axis=1), qid=qid)
    model = Pipeline([("scaler", scaler), ("ranker", ranker)])
    found = scores_of("python", "python", export(model, to="python"), X.astype(np.float64), qid, tmp_path)
    np.testing.assert_allclose(found, model.predict(X), rtol=0, atol=1e-12)


def test_tiny_values_keep_their_sides_if_no_mean_is_subtracted(tmp_path):
    random = np.random.default_rng(0)
    X, qid = random.choice([-1e-30, 1e-30, 1.0], (120, 2)), np.repeat(np.arange(15), 8)
    Z = QueryStandardScaler(with_mean=False).fit_transform(X, qid=qid)
    ranker = AdditiveRankSVM(C=0.1, linear=False).fit(Z, (X > 0.0).sum(axis=1), qid=qid)
    model = Pipeline([("scaler", QueryStandardScaler(with_mean=False).fit(X)), ("ranker", ranker)])
    found = scores_of("python", "python", export(model, to="python"), X, qid, tmp_path)
    np.testing.assert_allclose(found, ranker.predict(Z))


@pytest.mark.parametrize("target", [target for target in FORMATS if target not in BY_QUERY])
def test_scalers_by_query_are_refused_elsewhere(target):
    model = fitted(linear=False, missing=False, scaler=QueryMinMaxScaler())[0]
    with pytest.raises(OptionError, match=r"by query|cannot express the steps|normalizes hits for sums only"):
        export(model, to=target, names=VESPA_NAMES)


# ---- what is particular to some formats


def with_function(function, names=None):
    """A ranker with a given function."""

    class Ranker(AdditiveRankSVM):
        def _trained_function(self):
            n_levels = [each.n_levels for each in function.bins]
            shares, cells = (
                [np.full(n, 1.0 / n) for n in n_levels],
                [each.values * 0.0 for each in function.interactions],
            )
            return replace(function, training=TrainingShares(np.zeros((len(shares), 2)), shares, shares, cells))

    ranker = Ranker(linear=False)
    ranker.n_features_in_ = function.n_features
    ranker.linear_coef_, ranker.fill_, ranker.cuts_ = function.coef, function.fill, np.empty(0)
    if names is not None:
        ranker.feature_names_in_ = np.array(names, dtype=object)
    return ranker


def steps(cuts, values, missing=False, coef=0.0, fill=0.0):
    bins = FeatureBins(np.array(cuts, dtype=float), missing=missing)
    return AdditiveFunction(np.array([coef]), np.array([fill]), [bins], [np.array(values, dtype=float)])


@pytest.mark.parametrize("target", ["solr", "elasticsearch", "opensearch"])
def test_scores_that_are_not_negative(models, target):
    model, X, qid, expected = models[False]
    result = export(model, to=target, names=NAMES, non_negative=True)
    found = (solr if target == "solr" else elasticsearch)(result, X, qid)
    assert (found >= 0).all()
    offset = float(re.search(r"plus ([-\d.e+]+), in float32", result.text)[1])
    np.testing.assert_allclose(found - offset, expected, rtol=0, atol=1e-5)
    assert not any("negative" in note for note in result.notes)


@pytest.mark.parametrize("target", PURE_TREES)
def test_levels_that_float32_does_not_tell_apart(target, tmp_path):
    ranker = with_function(steps([1.0, 1.0 + 1e-12, 1.0 + 2e-12, 2.0], [0.0, 1.0, 4.0, 5.0, 7.0]))
    result = export(ranker, to=target)
    assert any(note.startswith("1 level was lost: float32") for note in result.notes)
    X = np.array([[0.5], [1.0], [1.5], [2.0]])
    (runtime,) = [runtime for name, runtime in ALL_RUNTIMES if name == target]
    assert scores_of(target, runtime, result, X, np.zeros(4), tmp_path).tolist() == [0.0, 1.0, 5.0, 7.0]


@pytest.mark.parametrize("target", [*PURE_TREES, "onnx"])
def test_float32_values_keep_their_levels(target, tmp_path):
    """A cut between two float32 numbers may be nearer to the lower one, which does not reach it."""
    cuts = np.sort(np.random.default_rng(0).uniform(2.0, 100.0, 60))
    X = np.concatenate([np.float32(cuts), np.nextafter(np.float32(cuts), 0), np.nextafter(np.float32(cuts), 1e3)])
    X = X.astype(np.float64)[:, np.newaxis]
    function = steps(cuts, range(61))
    runtime = next(runtime for name, runtime in ALL_RUNTIMES if name == target)
    found = scores_of(target, runtime, export(with_function(function), to=target), X, np.zeros(len(X)), tmp_path)
    np.testing.assert_array_equal(found, function.scores(X))


@pytest.mark.parametrize(("target", "runtime"), [key for key in ALL_RUNTIMES if key[0] != "java"])
def test_values_beside_cuts(target, runtime, tmp_path):
    """Solr adds a slack to thresholds, LightGBM compares the other way, and tiny numbers count as 0 somewhere."""
    cuts = np.array([-1e6, -1.0, -1e-3, 0.0, 1e-3, 0.1, 1.0, 3e5], dtype=np.float32)
    below, above = np.nextafter(cuts, np.float32(-np.inf)), np.nextafter(cuts, np.float32(np.inf))
    below[3], above[3] = -1e-30, 1e-30
    if target == "solr":
        below = below - 4 * np.spacing(np.abs(below))
        below[3] = -1e-12
    X = np.concatenate([below, cuts, above]).astype(np.float64)[:, np.newaxis]
    function = steps(cuts, range(9))
    result = export(with_function(function), to=target)
    found = scores_of(target, runtime, result, X, np.zeros(len(X)), tmp_path)
    np.testing.assert_array_equal(found, function.scores(X))


@pytest.mark.parametrize(("target", "runtime"), [key for key in ALL_RUNTIMES if key[0] != "java"])
def test_categories_are_exact(target, runtime, tmp_path):
    categories = np.array([-1e6, -1.0, 0.0, 0.1, 0.2, 7.0, 1e6], dtype=np.float32).astype(float)
    bins = FeatureBins(np.empty(0), missing=True, categories=categories)
    function = AdditiveFunction(np.zeros(1), np.zeros(1), [bins], [np.arange(9.0)])
    X = np.concatenate([categories, categories + 0.01, categories - 0.01, [np.nan]])
    X = X.astype(np.float32).astype(float)[:, np.newaxis]
    found = scores_of(target, runtime, export(with_function(function), to=target), X, np.zeros(len(X)), tmp_path)
    np.testing.assert_array_equal(found, function.scores(X))


def test_no_threshold_of_lightgbm_is_zero_or_subnormal():
    """Treelite refuses subnormal numbers, and lleaves refuses 0."""
    bins = FeatureBins(np.empty(0), missing=True, categories=np.array([-1.0, 0.0, 1.0]))
    text = export(
        with_function(AdditiveFunction(np.zeros(1), np.zeros(1), [bins], [np.arange(5.0)])), to="lightgbm"
    ).text
    (line,) = re.findall(r"^threshold=(.*)$", text, re.MULTILINE)
    thresholds = np.array(line.split(), dtype=float)
    assert (np.abs(thresholds) >= np.finfo(np.float64).tiny).all()


@pytest.mark.parametrize(("target", "runtime"), WITH_LINEAR_PART)
def test_missing_values_of_a_feature_without_steps(target, runtime, tmp_path):
    function = steps([], [0.0, 0.0], missing=True, coef=2.0, fill=0.25)
    X = np.array([[1.0], [np.nan], [-3.0]])
    found = scores_of(target, runtime, export(with_function(function), to=target), X, np.zeros(3), tmp_path)
    np.testing.assert_array_equal(found, [2.0, 0.5, -6.0])


def test_null_is_a_missing_value_in_javascript(tmp_path):
    function = steps([1.0], [0.0, 1.0, 5.0], missing=True)
    path = tmp_path / "exported.js"
    export(with_function(function), path, to="javascript")
    calls = ", ".join(f"score({document})" for document in ("[null]", "[undefined]", "{f1: null}", "{}", "[2]"))
    program = f"const {{ score }} = require({json.dumps(str(path))}); console.log(JSON.stringify([{calls}]))"
    assert json.loads(run(need("node"), "-e", program)) == [5.0, 5.0, 5.0, 0.0, 1.0]


@pytest.mark.parametrize("target", ["python", "javascript", "c", "onnx", "vespa", "json", "sql"])
def test_missing_values_that_predict_refuses_have_no_score(target, tmp_path):
    runtime = next(runtime for name, runtime in ALL_RUNTIMES if name == target)
    result = export(with_function(steps([1.0], [0.0, 1.0], coef=2.0)), to=target)
    found = scores_of(target, runtime, result, np.array([[1.0], [np.nan]]), np.zeros(2), tmp_path)
    assert found[0] == 3.0
    assert np.isnan(found[1])


def test_missing_values_of_search_engines():
    """A feature without a level for missing values is 0 where a document does not have it."""
    ranker = with_function(steps([-1.0, 1.0], [0.0, 1.0, 5.0]))
    assert elasticsearch(export(ranker, to="elasticsearch"), np.array([[np.nan]]), None) == 1.0
    result = export(with_function(steps([-1.0, 1.0], [0.0, 1.0, 5.0, 9.0], missing=True)), to="solr")
    assert result.notes == [
        "Solr has no missing values: give the defaultValue -3.4028235e+38 to f1 in the feature store."
    ]
    assert solr(result, np.array([[np.nan]]), None) == 9.0


@pytest.mark.parametrize("scaler", [None, StandardScaler()])
@pytest.mark.parametrize("target", [*PURE_TREES, "onnx"])
def test_float32_keeps_training_data_at_their_cuts(target, scaler, tmp_path):
    """Engines round documents of float64; where a cut is not rounded too, half of the values at it are below it."""
    random = np.random.default_rng(0)
    X, qid = random.normal(size=(120, 6)), np.repeat(np.arange(15), 8)
    ranker = AdditiveRankSVM(linear=False, max_bins=9)
    Z = X if scaler is None else scaler.fit_transform(X)
    ranker.fit(Z, labels(X), qid=qid)
    model = ranker if scaler is None else Pipeline([("scaler", scaler), ("ranker", ranker)])
    runtime = next(runtime for name, runtime in ALL_RUNTIMES if name == target)
    result = export(model, to=target, X=X, qid=qid)
    found = scores_of(target, runtime, result, X, qid, tmp_path)
    np.testing.assert_allclose(found, model.predict(X), rtol=0, atol=1e-5)
    # the self-test is scored by the rounded cuts
    tested = scores_of(target, runtime, result, result.test.X, np.zeros(3), tmp_path)
    np.testing.assert_allclose(tested, result.test.scores, rtol=0, atol=1e-5)


def test_xgboost_of_sparse_data():
    """Values that a sparse matrix does not store are missing for XGBoost, and 0 for a model without such a level."""
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    from scipy import sparse

    model, X, _, _ = fitted(linear=False, missing=False)
    X[::2, 0] = 0.0
    booster = xgboost.Booster()
    booster.load_model(bytearray(export(model, to="xgboost").content))
    found = booster.predict(xgboost.DMatrix(sparse.csr_matrix(X)))
    np.testing.assert_allclose(found, model.predict(X), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("target", "approximate"), [("lightgbm", False), ("xgboost", False), ("xgboost", True)])
def test_contributions_in_tree_programs(target, approximate):
    module = pytest.importorskip(target, reason=f"{target} is not installed")
    X, qid = documents()
    ranker = AdditiveRankSVM(C=0.1, linear=False, max_bins=9, categorical=[CATEGORY]).fit(X, labels(X), qid=qid)
    result = export(ranker, to=target)
    if target == "lightgbm":
        found = module.Booster(model_str=result.text).predict(X, pred_contrib=True, num_threads=1)
    else:
        booster = module.Booster({"nthread": 1})
        booster.load_model(bytearray(result.content))
        found = booster.predict(module.DMatrix(X, nthread=1), pred_contribs=True, approx_contribs=approximate)
    expected = ranker.contributions(X)
    np.testing.assert_allclose(found[:, :-1], expected.values, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found[:, -1], expected.base_values, rtol=0, atol=1e-5)


def test_names_that_tree_programs_do_not_take(models):
    with pytest.raises(OptionError, match=r"'a\[0\]' cannot name a feature of XGBoost"):
        export(models[False][0], to="xgboost", names={"f1": "a[0]"})
    text = export(models[True][0], to="lightgbm", names=NAMES).text
    assert "feature_names=bm25 page_rank it's__quoted_ été a_b;c_$n_$_n_ select" in text
    with pytest.raises(OptionError, match="the features 'a b', 'a_b' would both be called 'a_b': rename one"):
        export(models[True][0], to="lightgbm", names={"f1": "a b", "f2": "a_b"})


def test_features_that_do_nothing_are_left_out():
    bins = [FeatureBins(np.array([0.5])), FeatureBins(np.array([0.5])), FeatureBins(np.array([0.5]))]
    shapes = [np.array([0.0, 1.0]), np.zeros(2), np.zeros(2)]
    interaction = Interaction(0, 2, bins[0], bins[2], np.array([[0.0, 0.0], [0.0, 3.0]]))
    ranker = with_function(AdditiveFunction(np.zeros(3), np.zeros(3), bins, shapes, [interaction]), ["a", "b", "c"])
    for target in ("solr", "sql", "vespa"):
        result = export(ranker, to=target)
        assert "1 feature without effect dropped: b." in result.notes
    assert [feature["name"] for feature in json.loads(export(ranker, to="solr").text)["features"]] == ["a", "c"]


def test_scores_that_float32_does_not_tell_apart_are_announced():
    pytest.importorskip("onnx", reason="onnx is not installed")
    random = np.random.default_rng(0)
    X, qid = 1.7e9 + 1e3 * random.normal(size=(120, 1)), np.repeat(np.arange(15), 8)
    y = (X[:, 0] > 1.7e9).astype(int)
    ranker = AdditiveRankSVM(C=0.1).fit(X, y, qid=qid)
    announced = r"the scores of the file are float32, which rounds scores near [\de+.]+ by up to [\d.]+: "
    assert any(re.match(announced, note) for note in export(ranker, to="onnx").notes)
    scaler = StandardScaler()
    model = Pipeline([("scaler", scaler), ("ranker", ranker.fit(scaler.fit_transform(X), y, qid=qid))])
    assert not any(re.match(announced, note) for note in export(model, to="onnx").notes)


def test_a_large_model_for_solr_is_announced():
    cuts = np.arange(254.0)
    bins = [FeatureBins(cuts)] * 60
    shapes = [np.arange(255.0)] * 60
    ranker = with_function(AdditiveFunction(np.zeros(60), np.zeros(60), bins, shapes))
    assert any("ZooKeeper takes 1 MB" in note for note in export(ranker, to="solr").notes)


def test_many_levels_in_java(tmp_path):
    random = np.random.default_rng(0)
    bins = [FeatureBins(np.sort(random.normal(size=254))) for _ in range(40)]
    shapes = [np.append(0.0, random.normal(size=254)) for _ in range(40)]
    function = AdditiveFunction(random.normal(size=40), np.zeros(40), bins, shapes)
    X = random.normal(size=(5, 40))
    found = scores_of("java", "java", export(with_function(function), to="java"), X, np.zeros(5), tmp_path)
    np.testing.assert_allclose(found, function.scores(X), rtol=1e-12)


def test_a_model_without_steps_is_linear():
    """Such as one whose features are all constant."""
    function = steps([], [0.0], coef=2.0)
    weights = json.loads(export(with_function(function), to="solr").text)["params"]["weights"]
    assert weights == {"f1": 2.0}


def test_notes_say_which_number_stands_for_which_text():
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    brands = np.array([f"brand {number:02d}" for number in range(12)])[random.integers(0, 12, 240)]
    X = pandas.DataFrame({"price": random.normal(size=240), "brand": brands, "new": random.choice(["no", "yes"], 240)})
    y = np.clip(np.round(X["price"] + (X["new"] == "yes")), 0, 3)
    ranker = AdditiveRankSVM(0.1, categorical=["brand", "new"], linear=False).fit(X, y, qid=np.arange(240) // 12)
    for target in ("xgboost", "sql", "python"):
        notes = export(ranker, to=target, names={"new": "is_new"}, X=X[:12]).notes
        assert "feature 'is_new' takes numbers: 0 for 'no', 1 for 'yes'; -1 for any other text." in notes
        (brand,) = [note for note in notes if "'brand'" in note]
        assert "9 for 'brand 09', ... (`categories_` of the model lists all 12); -1 for any other text." in brand
