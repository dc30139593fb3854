"""Additive models of categories that are text."""

import pickle
import warnings

import numpy as np
import pytest

import ranksvm
from ranksvm import AdditiveRankSVM, AdditiveRankSVMCV, RankSVM, RankSVMCV
from ranksvm.clicks import fit_from_clicks, position_bias, simulate_clicks
from ranksvm.data.text_categories import features_for
from ranksvm.datasets import file_data, read_data
from ranksvm.datasets.cache import conversion
from ranksvm.exceptions import DataError, ModelFileError, OptionError
from ranksvm.report import make_report
from ranksvm.serving.simulation import each_query

pandas = pytest.importorskip("pandas")
BRANDS = np.array(["acme", "bolt", "corp"])


def make_data(n=240, seed=0):
    """Features with text, the same with numbers in its place, labels and queries."""
    rng = np.random.default_rng(seed)
    number = rng.integers(0, 3, n)
    price, other = rng.normal(size=n), rng.integers(0, 2, n)
    y = np.clip(np.round(np.array([0.0, 2.0, 1.0])[number] + 0.3 * price + 0.3 * rng.normal(size=n)), 0, 3)
    X = pandas.DataFrame({"price": price, "brand": BRANDS[number], "color": np.array(["red", "blue"])[other]})
    numbers = X.assign(brand=number, color=1 - other).to_numpy(dtype=np.float64)
    return X, numbers, y, np.arange(n) // 12


def fitted(X, y, qid, **options):
    return AdditiveRankSVM(**{"C": 0.1, "categorical": ["brand", "color"], **options}).fit(X, y, qid=qid)


@pytest.mark.parametrize("categorical", [["brand", "color"], [1, "color"]])
def test_a_fit_is_that_of_the_numbers(categorical):
    X, numbers, y, qid = make_data()
    found = fitted(X, y, qid, categorical=categorical)
    expected = fitted(numbers, y, qid, categorical=[1, 2])
    assert found.categories_ == {"brand": list(BRANDS), "color": ["blue", "red"]}
    np.testing.assert_array_equal(found.shape_values_, expected.shape_values_)
    np.testing.assert_array_equal(found.predict(X), expected.predict(numbers))
    assert found.shapes()[1].labels == ["other", *BRANDS]
    assert expected.shapes()[1].labels == ["other", "0", "1", "2"]


def test_scores_do_not_follow_the_codes_of_the_library():
    X, _, y, qid = make_data()
    ranker = fitted(X.astype({"brand": "category"}), y, qid)
    expected = ranker.predict(X)
    some = X[X["brand"] != "acme"]
    for kind in ("category", "string", object, pandas.CategoricalDtype(["corp", "x", "bolt"])):
        np.testing.assert_array_equal(ranker.predict(some.astype({"brand": kind})), expected[some.index])
    polars = pytest.importorskip("polars")
    np.testing.assert_array_equal(ranker.predict(polars.DataFrame(X.to_dict("list"))), expected)


def test_new_and_missing_categories():
    X, _, y, qid = make_data()
    X.loc[::7, "brand"] = None
    ranker = fitted(X, y, qid)
    assert ranker.shapes()[1].labels == ["other", *BRANDS, "missing"]
    rows = X.iloc[[0, 0, 0]].assign(brand=["acme", "new", None], color="red", price=0.0)
    scores, steps = ranker.predict(rows), ranker.shapes()[1].steps
    np.testing.assert_allclose(scores - scores[1], [steps[1] - steps[0], 0.0, steps[4] - steps[0]], atol=1e-12)
    X, _, y, qid = make_data()
    with pytest.raises(DataError, match=r"NaN at X\[2, 1\] \(feature brand\): this feature had no missing value"):
        fitted(X, y, qid).predict(rows)


def test_choices_paths_and_evaluation_sets():
    X, numbers, y, qid = make_data()
    options = {"Cs": [0.01, 0.1], "step_weights": [1.0], "cv": 3}
    found = AdditiveRankSVMCV(categorical=["brand", "color"], **options).fit(X, y, qid=qid)
    expected = AdditiveRankSVMCV(categorical=[1, 2], **options).fit(numbers, y, qid=qid)
    np.testing.assert_array_equal(found.scores_, expected.scores_)
    np.testing.assert_array_equal(found.predict(X), expected.predict(numbers))
    path = AdditiveRankSVM(categorical=["brand", "color"]).path(X, y, qid=qid, Cs=[0.01, 0.1])
    same = AdditiveRankSVM(categorical=[1, 2]).path(numbers, y, qid=qid, Cs=[0.01, 0.1])
    np.testing.assert_array_equal(path.models[1].predict(X), same.models[1].predict(numbers))
    other, _, y2, qid2 = make_data(seed=1)
    ranker = AdditiveRankSVM(C=0.1, categorical=["brand", "color"])
    ranker.fit(X, y, qid=qid, eval_set=[(other, y2)], eval_qid=[qid2])
    assert ranker.evals_result_["valid_0"]["ndcg@10"][-1] == pytest.approx(ranker.score(other, y2, qid=qid2))


def test_what_people_read_names_the_texts():
    X, _, y, qid = make_data()
    ranker = fitted(X, y, qid, interactions=[("brand", "color")])
    (cells,) = ranker.interaction_shapes()
    assert cells.labels == (["other", *BRANDS], ["other", "blue", "red"])
    assert "acme" in repr(ranker.shapes()[1])
    assert "acme" in repr(cells)
    contributions = ranker.contributions(X)
    np.testing.assert_allclose(contributions.values.sum(axis=1) + contributions.base_values, ranker.predict(X))
    explanation = ranker.explain(X.iloc[:3])
    (found,) = (each for each in explanation.pair(0, 1).to_dict()["features"] if each["name"] == "brand")
    assert (found["value"], found["other_value"]) == (X["brand"][0], X["brand"][1])
    (found,) = (each for each in explanation.document(0).to_dict()["features"] if each["name"] == "brand")
    assert (found["value"], found["other_value"]) == (X["brand"][0], None)
    assert X["brand"][0] in str(explanation.document(0))
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from ranksvm.plotting import ShapeDisplay

    figure = ShapeDisplay.from_estimator(ranker).figure_
    written = [text.get_text() for axis in figure.axes for text in axis.get_xticklabels() + axis.get_yticklabels()]
    assert {"acme", "bolt", "corp", "blue", "red"} <= set(written)


def test_files_and_pickles_keep_them(tmp_path):
    X, _, y, qid = make_data()
    ranker = fitted(X, y, qid)
    ranker.save(tmp_path / "model.rsvm")
    for loaded in (ranksvm.load(tmp_path / "model.rsvm"), pickle.loads(pickle.dumps(ranker))):
        assert loaded.categories_ == ranker.categories_
        np.testing.assert_array_equal(loaded.predict(X), ranker.predict(X))
    ranker.categories_ = {"brand": [1, 2]}
    with pytest.raises((ModelFileError, ValueError), match="categories_"):
        ranker.save(tmp_path / "other.rsvm")


def test_another_fit_forgets_them():
    X, numbers, y, qid = make_data()
    ranker = fitted(X, y, qid)
    ranker.set_params(categorical=[1, 2]).fit(numbers, y, qid=qid)
    assert ranker.categories_ == {}
    assert ranker.shapes()[1].labels == ["other", "0", "1", "2"]


def test_text_that_is_no_category_is_refused():
    X, _, y, qid = make_data()
    message = r"^X has columns of text: 'color'\. Name those that are categories, categorical=\['brand', 'color'\], and"
    with pytest.raises(DataError, match=message):
        fitted(X, y, qid, categorical=["brand"])
    with pytest.raises(OptionError, match="categorical has the feature False, but X has"):
        fitted(X, y, qid, categorical=[False] * (X.shape[1] - 1) + [True])  # a mask, as scikit-learn takes it
    with pytest.raises(DataError, match=r"X has a column 'docid', which is named like ids"):
        fitted(X.assign(docid=X["brand"]), y, qid)
    ranker = fitted(X, y, qid)
    with pytest.raises(DataError, match=r"features must be numbers, but X has the column 'price'"):
        ranker.predict(X.assign(price="cheap"))


@pytest.fixture(params=[".csv", ".parquet"])
def file(request, tmp_path, monkeypatch):
    """A file of the data, with the caches of large files in a folder of its own."""
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    X, _, y, qid = make_data()
    table = X.assign(label=y, qid=qid)
    path = tmp_path / f"data{request.param}"
    if request.param == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    return path


@pytest.mark.parametrize("categorical", [["brand", "color"], [1, "color"]])
def test_a_fit_of_a_file_is_that_of_its_frame(file, categorical):
    X, _, y, qid = make_data()
    expected = fitted(X, y, qid)
    data = read_data(file, categorical=categorical)
    for source in (file, data):
        found = AdditiveRankSVM(C=0.1, categorical=categorical).fit(source)
        np.testing.assert_array_equal(found.shape_values_, expected.shape_values_)
        assert found.categories_ == expected.categories_
        assert found.feature_names_in_.tolist() == ["price", "brand", "color"]
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))
        path = AdditiveRankSVM(categorical=categorical).path(source, Cs=[0.1])
        np.testing.assert_array_equal(path.models[0].predict(X), expected.predict(X))
        search = AdditiveRankSVMCV(Cs=[0.1], step_weights=[1.0], cv=3, categorical=categorical).fit(source)
        np.testing.assert_array_equal(search.predict(X), expected.predict(X))
    frame = data.to_frame(library="pandas")
    np.testing.assert_array_equal(expected.predict(frame[expected.feature_names_in_]), expected.predict(X))


def test_a_fit_of_a_file_that_stays_on_disk(file, monkeypatch):
    monkeypatch.setattr(file_data, "in_file", lambda path, limit: True)
    monkeypatch.setattr(conversion, "memory_to_read", lambda path: 1 << 50)
    X, _, y, qid = make_data()
    expected = fitted(X, y, qid, tol=1e-9)
    found = AdditiveRankSVM(C=0.1, categorical=["brand", "color"], tol=1e-9).fit(file)
    assert found.categories_ == expected.categories_
    assert found.shapes()[1].labels == ["other", *BRANDS]
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-4)
    options = {"Cs": [0.01, 0.1], "step_weights": [1.0], "cv": 3, "categorical": ["brand", "color"]}
    search = AdditiveRankSVMCV(**options).fit(file)
    assert AdditiveRankSVMCV(**options).fit(X, y, qid=qid).C_ == search.C_
    assert search.categories_ == expected.categories_


def test_data_of_text_that_no_one_named(file):
    data = read_data(file, categorical=["brand", "color"])
    with pytest.raises(DataError, match=r"columns of text: 'color'. Name those .*categorical=\['brand', 'color'\]"):
        AdditiveRankSVM(categorical=["brand"]).fit(data)
    with pytest.raises(DataError, match="features 'brand', 'color' held text: only AdditiveRankSVM"):
        RankSVM().fit(data)
    with pytest.raises(DataError, match=r"column 'brand' .* list it \(categorical, --categorical\)"):
        AdditiveRankSVM().fit(file)
    with pytest.raises(DataError, match="features 'brand', 'color' held text"):
        RankSVMCV().fit(data)


def test_names_of_features_that_hold_numbers_in_a_file(tmp_path):
    X, _, y, qid = make_data()
    path = tmp_path / "data.csv"
    X.assign(label=y, qid=qid, brand=np.unique(X["brand"], return_inverse=True)[1]).drop(columns="color").to_csv(
        path, index=False
    )
    for categorical in (["brand"], [1], np.array([1])):
        ranker = AdditiveRankSVM(C=0.1, categorical=categorical).fit(path)
        assert ranker.is_categorical_.tolist() == [0, 1]


def test_a_column_of_numbers_in_place_of_text():
    X, numbers, y, qid = make_data()
    ranker = fitted(X, y, qid)
    with pytest.raises(DataError, match="column 'brand' of X held text when the model was trained, and holds numbers"):
        ranker.predict(X.assign(brand=numbers[:, 1]))
    X.loc[::7, "brand"] = None
    ranker = fitted(X, y, qid)
    missing = ranker.predict(X.assign(brand=np.nan))
    np.testing.assert_array_equal(missing, ranker.predict(X.assign(brand=None)))


def test_python_functions_take_data_with_other_categories(file):
    X, _, y, qid = make_data()
    ranker, data = fitted(X, y, qid), read_data(file, categorical=["brand", "color"])
    renumbered = read_data(file, categorical={"brand": ["corp", "x", "bolt"], "color": []})
    assert renumbered.categories["brand"] == ["corp", "x", "bolt", "acme"]
    assert features_for(ranker, data) is data.X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn: these arrays have no names
        np.testing.assert_array_equal(ranker.predict(features_for(ranker, renumbered)), ranker.predict(X))
        logs = [simulate_clicks(each, ranker, 200, random_state=0) for each in (data, renumbered)]
    np.testing.assert_array_equal(logs[0].clicked, logs[1].clicked)
    np.testing.assert_array_equal(logs[0].document, logs[1].document)
    linear = RankSVM().fit(data.X, data.y, qid=data.qid)
    with pytest.raises(DataError, match="features 'brand', 'color' hold text, but the model was trained on numbers"):
        simulate_clicks(data, linear, 200, random_state=0)
    with pytest.raises(DataError, match="hold text, but learning from clicks takes numbers"):
        fit_from_clicks(RankSVM(), data, logs[0], np.ones(10))
    with pytest.raises(DataError, match="hold text, but the method 'em' takes numbers"):
        position_bias(logs[0], "em", data=data)
    with pytest.raises(DataError, match="hold text, but a service takes numbers"):
        next(each_query(data, passes=1, drift="none"))


def test_a_report_on_data_with_other_categories(file):
    pytest.importorskip("matplotlib")
    X, _, y, qid = make_data()
    ranker = fitted(X, y, qid)
    renumbered = read_data(file, categorical={"brand": ["corp", "x", "bolt"], "color": []})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        page = make_report(ranker, renumbered).html
    assert f"{ranker.score(X, y, qid=qid):.4f}" in page


@pytest.mark.parametrize("kind", [object, "U"])
def test_text_in_an_array_is_refused_with_its_column(kind):
    X = np.array([[1, "a"], [2, "b"], [3, "a"]], dtype=kind)
    with pytest.raises(DataError, match=r"Column 1 of X \(from 0\) is not numeric.* need a DataFrame"):
        AdditiveRankSVM(categorical=[1]).fit(X, [0, 1, 2], qid=[1, 1, 1])
