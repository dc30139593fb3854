"""`ranksvm.export`: names, ranges, refusals, self-tests, and the lines that install a file."""

import http.server
import json
import re
import runpy
import sqlite3
import subprocess
import threading
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

import ranksvm
from counted_list import CountedList
from export_runtimes import (
    RUNTIMES,
    duckdb,
    elasticsearch,
    need,
    python,
    run,
    scores_of,
    solr,
    sql_statements,
    sqlite,
    vespa,
)
from ranksvm import (
    AdditiveRankSVM,
    KernelRankSVM,
    QueryMinMaxScaler,
    QueryStandardScaler,
    RankSVM,
    export,
    make_ranking,
    metrics,
)
from ranksvm.exceptions import DataError, OptionError
from ranksvm.exporting.features import mapped_names
from ranksvm.exporting.registry import FORMATS

LUCENE = ("solr", "elasticsearch", "opensearch")


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)


@pytest.fixture(scope="module")
def ranker(data):
    return RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)


def with_weights(coef, scaler=None, names=None):
    """A model of given weights."""
    model = RankSVM()
    model.coef_ = np.array(coef, dtype=float)
    model.n_features_in_ = len(model.coef_)
    if names is not None:
        (model if scaler is None else scaler).feature_names_in_ = np.array(names, dtype=object)
    return model if scaler is None else Pipeline([("scaler", scaler), ("ranker", model)])


def test_the_method_of_a_model_is_the_function(ranker, tmp_path):
    one = ranker.export(tmp_path / "model.json", to="solr", names=["a", "b", "c", "d"])
    other = export(ranker, to="solr", names=["a", "b", "c", "d"], name="model")
    assert one.content == other.content
    assert (tmp_path / "model.json").read_bytes() == one.content
    assert json.loads(one.text)["name"] == "model"
    assert repr(one) == f"Export('solr', {len(one.content):,} bytes, 4 features)"
    one.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == one.content


def test_a_model_that_is_not_fitted():
    with pytest.raises(Exception, match="not fitted"):
        RankSVM().export(to="solr")
    with pytest.raises(Exception, match="not fitted"):
        export(RankSVM(), to="solr")


def test_the_best_model_of_a_search(data):
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(RankSVM(), {"C": [0.1, 1.0]}, cv=ranksvm.QueryKFold(2), scoring=metrics.scorer("ndcg@5"))
    with config_context(enable_metadata_routing=True):
        search.fit(data.X, data.y, qid=data.qid)
    assert export(search, to="solr").content == export(search.best_estimator_, to="solr").content


def test_what_is_no_ranker():
    with pytest.raises(OptionError, match=r"a ranker such as RankSVM is needed.*got StandardScaler"):
        export(StandardScaler().fit(np.eye(3)), to="solr")


def test_an_unknown_format(ranker):
    with pytest.raises(OptionError, match=r"to must be one of 'solr', .* got 'pmml'"):
        export(ranker, to="pmml")


def test_every_ranker_with_weights(data):
    ranks = np.digitize(data.y, [1, 2])
    rankers = [
        ranksvm.RankSVMCV(Cs=[0.1, 1.0], cv=2),
        ranksvm.FactorizedRankSVM(max_epochs=3, random_state=0),
        ranksvm.RegularizedRankSVM(max_iter=5, tol=1.0),
        ranksvm.SOLARRanker(random_state=0),
        ranksvm.PRanker(),
        ranksvm.PairwisePerceptronRanker(random_state=0),
        ranksvm.PerceptronCommitteeRanker(3, random_state=0),
    ]
    for one in rankers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what they learn does not matter
            one.fit(data.X, ranks, qid=data.qid)
        found = json.loads(one.export(to="json").text)
        weights = [feature["weight"] for feature in found["features"]]
        np.testing.assert_allclose(data.X @ weights, one.predict(data.X), rtol=1e-12, atol=1e-12)


# ---- names


def test_names_are_those_of_the_data_or_numbers(data, ranker):
    import pandas

    assert export(ranker, to="json").features == ["f1", "f2", "f3", "f4"]
    frame = pandas.DataFrame(data.X, columns=["bm25", "age", "links", "clicks"])
    named = RankSVM(C=0.1).fit(frame, data.y, qid=data.qid)
    assert export(named, to="json").features == ["bm25", "age", "links", "clicks"]
    scaler = StandardScaler().fit(frame)
    inner = RankSVM(C=0.1).fit(scaler.transform(frame), data.y, qid=data.qid)
    piped = Pipeline([("scaler", scaler), ("ranker", inner)])
    result = export(piped, to="json", names={"age": "days"}, X=frame, qid=data.qid)
    assert result.features == ["bm25", "days", "links", "clicks"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"f9": "age"}, "the model has no feature 'f9'; its features are 'f1', 'f2'"),
        (["a", "b"], "names has 2 names, but the model has 4 features"),
        (["a", "b", "a", "d"], "two features are called 'a'"),
        ({"f1": "f2"}, "two features are called 'f2'"),
        ({"f1": ""}, "the name of feature 'f1' is ''"),
        ({"f1": 3}, "the name of feature 'f1' is 3"),
        ({"f1": "a\nb"}, r"has a control character: rename the feature \(names=\.\.\., or --names\)"),
        ("abcd", "names must be a list or dict of names, not text, got 'abcd'"),
    ],
)
def test_names_that_cannot_be(ranker, names, message):
    with pytest.raises(OptionError, match=message):
        export(ranker, to="solr", names=names)


def test_a_dict_of_names_takes_time_linear_in_its_size():
    given = {f"f{number}": f"word{number}" for number in range(1, 201)}
    names = CountedList(given)
    assert mapped_names(names, given) == list(given.values())
    assert names.n_iterations <= 5  # 200 if each name is looked for in a new set of all names


def test_names_of_vespa_are_rank_features(ranker):
    text = export(ranker, to="vespa", names={"f1": "bm25(title)", "f2": "age"}).text
    assert "* bm25(title)" in text
    assert "* attribute(age)" in text
    for wrong in ("bm25(title", "a b", "1 + 2", "x) + 1 + (y", "a}b"):
        with pytest.raises(OptionError, match="no rank feature of Vespa: map it to one"):
            export(ranker, to="vespa", names={"f1": wrong})


@pytest.mark.parametrize(
    ("target", "name", "message"),
    [
        ("python", "class", "cannot name the model in Python"),
        ("javascript", "a-b", "cannot name the model in JavaScript"),
        ("javascript", "package", "cannot name the model in JavaScript: give another name"),
        ("javascript", "Math", "cannot name the model in JavaScript"),
        ("java", "new", "cannot name the model in Java"),
        ("java", "record", "cannot name the model in Java"),
        ("c", "1st", "cannot name the model in C"),
        ("vespa", "my model", "cannot name the model in Vespa"),
        ("solr", "a b", "cannot name a model of Solr"),
        ("elasticsearch", "_a", "cannot name a model here"),
        ("sql", "model\udcff", r"'model\\udcff' cannot name a model: give another name"),
        ("java", 5, "name must be text, got 5"),
        ("sql", "documents", "the view and the table are both called 'documents'"),
    ],
)
def test_names_of_models_that_cannot_be(ranker, target, name, message):
    with pytest.raises(OptionError, match=message):
        export(ranker, to=target, name=name)


def test_the_file_of_a_java_class_is_called_as_the_class(ranker, tmp_path):
    with pytest.raises(OptionError, match=r"called like its class: Ranker\.java"):
        export(ranker, tmp_path / "model.java", to="java", name="Ranker")
    assert "class Ranker {" in export(ranker, tmp_path / "Ranker.java", to="java").text


def test_a_class_of_java_has_an_end():
    with pytest.raises(OptionError, match="cannot hold the arrays of 5,001 features"):
        export(with_weights(np.ones(5001)), to="java")


def test_a_large_class_of_java_compiles(tmp_path):
    model = with_weights(
        np.linspace(-1, 1, 5000), StandardScaler().fit(np.random.default_rng(0).normal(size=(5, 5000)))
    )
    X = np.random.default_rng(1).normal(size=(4, 5000))
    # documents without zeros make the self-test as long as it can be
    found = scores_of("java", "java", export(model, to="java", X=X), X, np.zeros(4), tmp_path)
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-9)


def test_files_of_odd_names_stay_out_of_remarks(ranker, tmp_path):
    for target in ("python", "c", "sql"):
        path = tmp_path / '*/ """ x'
        path = tmp_path / 'x"""\n'
        text = export(ranker, path, to=target, name="model").text
        assert '"""\n\n' not in text.split("\n\n")[0]
        assert "model." in text


# ---- what engines refuse


def test_features_of_weight_0_are_left_out():
    model = with_weights([1.0, 0.0, -2.0], names=["a", "b", "c"])
    for target in LUCENE:
        result = export(model, to=target)
        assert "1 feature of weight 0 dropped: b." in result.notes
        assert '"b"' not in result.text
    assert "b" not in json.loads(export(model, to="elasticsearch").text)["request"]["model"]["model"]["definition"]
    result = export(with_weights([1.0, *[0.0] * 6]), to="sql")
    assert "6 features of weight 0 dropped: f2, f3, f4, f5, f6, ..." in result.notes
    for target in FORMATS:
        if target in (*LUCENE, "vespa", "sql"):
            with pytest.raises(OptionError, match="all weights of the model are 0"):
                export(with_weights([0.0, 0.0]), to=target)


@pytest.mark.parametrize("target", LUCENE)
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
def test_features_that_are_constant_in_float32_are_dropped(target, scaler):
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[:, 1] = 7.0
    X[:, 2] += 1e9
    model = with_weights([1.0, 0.5, 0.25], scaler.fit(X), names=["a", "b", "c"])
    result = export(model, to=target)
    (note,) = [note for note in result.notes if "constant" in note]
    assert note.startswith("dropped: c, constant in float32")
    assert result.features == ["a", "b", "c"]
    found = (solr if target == "solr" else elasticsearch)(result, X, np.zeros(50))
    expected = (X[:, 0] - X[0, 0]) / (scaler.scale_[0] if isinstance(scaler, StandardScaler) else 1 / scaler.scale_[0])
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-5)


@pytest.mark.parametrize("target", LUCENE)
@pytest.mark.parametrize("scaler", [None, StandardScaler(with_std=False)])
def test_large_features_that_differ_in_float32_are_kept(target, scaler):
    X = np.random.default_rng(0).uniform(0.0, 1e9, (50, 2))
    model = with_weights([-1e-9, 2e-9], None if scaler is None else scaler.fit(X))
    expected = X @ [-1e-9, 2e-9]
    for non_negative in (True, False):
        result = export(model, to=target, X=X, non_negative=non_negative)
        assert not any("constant" in note for note in result.notes)
        found = (solr if target == "solr" else elasticsearch)(result, X, np.zeros(50))
        np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("target", LUCENE)
def test_the_self_test_has_the_shift_of_the_engine(target):
    """The shortest text of a number of float32, such as 999998.56, is another number in float64."""
    X = 1e6 + np.random.default_rng(0).normal(size=(50, 2))
    result = export(with_weights([1.0, -0.5]), to=target, X=X, non_negative=True)
    tested = json.loads(result.text)["ranksvm"]["test"]
    documents = np.array([[test["features"][name] for name in result.features] for test in tested])
    found = (solr if target == "solr" else elasticsearch)(result, documents, np.zeros(3))
    np.testing.assert_allclose(found, [test["score"] for test in tested], rtol=1e-6)


def test_weights_beyond_float32():
    with pytest.raises(OptionError, match="weight of feature 'f1' is beyond the range of float32"):
        export(with_weights([1e39, 1.0]), to="solr")


@pytest.mark.parametrize("target", LUCENE)
@pytest.mark.parametrize("scaler", ["none", "standard", "min-max", "robust"])
def test_scores_that_are_not_negative(linear_cases, target, scaler):
    model, X, qid, expected = linear_cases[scaler]
    result = export(model, to=target, X=X, qid=qid, non_negative=True)
    evaluate = solr if target == "solr" else elasticsearch
    found = evaluate(result, X, qid)
    assert (found >= 0).all()
    # a document that no feature matches has zeros
    assert evaluate(result, np.zeros((1, X.shape[1])), None)[0] >= 0
    spread = np.abs(found).max()
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=0, atol=2e-6 * spread)
    offset = float(re.search(r"plus ([-\d.e+]+), in float32", result.text)[1])
    np.testing.assert_allclose(found - offset, expected, rtol=0, atol=2e-6 * (spread + np.abs(expected).max()))
    assert not any("negative" in note for note in result.notes)


def test_features_far_from_0_keep_their_digits(data):
    X = data.X + np.array([1e5, 0.0, 0.0, -1e5])
    scaler = StandardScaler().fit(X)
    model = Pipeline([("scaler", scaler), ("ranker", RankSVM(C=0.1).fit(scaler.transform(X), data.y, qid=data.qid))])
    X = X.astype(np.float32).astype(float)
    result = export(model, to="solr", X=X, non_negative=True)
    found, expected = solr(result, X, None), model.predict(X)
    assert (found >= 0).all()
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-5)
    assert "a document without f1, f4 may have a negative score" in result.notes[0]


def test_a_min_max_scaler_knows_its_ranges(linear_cases):
    model = linear_cases["min-max"].model
    assert json.loads(export(model, to="solr", non_negative=True).text)["features"]
    with pytest.raises(OptionError, match="non_negative needs the range of each feature: pass data as X"):
        export(linear_cases["standard"].model, to="solr", non_negative=True)


def test_only_lucene_needs_scores_that_are_not_negative(ranker, data):
    for target in FORMATS:
        if target not in LUCENE:
            with pytest.raises(OptionError, match="non_negative is for engines that refuse negative scores"):
                export(ranker, to=target, X=data.X, non_negative=True)
    assert any("negative" in note for note in export(ranker, to="elasticsearch").notes)


def test_names_that_a_format_cannot_use(ranker):
    for option in ("table", "query_column"):
        with pytest.raises(OptionError, match="table and query_column are names in SQL, and solr has none"):
            export(ranker, to="solr", **{option: "x"})
    with pytest.raises(OptionError, match="qid has the queries of the rows of X: give X"):
        export(ranker, to="sql", qid=[1, 1, 2])
    with pytest.raises(OptionError, match="and sql has none"):
        export(ranker, to="sql", store="features")
    for empty in ({"table": ""}, {"query_column": ""}):
        with pytest.raises(OptionError, match="must not be empty"):
            export(ranker, to="sql", **empty)


def test_steps_that_are_no_scalers(ranker, data):
    for step, message in [
        (MinMaxScaler(clip=True).fit(data.X), r"MinMaxScaler\(clip=True\) is not linear"),
        (FunctionTransformer().fit(data.X), "a FunctionTransformer before the ranker cannot be exported"),
    ]:
        with pytest.raises(OptionError, match=message):
            export(Pipeline([("step", step), ("ranker", ranker)]), to="solr")
    both = [("a", ranksvm.QueryMinMaxScaler().fit(data.X)), ("b", StandardScaler().fit(data.X)), ("ranker", ranker)]
    with pytest.raises(OptionError, match="a per-query scaler and another scaler"):
        export(Pipeline(both), to="python")


def test_scalers_after_each_other(ranker, data):
    first = StandardScaler().fit(data.X)
    second = MinMaxScaler().fit(first.transform(data.X))
    model = Pipeline([("a", first), ("none", "passthrough"), ("b", second), ("ranker", ranker)])
    found = solr(export(model, to="solr"), data.X, data.qid)
    np.testing.assert_allclose(found, model.predict(data.X), atol=1e-5)


def test_kernels_that_are_not_functions_of_features(data):
    precomputed = KernelRankSVM(kernel="precomputed", C=0.1).fit(data.X @ data.X.T, data.y, qid=data.qid)
    with pytest.raises(OptionError, match="scores documents by kernel values, not features"):
        export(precomputed, to="onnx")
    own = KernelRankSVM(kernel=lambda X, Z: X @ Z.T, C=0.1).fit(data.X, data.y, qid=data.qid)
    with pytest.raises(OptionError, match="a kernel that is a Python function cannot be exported"):
        export(own, to="onnx")


def test_onnx_needs_its_package(ranker, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ranksvm.exceptions.MissingDependencyError, match=r'pip install "ranksvm\[onnx\]"'):
        export(ranker, to="onnx")


# ---- self-tests


def test_documents_of_the_self_test_are_those_of_the_data(linear_cases):
    model, X, qid, expected = linear_cases["standard"]
    result = export(model, to="json", X=X, qid=qid)
    assert len(result.test.X) == 3
    assert all(any(np.array_equal(row, x) for x in X.astype(np.float32)) for row in result.test.X.astype(np.float32))
    np.testing.assert_allclose([result.test.scores.min(), result.test.scores.max()], [expected.min(), expected.max()])


def test_the_self_test_of_a_scaler_by_query_is_of_one_query(linear_cases):
    model, X, qid, _ = linear_cases["query-minmax"]
    result = export(model, to="json", X=X, qid=qid)
    np.testing.assert_allclose(result.test.X, X[:3], rtol=1e-7)
    with pytest.raises(DataError, match="no query of the data has 3 documents"):
        export(model, to="json", X=X[:4], qid=[1, 1, 2, 2])


@pytest.mark.parametrize(
    ("X", "message"), [(np.zeros((5, 3)), "X has 3 features"), (np.zeros((2, 4)), "data has 2 rows")]
)
def test_data_that_do_not_fit(ranker, X, message):
    with pytest.raises(DataError, match=message):
        export(ranker, to="solr", X=X)


def test_data_must_be_what_the_first_step_takes(data):
    ranker = AdditiveRankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    with config_context(enable_metadata_routing=True):
        scaled = make_pipeline(QueryMinMaxScaler(), AdditiveRankSVM(C=0.1)).fit(data.X, data.y, qid=data.qid)
    standard = make_pipeline(StandardScaler(), ranker)
    standard[0].fit(data.X)
    missing, infinite = data.X.copy(), data.X.copy()
    missing[3, 1], infinite[3, 1] = np.nan, np.inf
    with pytest.raises(DataError, match=r"NaN at X\[3, 1\]"):  # the scaler by query refuses what the ranker takes
        export(scaled, to="python", X=missing, qid=data.qid)
    export(standard, to="python", X=missing)
    for model, qid in [(scaled, data.qid), (standard, None)]:
        with pytest.raises(DataError, match=r"infinity at X\[3, 1\]"):
            export(model, to="python", X=infinite, qid=qid)


@pytest.mark.parametrize("scaler", ["standard", "min-max", "query-minmax", "none"])
@pytest.mark.parametrize("target", ["solr", "elasticsearch", "vespa", "json", "svm-rank", "liblinear", "libsvm"])
def test_self_tests_of_files_that_nothing_runs(linear_cases, target, scaler, tmp_path):
    model = linear_cases[scaler].model
    if scaler == "query-minmax" and target not in ("vespa", "json"):
        return
    result = export(model, to=target)
    X, expected = documents_of(result)
    runtime = next(runtime for name, runtime in RUNTIMES if name == target)
    found = scores_of(target, runtime, result, X, np.zeros(3), tmp_path)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * (1 + np.abs(expected).max()))


def documents_of(result):
    """The self-test of a file, read from it."""
    X = np.zeros((3, len(result.features)))
    if result.target in ("solr", "elasticsearch", "json"):
        document = json.loads(result.text)
        tests = document["test"]["documents"] if result.target == "json" else document["ranksvm"]["test"]
        for x, test in zip(X, tests, strict=True):
            for name, value in test["features"].items():
                x[result.features.index(name)] = value
        return X, np.array([test["score"] for test in tests])
    scores = []
    if result.target == "vespa":
        lines = [line.removeprefix("#   ") for line in result.text.splitlines() if " -> " in line]
        for x, line in zip(X, lines, strict=True):
            values, score = line.split(" -> ")
            for word in values.split(", "):
                name, value = word.split(" = ")
                x[int(re.fullmatch(r"attribute\(f(\d+)\)", name)[1]) - 1] = float(value)
            scores.append(float(score))
        return X, np.array(scores)
    lines = result.text.split("self-test: ")[1].strip().split("; ")
    for x, line in zip(X, lines, strict=True):
        values, score = line.split(" -> ")
        for word in values.split():
            number, value = word.split(":")
            x[int(number) - 1] = float(value)
        scores.append(float(score))
    return X, np.array(scores)


@pytest.mark.parametrize(
    ("target", "runtime"), [("python", "python"), ("javascript", "node"), ("java", "java"), ("c", "cc")]
)
def test_documents_of_the_self_test_that_are_all_zero(target, runtime, tmp_path):
    model, X = with_weights([0.5, -0.25]), np.zeros((3, 2))
    found = scores_of(target, runtime, export(model, to=target, X=X), X, np.zeros(3), tmp_path)
    assert found.tolist() == [0.0, 0.0, 0.0]


def test_documents_of_the_self_test_beyond_float32(tmp_path):
    model, X = with_weights([0.5, -0.25]), np.array([[1e300, 0.0], [0.0, 1e39], [-1e300, 1.0]])
    result = export(model, to="json", X=X)
    largest = np.finfo(np.float32).max
    assert result.test.X.tolist() == [[largest, 0.0], [0.0, largest], [-largest, 1.0]]
    np.testing.assert_allclose(result.test.scores, model.predict(result.test.X))


def test_a_wrong_score_fails_the_self_test(ranker, tmp_path):
    result = export(ranker, to="python")
    wrong = re.sub(r"expected = \[(-?)", r"expected = [1\1", result.text)
    path = tmp_path / "wrong.py"
    path.write_text(wrong)
    with pytest.raises(AssertionError):
        python(type(result)(result.target, wrong.encode(), result.features, [], result.test), None, None, tmp_path)


def test_a_misspelt_feature_is_refused(tmp_path):
    """It was scored as 0."""
    model = with_weights([1.0, -2.0], names=["bm25", "length"])
    path = tmp_path / "ranker.py"
    export(model, path, to="python")
    ranker = runpy.run_path(str(path))
    assert ranker["score"]({"bm25": 3.0}) == 3.0
    with pytest.raises(ValueError, match="the model has no feature 'bm52'"):
        ranker["score"]({"bm52": 3.0, "length": 1.0})
    node = need("node")
    path = tmp_path / "ranker.js"
    export(model, path, to="javascript")
    program = (
        f"const ranker = require({json.dumps(str(path))}); console.log(ranker.scores([JSON.parse(process.argv[1])]))"
    )
    assert subprocess.check_output([node, "-e", program, '{"bm25": 3}'], text=True) == "[ 3 ]\n"
    wrong = subprocess.run([node, "-e", program, '{"bm52": 3, "length": 1}'], capture_output=True, text=True)
    assert 'RangeError: the model has no feature "bm52"' in wrong.stderr


def test_a_document_may_be_a_map_of_javascript(tmp_path):
    """A Map was scored as 0."""
    path = tmp_path / "ranker.js"
    export(with_weights([1.0, -2.0], names=["bm25", "__proto__"]), path, to="javascript")
    program = (
        f"const {{ score }} = require({json.dumps(str(path))}); console.log(score(new Map([['bm25', 3], "
        "['__proto__', 1]])), score(JSON.parse('{\"bm25\": 3, \"__proto__\": 1}')))"
    )
    assert run(need("node"), "-e", program) == "1 1\n"


# ---- installation


class Recorder(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    def record(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.command, self.path, self.headers["Content-Type"], content))
        self.send_response(200)
        self.end_headers()

    do_PUT = do_POST = record  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with http.server.HTTPServer(("localhost", 0), Recorder) as running:
        running.requests = []
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()


@pytest.mark.parametrize(
    ("target", "port", "method", "path"),
    [
        ("solr", 8983, "PUT", "/solr/COLLECTION/schema/model-store"),
        ("elasticsearch", 9200, "POST", "/_ltr/_featureset/my%20features/_createmodel"),
        ("opensearch", 9200, "POST", "/_ltr/_featureset/my%20features/_createmodel"),
    ],
)
def test_the_line_that_installs_a_file(ranker, server, target, port, method, path, tmp_path):
    need("curl")
    file = tmp_path / "it is.json"
    result = export(ranker, file, to=target, store="my features", name="m")
    line = json.loads(result.text)["ranksvm"]["install"].replace("model.json", "'it is.json'")
    assert "localhost" in line
    if "jq" in line:
        need("jq")
    port_here = str(server.server_address[1])
    subprocess.run(
        ["sh", "-c", line.replace(f"localhost:{port}", f"localhost:{port_here}") + " --fail --noproxy '*' -s"],
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    ((sent, where, kind, content),) = server.requests
    assert (sent, where, kind) == (method, path, "application/json")
    document = json.loads(result.text)
    assert json.loads(content) == (document if target == "solr" else document["request"])


# ---- SQL


def test_features_of_sql_that_are_integers(data):
    model = with_weights([0.5, -0.25], StandardScaler().fit([[1.0, 2.0], [4.0, 9.0]]), names=["a", "b"])
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE "documents" ("qid" INTEGER, "a" INTEGER, "b" INTEGER)')
    connection.executemany('INSERT INTO "documents" VALUES (1, ?, ?)', [(1, 2), (3, 4), (7, 7)])
    connection.execute(sql_statements(export(model, to="sql"))[1])
    found = [score for (score,) in connection.execute('SELECT "score" FROM "ranksvm"')]
    np.testing.assert_allclose(found, model.predict(np.array([[1.0, 2], [3, 4], [7, 7]])))


def sqlite_rows(export, rows):
    """The results of the two tests of a file, run twice in SQLite over a table of rows (qid, f1, f2)."""
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE "documents" ("qid" INTEGER, "f1" REAL, "f2" REAL)')
    connection.executemany('INSERT INTO "documents" VALUES (?, ?, ?)', rows)
    connection.executescript(export.text)
    connection.executescript(export.text)
    return connection, sql_statements(export)[3]


@pytest.mark.parametrize("scaler", [None, QueryMinMaxScaler(), QueryStandardScaler()])
def test_a_file_of_sql_runs_again_and_its_test_reads_the_view(scaler):
    rows = [(1, 1.0, 2.0), (1, 3.0, 4.0), (1, 4.0, None), (2, 7.0, 7.0)]
    old, new = (export(with_weights(weights, scaler), to="sql") for weights in ([0.5, -0.25], [2.0, 1.0]))
    connection, test = sqlite_rows(old, rows)
    n_tested = 4 if scaler is None else 3
    n_null = 1 if scaler is None else 0
    assert connection.execute(test).fetchone() == (n_tested, n_null, 0)
    # the view is still the view of the old model
    n_different = {None: 3, "QueryMinMaxScaler": 2, "QueryStandardScaler": 3}[scaler and type(scaler).__name__]
    assert connection.execute(sql_statements(new)[3]).fetchone() == (n_tested, n_null, n_different)
    connection.executescript(new.text)
    assert connection.execute(sql_statements(new)[3]).fetchone() == (n_tested, n_null, 0)


def test_the_test_of_a_view_scales_features_again():
    # PostgreSQL refuses a test that reads the columns of the view in which features are scaled
    result = export(with_weights([0.5, -0.25], QueryStandardScaler(with_std=False)), to="sql")
    connection, test = sqlite_rows(result, [(1, 1.0, 7.0), (1, 3.0, 4.0), (1, 4.0, 9.0)])
    drop, view, *_ = sql_statements(result)
    connection.execute(drop)
    connection.execute(view.replace("1e0 * ", "2e0 * "))
    assert connection.execute(test).fetchone() == (3, 0, 3)


@pytest.mark.parametrize(
    ("scaler", "columns"),
    [
        (None, '"qid", "f1"'),
        *((QueryMinMaxScaler(), columns) for columns in ('"qid", "f1"', '"query", "f1", "f2"')),
        *((QueryStandardScaler(), columns) for columns in ('"qid", "f1"', '"query", "f1", "f2"')),
    ],
)
def test_sql_refuses_a_table_without_a_column(scaler, columns):
    """SQLite takes a quoted name for text, which counts as 0, if there is no such column and the name stands alone."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f'CREATE TABLE "documents" ({columns})')
    connection.execute(sql_statements(export(with_weights([0.5, -0.25], scaler), to="sql"))[1])
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        connection.execute('SELECT "score" FROM "ranksvm"')


@pytest.mark.parametrize(
    ("type_", "X"), [("INTEGER", [[-2e9, 1], [2e9, 3], [5, 7]]), ("FLOAT", [[0.1, 1], [3, 3], [1.7, 7]])]
)
def test_differences_of_columns_in_sql_are_float64(type_, X):
    connection = pytest.importorskip("duckdb", reason="duckdb is not installed").connect(":memory:")
    X = np.array(X, dtype=np.float32).astype(np.float64)
    connection.execute(f'CREATE TABLE "documents" ("qid" INTEGER, "f1" {type_}, "f2" {type_})')
    connection.executemany('INSERT INTO "documents" VALUES (1, ?, ?)', X.tolist())
    connection.execute(sql_statements(export(with_weights([0.5, -0.25], QueryMinMaxScaler()), to="sql"))[1])
    found = [score for (score,) in connection.execute('SELECT "score" FROM "ranksvm"').fetchall()]
    expected = QueryMinMaxScaler().fit(X).transform(X, qid=[1, 1, 1]) @ [0.5, -0.25]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_sql_has_no_rows_of_values(ranker):
    # which MySQL writes as VALUES ROW(...)
    assert "VALUES" not in export(ranker, to="sql").text


@pytest.mark.parametrize(
    ("table", "name", "quoted_table", "quoted_view"),
    [
        ("main.documents", "ranked", '"main"."documents"', '"ranked"'),
        ("main.documents", "main.ranked", '"main"."documents"', '"main"."ranked"'),
        ("main.documents", "temp.documents", '"main"."documents"', '"temp"."documents"'),
        ('main."documents.1"', '"a.b"', '"main"."documents.1"', '"a.b"'),
        ('"main"."do""c"', 'do"c 2', '"main"."do""c"', '"do""c 2"'),
    ],
)
@pytest.mark.parametrize("scaler", [None, QueryMinMaxScaler(), QueryStandardScaler()])
def test_tables_and_views_with_a_schema_in_sql(table, name, quoted_table, quoted_view, scaler):
    result = export(with_weights([0.5, -0.25], scaler), to="sql", table=table, name=name)
    connection = sqlite3.connect(":memory:")
    connection.execute(f'CREATE TABLE {quoted_table} ("qid" INTEGER, "f1" REAL, "f2" REAL)')
    connection.execute(f"INSERT INTO {quoted_table} VALUES (1, 1.0, 2.0), (1, 3.0, 7.0)")
    connection.executescript(result.text)
    connection.executescript(result.text)
    assert connection.execute(f"SELECT COUNT(*) FROM {quoted_view}").fetchone() == (2,)
    assert connection.execute(sql_statements(result)[3]).fetchone() == (2, 0, 0)


@pytest.mark.parametrize("table", ["public.", ".documents", "a..b", '"a', 'a."b', '"a"b'])
def test_names_of_tables_that_cannot_be(ranker, table):
    with pytest.raises(OptionError, match=r"cannot name a table or view in SQL: write NAME or SCHEMA\.NAME"):
        export(ranker, to="sql", table=table)
    with pytest.raises(OptionError, match="cannot name a table or view in SQL"):
        export(ranker, to="sql", name=table)


def test_many_features_in_sql():
    random = np.random.default_rng(0)
    model = with_weights(random.normal(size=1800))
    connection = sqlite3.connect(":memory:")
    columns = ", ".join(f'"f{j + 1}" REAL' for j in range(1800))
    connection.execute(f'CREATE TABLE "documents" ("qid" INTEGER, {columns})')
    X = random.normal(size=(3, 1800))
    connection.executemany(f'INSERT INTO "documents" VALUES (1{", ?" * 1800})', X.tolist())
    connection.execute(sql_statements(export(model, to="sql"))[1])
    found = [score for (score,) in connection.execute('SELECT "score" FROM "ranksvm"')]
    np.testing.assert_allclose(found, model.predict(X))


def test_the_column_of_queries_is_no_feature():
    with pytest.raises(OptionError, match="'qid' is the column of query ids and a feature"):
        export(with_weights([1.0, 2.0], names=["qid", "a"]), to="sql")
    with pytest.raises(OptionError, match="a feature is called 'score'"):
        export(with_weights([1.0, 2.0], names=["Score", "a"]), to="sql")
    with pytest.raises(OptionError, match="'QID' is the column of query ids and a feature"):
        export(with_weights([1.0, 2.0], names=["QID", "a"]), to="sql")


def test_columns_that_differ_only_in_case():
    """SQLite and DuckDB would read one column for both."""
    ranker = with_weights([1.0, 2.0, 3.0], names=["a", "Bm25", "bm25"])
    with pytest.raises(OptionError, match="SQLite, DuckDB and MySQL take 'Bm25' and 'bm25' for one column: rename one"):
        export(ranker, to="sql")
    assert '"bm25_b"' in export(ranker, to="sql", names={"bm25": "bm25_b"}).text
    assert '"bm25"' in export(with_weights([1.0, 0.0, 3.0], names=["a", "Bm25", "bm25"]), to="sql").text
    ranker = with_weights([1.0, 2.0, 3.0], names=["a", "É", "é"])
    X, qid = np.eye(3), np.zeros(3)
    for found in (sqlite(export(ranker, to="sql"), X, qid), duckdb(export(ranker, to="sql"), X, qid)):
        assert found.tolist() == [1.0, 2.0, 3.0]


def test_vespa_evaluates_many_features():
    model = with_weights(np.random.default_rng(0).normal(size=500))
    X = np.random.default_rng(1).normal(size=(4, 500))
    np.testing.assert_allclose(vespa(export(model, to="vespa"), X, np.zeros(4)), model.predict(X))


def test_the_formula_of_json_says_what_each_scaler_by_query_does():
    document = json.loads(export(with_weights([0.5, -0.25], QueryStandardScaler(with_mean=False)), to="json").text)
    assert not document["query_scaler"]["with_mean"]
    assert "1 where a feature is constant" in document["score"]
    assert "the mean counts as 0 if with_mean is false" in document["score"]
