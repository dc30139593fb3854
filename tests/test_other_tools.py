"""docs/other_tools.md: the code of each section runs where the tool is installed, and does what the page says."""

import re
from importlib.util import find_spec

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ranksvm
from code_tables import DOCS
from ranksvm import analysis, make_ranking, skops_types
from ranksvm.exceptions import MissingDependencyError

DATA = make_ranking(n_queries=12, n_docs=6, n_features=3, random_state=0)


def sections():
    """The code before the first heading, and the code of each section by the first word of its heading."""
    text = (DOCS / "other_tools.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (\w+)", text, flags=re.M)
    codes = ["\n".join(re.findall(r"^```python\n(.*?)^```", part, re.S | re.M)) for part in parts[::2]]
    return codes[0], dict(zip(parts[1::2], codes[1:], strict=True))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the code of a section in an empty folder; returns its names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")

    def run(section):
        names = {}
        first, others = sections()
        exec(compile(first + others[section], f"other_tools.md, {section}", "exec"), names)
        return names

    return run


def installed(*modules):
    for module in modules:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_mlflow(run, monkeypatch, tmp_path):
    installed("mlflow", "skops")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'tracking.db'}")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    found = run("MLflow")
    np.testing.assert_array_equal(found["served"].predict(found["valid"].X), found["scores"])
    assert found["logged"].signature is not None


def test_skops(run):
    installed("skops")
    run("skops")


def test_optuna(run):
    installed("optuna")
    found = run("Optuna")
    assert len(found["study"].trials) == 10
    assert found["study"].best_params["C"] == found["best"].C


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_shap(run):
    installed("shap")
    found = run("SHAP")
    explanation = found["explanation"]
    np.testing.assert_allclose(explanation.values.sum(axis=1) + explanation.base_values, found["scores"])
    assert explanation.feature_names == ["f1", "f2", "f3", "f4", "f5"]
    np.testing.assert_array_equal(explanation.data, found["valid"].X)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_pyterrier(run):
    installed("pyterrier")
    found = run("PyTerrier")
    scored = found["pipeline"].transform(found["topics"]).sort_index()
    np.testing.assert_allclose(scored["score"], found["ranker"].predict(found["train"].X), atol=1e-12)


def test_ir_measures(run):
    installed("ir_measures")
    found = run("ir_datasets")
    theirs = {str(measure): value for measure, value in found["theirs"].items()}
    assert {name: found["ours"][name] for name in theirs} == pytest.approx(theirs)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_feast(run):
    installed("feast")
    found = run("Feast")
    expected = ranksvm.RankSVM(C=0.01).fit(found["train"].X.astype(float), found["train"].y, qid=found["train"].qid)
    np.testing.assert_allclose(found["ranker"].coef_, expected.coef_, atol=1e-4)
    scores = found["ranked"].set_index("document")["score"]
    np.testing.assert_allclose(
        scores[[f"d{row}" for row in range(20)]], found["ranker"].predict(found["train"].X[:20].astype(float))
    )


MODELS = [
    ranksvm.RankSVM(C=0.01, monotone=[1, 0, 0]),
    ranksvm.RankSVM(C=0.01, loss="logistic"),
    ranksvm.RankSVMCV(cv=ranksvm.QueryKFold(3)),
    ranksvm.RankSVMCV(cv=ranksvm.QueryShuffleSplit(2, random_state=0)),
    ranksvm.KernelRankSVM(C=0.01),
    ranksvm.KernelRankSVMCV(Cs=[0.01], cv=3),
    ranksvm.AdditiveRankSVM(C=0.01, interactions=2),
    ranksvm.AdditiveRankSVMCV(Cs=[0.01], cv=3),
    ranksvm.FactorizedRankSVM(C=0.01, max_epochs=3, random_state=np.random.RandomState(0)),
    ranksvm.RegularizedRankSVM(C=0.01),
    ranksvm.SOLARRanker(),
    ranksvm.PRanker(),
    ranksvm.PairwisePerceptronRanker(),
    ranksvm.PerceptronCommitteeRanker(),
    ranksvm.import_model(Ridge().fit(DATA.X, DATA.y)),
    ranksvm.QueryMinMaxScaler(),
    ranksvm.QueryStandardScaler(),
    ranksvm.RetrieverScaler(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_skops_loads_what_its_list_trusts(model):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    model = sklearn.base.clone(model) if not isinstance(model, ranksvm.ImportedRanker) else model
    X, y, qid = DATA.X, DATA.y.astype(int), DATA.qid
    if hasattr(model, "transform"):
        loaded = io.loads(io.dumps(model.fit(X)), trusted=skops_types())
        np.testing.assert_array_equal(loaded.transform(X, qid=qid), model.transform(X, qid=qid))
        return
    if not isinstance(model, ranksvm.ImportedRanker):
        model.fit(X, y, qid=qid)
    loaded = io.loads(io.dumps(model), trusted=skops_types())
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.get_params().keys() == model.get_params().keys()


def test_the_list_has_all_models_of_this_file():
    splitters = {"QueryKFold", "QueryShuffleSplit"}
    assert splitters | {type(model).__name__ for model in MODELS} == {name.rpartition(".")[2] for name in skops_types()}


def test_a_pipeline_is_explained_to_shap_and_sparse_rows_are(monkeypatch):
    pytest.importorskip("shap", reason="shap is not installed")
    from scipy import sparse

    pipeline = make_pipeline(StandardScaler(), ranksvm.RankSVM(C=0.01))
    pipeline.fit(DATA.X, DATA.y, ranksvm__qid=DATA.qid)
    explanation = analysis.explain(pipeline, DATA.X, DATA.qid)
    found = explanation.to_shap()
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, pipeline.predict(DATA.X))
    plain = ranksvm.RankSVM(C=0.01).fit(DATA.X, DATA.y, qid=DATA.qid)
    dense, csr = (plain.explain(X, DATA.qid).to_shap() for X in (DATA.X, sparse.csr_matrix(DATA.X)))
    np.testing.assert_allclose(csr.values, dense.values, atol=1e-12)
    np.testing.assert_array_equal(csr.data, dense.data)


def test_additive_models_go_to_shap_with_their_interactions():
    pytest.importorskip("shap", reason="shap is not installed")
    model = ranksvm.AdditiveRankSVM(C=0.01, interactions=[(0, 1)]).fit(DATA.X, DATA.y, qid=DATA.qid)
    for found in (model.explain(DATA.X, DATA.qid).to_shap(), model.contributions(DATA.X).to_shap()):
        np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, model.predict(DATA.X), atol=1e-12)
        assert found.feature_names == ["f1", "f2", "f3", "f1 x f2"]
        np.testing.assert_array_equal(found.data[:, :3], DATA.X)
        assert np.isnan(found.data[:, 3]).all()


def test_without_shap_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "shap", None)
    model = ranksvm.RankSVM(C=0.01).fit(DATA.X, DATA.y, qid=DATA.qid)
    with pytest.raises(MissingDependencyError, match="pip install shap"):
        model.explain(DATA.X, DATA.qid).to_shap()
