"""``ranksvm export`` and ``ranksvm import``."""

import json
import sqlite3

import joblib
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ranksvm as package
from export_runtimes import RUNTIMES, elasticsearch, scores_of, solr
from ranksvm.cli.commands.import_model import FORMATS as IMPORTED
from ranksvm.estimators.imported_ranker import IMPORT_FORMATS
from ranksvm.exporting.registry import DESCRIPTIONS, FORMATS, target_of


class Written:
    """What a command wrote, as the runtimes take an export."""

    def __init__(self, path, features):
        self.content = path.read_bytes()
        self.features = features

    @property
    def text(self):
        return self.content.decode()


def test_formats_are_those_of_the_api(ranksvm):
    assert list(IMPORT_FORMATS) == IMPORTED
    assert [target_of(name).name for name in FORMATS] == list(FORMATS)
    shown = " ".join(ranksvm("export", "--help").stdout.split())
    for description, names in DESCRIPTIONS.items():
        assert f"{', '.join(names)} {description}" in shown


@pytest.fixture(scope="module")
def scaled_model(folder):
    from command_runner import command_runner
    from ranksvm.cli import main

    path = folder / "scaled.rsvm"
    arguments = ["train", str(folder / "train.txt"), "--scaler", "query-minmax", "-o", str(path), "--quiet"]
    assert command_runner().invoke(main, arguments).exit_code == 0
    return path


# exporting/test_hybrid.py tests the formats for hybrid search
@pytest.mark.parametrize("target", [target for target in FORMATS if target != "xgboost" and "-hybrid" not in target])
def test_a_model_in_every_format(ranksvm, folder, model, target, tmp_path):
    if target == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed")
    path = tmp_path / f"exported{target_of(target).suffix}"
    result = ranksvm("export", model, "--to", target, "-o", path)
    assert result.stdout == ""
    assert f"Wrote {path}: {target}, 5 features" in result.stderr
    data = package.datasets.read_data(folder / "test.txt")
    X = np.asarray(data.X, dtype=np.float64)
    runtime = next(runtime for name, runtime in RUNTIMES if name == target)
    (tmp_path / "run").mkdir()
    found = scores_of(target, runtime, Written(path, [f"f{j}" for j in range(1, 6)]), X, data.qid, tmp_path / "run")
    np.testing.assert_allclose(found, package.load(model).predict(data.X), atol=1e-5)


def test_text_goes_to_stdout_by_default(ranksvm, model, tmp_path):
    result = ranksvm("export", model, "--to", "solr")
    assert json.loads(result.stdout)["name"] == "model"
    ranksvm("export", model, "--to", "solr", "-o", tmp_path / "model.json")
    assert (tmp_path / "model.json").read_text() == result.stdout
    assert "give -o FILE" in ranksvm("export", model, "--to", "onnx", code=2).stderr


def test_json(ranksvm_json, model, tmp_path):
    document = ranksvm_json("export", model, "--to", "sql")
    assert document["output"] is None
    assert document["features"] == ["f1", "f2", "f3", "f4", "f5"]
    assert "CREATE VIEW" in document["content"]
    assert len(document["test"]) == 3
    document = ranksvm_json("export", model, "--to", "sql", "-o", tmp_path / "model.sql")
    assert document["content"] is None


def test_names_and_scores_that_are_not_negative(ranksvm, folder, model, tmp_path):
    names = tmp_path / "names.tsv"
    names.write_text("# ours\ttheirs\nf1\tbm25 of title\n\nf3\tage\n")
    path = tmp_path / "model.json"
    result = ranksvm(
        *("export", model, "--to", "elasticsearch", "--names", names, "--data", folder / "train.txt"),
        *("--non-negative", "--store", "my features", "--name", "m1", "-o", path),
    )
    assert "Warning" not in result.stderr
    written = Written(path, ["bm25 of title", "f2", "age", "f4", "f5"])
    data = package.datasets.read_data(folder / "train.txt")
    found = elasticsearch(written, np.asarray(data.X, dtype=np.float64), None)
    expected = package.load(model).predict(data.X)
    assert (found >= 0).all()
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-5)
    assert "my%20features" in written.text
    assert json.loads(written.text)["request"]["model"]["name"] == "m1"


def test_notes_are_warnings(ranksvm, model):
    assert (
        "Warning: scores can be negative, which Lucene refuses" in ranksvm("export", model, "--to", "opensearch").stderr
    )


def test_names_in_other_forms(ranksvm_json, ranksvm, model, tmp_path):
    for text in (
        '["a", "b", "c", "d", "e"]',
        '{"f1": "a", "f2": "b", "f3": "c", "f4": "d", "f5": "e"}',
        "a\nb\nc\nd\ne\n",
    ):
        path = tmp_path / "names"
        path.write_text(text)
        assert ranksvm_json("export", model, "--to", "json", "--names", path)["features"] == ["a", "b", "c", "d", "e"]
    path.write_text("f1 a\nf2\n")
    assert (
        "the line 'f2' has one name, others have two"
        in ranksvm("export", model, "--to", "json", "--names", path, code=1).stderr
    )
    path.write_text("[1,")
    assert "not a list or an object of JSON" in ranksvm("export", model, "--to", "json", "--names", path, code=1).stderr


def test_a_scaler_by_query(ranksvm, folder, scaled_model, tmp_path):
    result = ranksvm("export", scaled_model, "--to", "solr", code=2)
    assert "the model scales features by query (QueryMinMaxScaler), which solr cannot do: it scores one document" in (
        result.stderr
    )
    path = tmp_path / "model.sql"
    ranksvm("export", scaled_model, "--to", "sql", "--table", "rows", "--query-column", "query", "-o", path)
    assert 'FROM "rows"' in path.read_text()
    assert 'PARTITION BY "rows"."query"' in path.read_text()
    statements = path.read_text().split(";\n\n")
    assert sqlite3.connect(":memory:").execute(statements[2]).fetchall()


def test_a_model_with_names(ranksvm, ranksvm_json, folder, tmp_path):
    pytest.importorskip("pyarrow")
    data = package.datasets.read_data(folder / "train.txt")
    data.feature_names = ["bm25", "age", "links", "clicks", "length"]
    for name in ("train.csv", "train.rsd"):
        package.datasets.write_data(data, tmp_path / name)
    ranksvm("train", tmp_path / "train.csv", "-o", tmp_path / "named.rsvm")
    arguments = "export", tmp_path / "named.rsvm", "--to", "json"
    assert ranksvm_json(*arguments, "--data", tmp_path / "train.rsd")["features"] == data.feature_names
    result = ranksvm(*arguments, "--data", folder / "train.txt")
    assert "features are matched by position" in result.stderr
    assert "valid feature names" not in result.stderr


# ---- import


def test_a_value_that_is_not_finite_is_named_as_in_its_file(ranksvm, folder, model, tmp_path):
    pd, part = pytest.importorskip("pandas"), tmp_path / "part.csv"
    data = package.datasets.read_data(folder / "train.txt")
    frame = pd.DataFrame(np.array(data.X, dtype=float)).add_prefix("x").assign(label=data.y, qid=data.qid)
    frame.loc[7, "x1"] = np.inf
    frame.to_csv(part, index=False)
    stderr = ranksvm("export", model, "--to", "json", "--data", part, code=1).stderr
    assert f"{part}: Input X contains infinity at X[7, 1] (feature x1)" in stderr


def test_a_file_of_svm_rank_there_and_back(ranksvm, ranksvm_json, folder, model, tmp_path):
    ranksvm("export", model, "--to", "svm-rank", "-o", tmp_path / "model.dat")
    document = ranksvm_json("import", tmp_path / "model.dat", "-o", tmp_path / "back.rsvm")
    assert (document["source"], document["features"]) == ("SVM-light Version V6.20", 5)
    for path in (model, tmp_path / "back.rsvm"):
        ranksvm("predict", path, folder / "test.txt", "-o", path.with_suffix(".scores"))
    first, second = (np.loadtxt(path.with_suffix(".scores")) for path in (model, tmp_path / "back.rsvm"))
    np.testing.assert_allclose(first, second, rtol=1e-12)
    assert "SVM-light Version V6.20" in ranksvm("info", tmp_path / "back.rsvm").stdout
    assert "contribution" in ranksvm("explain", tmp_path / "back.rsvm", folder / "test.txt").stdout
    assert "ndcg@10" in ranksvm("evaluate", folder / "test.txt", "-m", tmp_path / "back.rsvm").stdout


def test_a_model_of_scikit_learn(ranksvm, folder, tmp_path):
    data = package.datasets.read_data(folder / "train.txt")
    X = np.asarray(data.X, dtype=np.float64)
    estimator = make_pipeline(StandardScaler(), Ridge()).fit(X, data.y)
    joblib.dump(estimator, tmp_path / "ridge.joblib")
    (tmp_path / "names").write_text("a\nb\nc\nd\ne\n")
    result = ranksvm(
        *("import", tmp_path / "ridge.joblib", "--from", "sklearn", "--names", tmp_path / "names"),
        *("-o", tmp_path / "ridge.rsvm"),
    )
    assert "scikit-learn Ridge, 5 features" in result.stderr
    ranksvm("export", tmp_path / "ridge.rsvm", "--to", "solr", "-o", tmp_path / "ridge.json")
    found, expected = solr(Written(tmp_path / "ridge.json", list("abcde")), X, None), estimator.predict(X)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-5)


def test_files_that_cannot_be_imported(ranksvm, folder, tmp_path):
    out = tmp_path / "out.rsvm"
    assert "first line this is not a model file" in ranksvm("import", folder / "test.txt", "-o", out, code=1).stderr
    result = ranksvm("import", folder / "test.txt", "--from", "sklearn", "-o", out, code=1)
    assert "joblib cannot read it" in result.stderr
    joblib.dump([1, 2], tmp_path / "list")
    assert ranksvm("import", tmp_path / "list", "--from", "sklearn", "-o", out).stderr
    joblib.dump({"a": 1}, tmp_path / "dict")
    assert ranksvm("import", tmp_path / "dict", "--from", "sklearn", "-o", out, code=2).stderr
    result = ranksvm("import", tmp_path / "list", "--from", "sklearn", "--features", "3", "-o", out, code=2)
    assert "--features is for model files" in result.stderr


def test_a_pickle_is_not_read_unless_it_is_asked_for(ranksvm, tmp_path):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("code of a pickle was run",)

    joblib.dump(Bomb(), tmp_path / "bomb")
    assert "not a model file" in ranksvm("import", tmp_path / "bomb", "-o", tmp_path / "out.rsvm", code=1).stderr


@pytest.mark.parametrize("content", [b"\xe9t\xe9\n", b"[" * 100_000])
def test_a_file_of_names_that_cannot_be_read(content, ranksvm, model, tmp_path):
    names = tmp_path / "names"
    names.write_bytes(content)
    message = ranksvm("export", model, "--to", "json", "--names", names, code=1).stderr
    assert f"Error: {names}: not " in message
    assert "report" not in message
