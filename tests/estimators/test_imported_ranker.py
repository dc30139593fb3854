"""Linear models of other programs: files of SVM-rank, LIBLINEAR and LIBSVM, estimators of scikit-learn."""

import contextlib

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR

import ranksvm
from ranksvm import ImportedRanker, RankSVM, export, import_model, make_ranking
from ranksvm.estimators.base.summary import certificate_in_words
from ranksvm.exceptions import DataError, ModelFileError, OptionError

SVM_LIGHT = """SVM-light Version V6.20
0 # kernel type
3 # kernel parameter -d
1 # kernel parameter -g
1 # kernel parameter -s
1 # kernel parameter -r
empty# kernel parameter -u
5 # highest feature index
61 # number of training documents
3 # number of support vectors plus 1
0.25 # threshold b, each following line is a SV (starting with alpha*y)
2 1:-0.5 3:1e-1 # remark 1:7
-1 3:1 4:0.25
"""
LIBLINEAR = """solver_type L2R_L2LOSS_SVC_DUAL
nr_class 2
label 1 -1
nr_feature 3
bias 1
w
0.5
-1.25
0
7
"""
GBLINEAR = """{"learner": {"feature_names": ["bm25", "links", "age"], "feature_types": [], "gradient_booster": {"model":
{"boosted_rounds": 5, "weights": [0.5, -1.25, 2.0, 1e-8]}, "name": "gblinear"}, "learner_model_param": {"base_score":
"[0E0]", "num_class": "0", "num_feature": "3", "num_target": "1"}}, "version": [3, 2, 0]}"""
LIBSVM = """svm_type c_svc
kernel_type linear
nr_class 2
total_sv 2
rho 0.5
label 1 -1
nr_sv 1 1
SV
0.5 1:1 3:-2
-0.5 2:1
"""


@pytest.fixture(scope="module")
def data():
    made = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    made.X = made.X.astype(np.float64)
    return made


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "model"
        path.write_text(text)
        return path

    return write


def test_svm_rank(file):
    ranker = import_model(file(SVM_LIGHT))
    assert ranker.source == "SVM-light Version V6.20"
    np.testing.assert_allclose(ranker.coef_, [-1.0, 0.0, -0.8, -0.25])
    assert ranker.n_features_in_ == 4
    assert import_model(file(SVM_LIGHT), n_features=6).coef_.shape == (6,)
    with pytest.raises(ModelFileError, match="the model has a feature 4, but 3 features were asked for"):
        import_model(file(SVM_LIGHT), n_features=3)


def test_liblinear(file):
    ranker = import_model(file(LIBLINEAR), format="liblinear", names=["a", "b", "c"])
    assert ranker.source == "LIBLINEAR L2R_L2LOSS_SVC_DUAL"
    np.testing.assert_array_equal(ranker.coef_, [0.5, -1.25, 0.0])
    assert ranker.coef_table()["feature"].tolist() == ["b", "a", "c"]
    # the first label has positive values
    reversed_ = import_model(file(LIBLINEAR.replace("label 1 -1", "label -1 1")))
    np.testing.assert_array_equal(reversed_.coef_, [-0.5, 1.25, 0.0])
    assert import_model(file(LIBLINEAR), n_features=4).coef_.tolist() == [0.5, -1.25, 0.0, 0.0]


def test_libsvm(file):
    ranker = import_model(file(LIBSVM))
    assert ranker.source == "LIBSVM c_svc"
    np.testing.assert_array_equal(ranker.coef_, [0.5, -0.5, -1.0])


def test_gblinear(file):
    ranker = import_model(file(GBLINEAR))
    assert ranker.source == "XGBoost gblinear"
    assert ranker.coef_.tolist() == [0.5, -1.25, 2.0]
    assert ranker.feature_names_in_.tolist() == ["bm25", "links", "age"]
    assert import_model(file(GBLINEAR.replace('["bm25", "links", "age"]', "[]")), n_features=4).coef_[3] == 0.0
    with pytest.raises(ModelFileError, match="it has 3 features, more than the 2 asked for"):
        import_model(file(GBLINEAR), n_features=2)


def test_boosters_of_xgboost(data, tmp_path):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    linear = xgboost.XGBRanker(booster="gblinear", n_estimators=5).fit(data.X, data.y.astype(int), qid=data.qid)
    linear.save_model(tmp_path / "model.json")
    expected = linear.predict(data.X)
    for source in (linear, linear.get_booster(), tmp_path / "model.json"):
        ranker = import_model(source)
        assert ranker.source == "XGBoost gblinear"
        difference = ranker.predict(data.X) - expected
        np.testing.assert_allclose(difference, difference[0], atol=1e-5)
    linear.save_model(tmp_path / "model.ubj")
    with pytest.raises(ModelFileError, match="in its binary form"):
        import_model(tmp_path / "model.ubj")
    trees = xgboost.XGBRanker(n_estimators=2).fit(data.X, data.y.astype(int), qid=data.qid)
    with pytest.raises(ModelFileError, match="XGBRanker: its booster is gbtree"):
        import_model(trees)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "by its first line this is not a model file of SVM-rank"),
        ("1 qid:1 1:0.5\n", "by its first line this is not a model file"),
        (SVM_LIGHT.replace("0 # kernel type", "2 # kernel type"), "model:2: kernel type '2': only linear models"),
        ("\n".join(SVM_LIGHT.splitlines()[:5]), "the file ends within the settings"),
        ("\n".join(SVM_LIGHT.splitlines()[:12]), "1 support vectors, but line 10 says 2: is it truncated"),
        (SVM_LIGHT.replace("3:1e-1", "3:x"), "model:12: 'x' is not a number"),
        (SVM_LIGHT.replace("3:1e-1", "3:nan"), "model:12: 'nan' is not finite"),
        (SVM_LIGHT.replace("3:1e-1", "99999999999:1"), "it has a feature 99999999999. If the file is not damaged"),
        (SVM_LIGHT.replace("3:1e-1", "3:1_0"), "model:12: '1_0' is not a number"),
        (SVM_LIGHT.replace("3:1e-1", "3:1e308 3:1e308"), "the weight of feature 3 overflows"),
        (SVM_LIGHT.replace("3:1e-1", "9" * 5000 + ":1"), "model:12: expected ID:VALUE with an id from 1, got '9999"),
        (LIBLINEAR.replace("nr_feature 3", "nr_feature 2.5"), "nr_feature is 2.5, which is not a whole number"),
        (SVM_LIGHT.replace("3:1e-1", "0:1"), "model:12: expected ID:VALUE with an id from 1, got '0:1'"),
        (LIBLINEAR.replace("nr_class 2", "nr_class 3"), "a model of 3 classes is not a ranking model"),
        (LIBLINEAR[:-5], "weights, but 4 were announced: is it truncated"),
        (LIBLINEAR.replace("\nw\n", "\n"), "it has no line 'w'"),
        (LIBLINEAR.replace("0.5", "0.5 0.25"), "model:7: expected one weight, got '0.5 0.25'"),
        (LIBLINEAR.replace("nr_feature 3", "nr_feature x"), "'x' is not a number"),
        (LIBLINEAR.replace("nr_feature 3", "nr_feature -2"), "is it truncated"),
        (LIBSVM.replace("linear", "rbf"), "the kernel is 'rbf': only linear models can be imported"),
        (LIBSVM.replace("total_sv 2", "total_sv 3"), "2 support vectors, but total_sv is 3"),
        (LIBSVM.replace("\nSV\n", "\n"), "it has no line 'SV'"),
        (GBLINEAR.replace("gblinear", "gbtree"), "its booster is gbtree, which is not linear: only gblinear is"),
        (
            GBLINEAR.replace('"num_feature": "3"', '"num_feature": "2"'),
            "4 weights and 3 names for 2 features and a bias",
        ),
        (GBLINEAR.replace('"num_class": "0"', '"num_class": "4"'), "it has 4 outputs, and a ranking needs one score"),
        (GBLINEAR.replace("0.5", "NaN"), "is it damaged"),
        (GBLINEAR.replace("0.5", "[]"), "it is damaged, or not a model of XGBoost"),
        (GBLINEAR[:-9], r"it is damaged, or not a model of XGBoost \(JSONDecodeError"),
        ('{"learner": ' * 100_000, r"it is damaged, or not a model of XGBoost \(RecursionError"),
        ("{L\0\0", r"in its binary form: write it as JSON \(booster.save_model"),
    ],
)
def test_files_that_are_damaged_or_of_another_kind(file, text, message):
    with pytest.raises(ModelFileError, match=message):
        import_model(file(text))


def test_remarks_in_another_encoding(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(SVM_LIGHT.encode() + "# modèle".encode("latin-1"))
    np.testing.assert_array_equal(import_model(path).coef_, [-1.0, 0.0, -0.8, -0.25])


def test_the_format_that_was_named(file):
    with pytest.raises(ModelFileError, match="by its first line this is not a model file of libsvm"):
        import_model(file(LIBLINEAR), format="libsvm")
    with pytest.raises(OptionError, match="format must be 'auto' or one of"):
        import_model(file(LIBLINEAR), format="onnx")
    with pytest.raises(OptionError, match="n_features must be a whole number from 1, got 0"):
        import_model(file(LIBLINEAR), n_features=0)


def test_a_file_of_any_bytes(tmp_path):
    random = np.random.default_rng(0)
    for text in (SVM_LIGHT, LIBLINEAR, LIBSVM, GBLINEAR):
        for _ in range(200):
            content = bytearray(text.encode())
            for _ in range(random.integers(1, 4)):
                content[random.integers(len(content))] = random.integers(256)
            path = tmp_path / "changed"
            path.write_bytes(bytes(content[: random.integers(1, len(content) + 1)]))
            with contextlib.suppress(ModelFileError):
                assert np.isfinite(import_model(path).coef_).all()


def test_what_we_export_comes_back(data, tmp_path):
    scaler = StandardScaler().fit(data.X)
    ranker = RankSVM(C=0.1).fit(scaler.transform(data.X), data.y, qid=data.qid)
    model = make_pipeline(scaler, ranker)
    for target in ("svm-rank", "liblinear", "libsvm"):
        export(model, tmp_path / "model", to=target)
        back = import_model(tmp_path / "model")
        difference = back.predict(data.X) - model.predict(data.X)
        np.testing.assert_allclose(difference, difference[0], atol=1e-12)


def test_liblinear_itself(data, tmp_path):
    module = pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")
    labels = np.where(data.y > np.median(data.y), 1, -1)
    for order in (slice(None), slice(None, None, -1)):  # the first label of the data comes first in the file
        for options in ("-s 1 -q", "-s 2 -B 1 -q", "-s 11 -q"):
            model = module.train(labels[order], data.X[order], options)
            module.save_model(str(tmp_path / "model"), model)
            _, _, values = module.predict(np.zeros(len(data.X)), data.X, model, "-q")
            values = np.ravel(values) * (-1 if "label -1" in (tmp_path / "model").read_text() else 1)
            difference = import_model(tmp_path / "model").predict(data.X) - values
            np.testing.assert_allclose(difference, difference[0], atol=1e-9)


def test_libsvm_itself(data, tmp_path):
    module = pytest.importorskip("libsvm.svmutil", reason="libsvm-official is not installed")
    labels = np.where(data.y > np.median(data.y), 1, -1)
    for order in (slice(None), slice(None, None, -1)):
        for options in ("-t 0 -q", "-t 0 -s 3 -q"):
            model = module.svm_train(labels[order], data.X[order], options)
            module.svm_save_model(str(tmp_path / "model"), model)
            _, _, values = module.svm_predict(np.zeros(len(data.X)), data.X, model, "-q")
            values = np.ravel(values) * (-1 if "label -1" in (tmp_path / "model").read_text() else 1)
            difference = import_model(tmp_path / "model").predict(data.X) - values
            np.testing.assert_allclose(difference, difference[0], atol=1e-5)  # it writes 8 digits


@pytest.mark.parametrize("dataset", ["MQ2008", "OHSUMED"])
def test_published_models_of_svm_rank(shared_data, dataset):
    folder = shared_data / "reference-svm_rank" / "data" / {"MQ2008": "Mq2008"}.get(dataset, dataset) / "Fold1"
    data = ranksvm.datasets.read_data(next((shared_data / dataset / "Fold1").glob("test*")))
    ranker = import_model(folder / "final_model", n_features=data.n_features)
    published = np.loadtxt(folder / "test_score")
    np.testing.assert_allclose(ranker.predict(data.X), published, atol=2e-6 * (1 + np.abs(published).max()))


# ---- scikit-learn


@pytest.mark.parametrize(
    "estimator",
    [
        LinearRegression(),
        Ridge(),
        LinearSVR(),
        LogisticRegression(),
        LinearSVC(),
        SGDClassifier(),
        SVC(kernel="linear"),
    ],
)
def test_estimators(data, estimator):
    labels = data.y > np.median(data.y)
    estimator = clone(estimator).fit(data.X, labels)
    ranker = import_model(estimator)
    values = getattr(estimator, "decision_function", estimator.predict)(data.X)
    difference = ranker.predict(data.X) - values
    np.testing.assert_allclose(difference, difference[0], atol=1e-9)
    assert ranker.source == f"scikit-learn {type(estimator).__name__}"


def test_pipelines_and_names(data):
    import pandas

    frame = pandas.DataFrame(data.X, columns=["a", "b", "c", "d"])
    model = import_model(make_pipeline(StandardScaler(), Ridge()).fit(frame, data.y), names={"b": "bm25"})
    assert isinstance(model.steps[-1][1], ImportedRanker)
    assert export(model, to="solr").features == ["a", "bm25", "c", "d"]
    named = import_model(Ridge().fit(frame, data.y))
    np.testing.assert_array_equal(named.feature_names_in_, ["a", "b", "c", "d"])


def test_weights():
    ranker = import_model([1.0, -2.0])
    assert ranker.predict([[1.0, 1.0], [3.0, 1.0]]).tolist() == [-1.0, 1.0]
    assert ranker.source == "weights"


def test_what_is_no_linear_model(data):
    with pytest.raises(OptionError, match=r"one weight for each feature is needed, but Ridge has .* \(2, 4\)"):
        import_model(Ridge().fit(data.X, np.column_stack([data.y, data.y])))
    with pytest.raises(OptionError, match="a fitted linear model is needed, one with coef_, got Ridge"):
        import_model(Ridge())
    with pytest.raises(OptionError, match="got SVC"):
        import_model(SVC().fit(data.X, data.y > 1))
    with pytest.raises(OptionError, match="format and n_features are for files"):
        import_model(Ridge().fit(data.X, data.y), format="liblinear")
    with pytest.raises(DataError, match="weight that is not finite"):
        import_model([np.nan, 1.0])
    for wrong in ({"a": 1.0}, None, 5):
        with pytest.raises(OptionError, match=f"an array of weights is needed, got {type(wrong).__name__}"):
            import_model(wrong)


# ---- what an imported model can do


def test_everything_that_a_ranker_can(data, tmp_path):
    import pandas

    ranker = import_model([0.5, 0.0, -1.0, 0.25], names=["a", "b", "c", "d"])
    X = pandas.DataFrame(data.X, columns=["a", "b", "c", "d"])
    assert ranker.rank(X, data.qid).keys() == dict.fromkeys(data.qid).keys()
    assert 0 < ranker.score(X, data.y, qid=data.qid) <= 1
    with pytest.raises(DataError, match="called without qid, but this model may"):
        ranker.score(X, data.y)
    assert ranker.explain(X, data.qid).pair(0, 1).contributions.shape == (3,)  # of weights that are not 0
    assert ranker.feature_importance(X, data.qid).shape == (4,)
    assert export(ranker, to="solr").features == ["a", "b", "c", "d"]
    ranker.save(tmp_path / "model.rsvm")
    back = ranksvm.load(tmp_path / "model.rsvm")
    assert back.source == "weights"
    np.testing.assert_array_equal(back.coef_, ranker.coef_)
    np.testing.assert_array_equal(back.feature_names_in_, ranker.feature_names_in_)
    assert "fitted by" in ranker._repr_html_()
    assert certificate_in_words(ranker).startswith("The model was fitted by another program (weights)")
    assert repr(ranker) == "ImportedRanker(source='weights')"
    piped = import_model(make_pipeline(StandardScaler(), Ridge()).fit(data.X, data.y))
    ranksvm.save(piped, tmp_path / "piped.rsvm")
    np.testing.assert_array_equal(ranksvm.load(tmp_path / "piped.rsvm").predict(data.X), piped.predict(data.X))


def test_it_cannot_be_fitted(data):
    with pytest.raises(OptionError, match="was fitted elsewhere"):
        import_model([1.0]).fit(data.X, data.y)
    with pytest.raises(Exception, match="not fitted"):
        ImportedRanker().predict(data.X)
