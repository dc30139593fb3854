"""Compute scores of exported models, in their runtimes or, for search engines, by a copy of the engine's rules.

Each function takes an export, documents and their query ids, and returns the scores in the order of the rows.
"""

import importlib.util
import json
import re
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest


def by_query(function, X, qid):
    """Call a function for the documents of each query, and return the scores of all rows."""
    scores = np.empty(len(X))
    for query in dict.fromkeys(qid):
        rows = np.flatnonzero(qid == query)
        scores[rows] = function(X[rows])
    return scores


def need(program):
    """The path of a program; the test is skipped if it is not installed."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


# ---- search engines: copies of their rules, named after the source files


def float32_text(text):
    """Parse a number as Java's Float.parseFloat does."""
    assert isinstance(text, str)
    return np.float32(text)


def normalized(values, shift, width):
    return (values.astype(np.float32) - shift) / width


def solr(export, X, qid):
    """LinearModel.java, StandardNormalizer.java, MinMaxNormalizer.java, ManagedModelStore.java."""
    model = json.loads(export.text)
    if model["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel":
        return solr_trees(export, model, X)
    assert model["class"] == "org.apache.solr.ltr.model.LinearModel"
    assert isinstance(model["name"], str)
    assert isinstance(model["store"], str)
    assert model["features"], "no features declared"
    names = [feature["name"] for feature in model["features"]]
    assert len(set(names)) == len(names), "duplicated feature"
    assert set(model["params"]) == {"weights"}
    score = np.zeros(len(X), dtype=np.float32)
    for feature in model["features"]:
        value = X[:, export.features.index(feature["name"])].astype(np.float32)
        weight = np.float32(model["params"]["weights"][feature["name"]])
        if "norm" in feature:
            parameters = feature["norm"]["params"]
            if feature["norm"]["class"] == "org.apache.solr.ltr.norm.StandardNormalizer":
                assert set(parameters) == {"avg", "std"}
                deviation = float32_text(parameters["std"])
                assert deviation > 0, "standard deviation must be positive"
                value = normalized(value, float32_text(parameters["avg"]), deviation)
            else:
                assert feature["norm"]["class"] == "org.apache.solr.ltr.norm.MinMaxNormalizer"
                assert set(parameters) == {"min", "max"}
                delta = float32_text(parameters["max"]) - float32_text(parameters["min"])
                assert delta != 0, "delta must not be zero"
                value = normalized(value, float32_text(parameters["min"]), delta)
        score = score + value * weight
    return score


def solr_trees(export, model, X):
    """MultipleAdditiveTreesModel.java: adds 1e-6 to thresholds; a missing value is the smallest float."""
    names = [feature["name"] for feature in model["features"]]
    assert len(set(names)) == len(names), "duplicated feature"
    values = np.where(np.isnan(X), np.finfo(np.float32).min, X).astype(np.float32)

    def node(tree, rows):
        if "feature" not in tree:
            assert set(tree) == {"value"}
            return np.full(len(rows), float32_text(tree["value"]))
        assert tree["feature"] in names
        threshold = float32_text(tree["threshold"]) + np.float32(1e-6)
        left = rows[:, export.features.index(tree["feature"])] <= threshold
        scores = np.empty(len(rows), dtype=np.float32)
        scores[left] = node(tree["left"], rows[left])
        scores[~left] = node(tree["right"], rows[~left])
        return scores

    score = np.zeros(len(X), dtype=np.float32)
    for tree in model["params"]["trees"]:
        score = score + float32_text(tree["weight"]) * node(tree["root"], values)
    return score


def elasticsearch(export, X, qid):
    """RestCreateModelFromSet.java, StoredLtrModel.java, LinearRankerParser.java and the definitions of normalizers.

    Unknown keys are an error, as in ObjectParser.
    """
    request = json.loads(export.text)["request"]
    assert set(request) == {"model"}
    assert set(request["model"]) == {"name", "model"}
    model = request["model"]["model"]
    assert set(model) <= {"type", "definition", "feature_normalizers"}
    if model["type"] == "model/xgboost+json":
        return elasticsearch_trees(export, json.loads(model["definition"]), X)
    assert model["type"] == "model/linear"
    assert isinstance(model["definition"], str)
    weights = json.loads(model["definition"])
    feature_set = export.features
    assert set(weights) <= set(feature_set), "Feature is unknown"
    assert all(isinstance(weight, int | float) for weight in weights.values()), "Expected a float"
    values = X.astype(np.float32)
    for name, definition in model.get("feature_normalizers", {}).items():
        ((kind, numbers),) = definition.items()
        column = feature_set.index(name)
        if kind == "standard":
            assert set(numbers) == {"mean", "standard_deviation"}
            shift, width = np.float32(numbers["mean"]), np.float32(numbers["standard_deviation"])
            assert width > 0, "Standard Deviation Must Be Positive"
        else:
            assert kind == "min_max"
            assert set(numbers) == {"minimum", "maximum"}
            shift, high = np.float32(numbers["minimum"]), np.float32(numbers["maximum"])
            assert shift < high, "Minimum must be smaller than maximum"
            width = high - shift
        values[:, column] = normalized(values[:, column], shift, width)
    score = np.zeros(len(X), dtype=np.float32)
    for column, name in enumerate(feature_set):
        score = score + np.float32(weights.get(name, 0.0)) * values[:, column]
    return score


def elasticsearch_trees(export, trees, X):
    """XGBoostJsonParser.java and NaiveAdditiveDecisionTree.java of OpenSearch, whose nodes say where NaN goes."""
    values = X.astype(np.float32)

    def node(tree, rows):
        if "leaf" in tree:
            assert set(tree) == {"nodeid", "depth", "leaf"}
            return np.full(len(rows), np.float32(tree["leaf"]))
        expected = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
        assert set(tree) == expected
        first, second = tree["children"]
        assert (tree["yes"], tree["no"]) == (first["nodeid"], second["nodeid"])
        assert tree["missing"] in (tree["yes"], tree["no"])
        feature = rows[:, export.features.index(tree["split"])]
        left = np.float32(tree["split_condition"]) > feature
        left |= np.isnan(feature) & (tree["missing"] == tree["yes"])
        scores = np.empty(len(rows), dtype=np.float32)
        scores[left] = node(first, rows[left])
        scores[~left] = node(second, rows[~left])
        return scores

    score = np.zeros(len(X), dtype=np.float32)
    for tree in trees:
        score = score + node(tree, values)
    return score


# the tokens of RankingExpressionParser.jj that exported expressions use
TOKEN = re.compile(
    r"\s*(?:(?P<float>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)|(?P<operator>>=|==|[-+*/()<!,])"
    r"|(?P<feature>[A-Za-z_@][\w@$]*(?:\((?:[^()]|\([^()]*\))*\))?(?:\.[\w.]+)?))"
)


def vespa(export, X, qid):
    """Schema syntax, RankingExpressionParser.jj, and LinearNormalizer.java over the hits of a query; float64."""
    lines = [line for line in export.text.splitlines() if not line.lstrip().startswith("#")]
    text = "\n".join(lines)
    assert re.match(r"rank-profile [A-Za-z_]\w* inherits default \{\n", text)
    assert text.count("{") == text.count("}")
    phase, expression = re.search(r"(first|global)-phase \{\s*expression \{(.*?)\}", text, re.DOTALL).groups()
    columns = {vespa_feature(name): column for column, name in enumerate(export.features)}
    if phase == "global":
        listed = re.search(r"match-features \{(.*?)\}", text, re.DOTALL)[1].split("\n")
        matched = {line.strip() for line in listed if line.strip()}
        assert matched <= set(columns)
    inputs = dict(re.findall(r"^        (query\(\w+\)) double: (\S+)$", text, re.MULTILINE))
    python, place = [], 0
    expression = expression.strip()
    while place < len(expression):
        token = TOKEN.match(expression, place)
        assert token, f"no token at {expression[place : place + 20]!r}"
        place = token.end()
        if token["feature"] is None:
            python.append("~" if token["operator"] == "!" else token["float"] or token["operator"])
            continue
        name, normalize = token["feature"], False
        if name == "if":
            python.append("where")
            continue
        if name in inputs:
            python.append(inputs[name])
            continue
        if name.startswith("isNan("):
            python.append(f"isnan(feature({columns[name[len('isNan(') : -1]]}, False))")
            continue
        if name.startswith("normalize_linear("):
            assert phase == "global", "normalize_linear is for the global phase"
            name, normalize = name[len("normalize_linear(") : -1], True
            assert name in matched
        python.append(f"feature({columns[name]}, {normalize})")

    def scores(rows):
        def feature(column, normalize):
            values = rows[:, column].astype(float)
            return linearly_normalized(values) if normalize else values

        return eval(" ".join(python), {"feature": feature, "where": np.where, "isnan": np.isnan})

    return by_query(scores, X, qid)


def vespa_feature(name):
    return f"attribute({name})" if re.fullmatch(r"[A-Za-z_]\w*", name) else name


def linearly_normalized(values):
    low, high = values.min(), values.max()
    scale, midpoint = (1.0 / (high - low), (low + high) * 0.5) if high > low else (0.0, 0.0)
    return 0.5 + scale * (values - midpoint)


# ---- runtimes


def onnx(export, X, qid):
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(export.content, options, providers=["CPUExecutionProvider"])
    return by_query(lambda rows: session.run(None, {"features": rows.astype(np.float32)})[0], X, qid)


def sql_statements(export):
    """The statements of an export: drop the view, create it, test the formula, and test the view."""
    text = "\n".join(line for line in export.text.splitlines() if not line.startswith("--"))
    drop, view, test, test_of_view = text.removesuffix(";").split(";\n\n")
    return drop, view, test, test_of_view


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def sqlite(export, X, qid):
    connection = sqlite3.connect(":memory:")
    return _sql(export, X, qid, connection, lambda rows: connection.executemany(rows, sql_rows(X, qid)))


def duckdb(export, X, qid):
    connection = pytest.importorskip("duckdb", reason="duckdb is not installed").connect(":memory:")
    connection.execute("SET threads TO 1")

    def insert(statement):
        import pandas

        columns = ["qid", "row", *(f"c{j}" for j in range(X.shape[1]))]
        rows = pandas.DataFrame(sql_rows(X, qid), columns=columns)
        connection.register("arrived", rows)
        connection.execute(statement.split(" VALUES")[0] + " SELECT * FROM arrived")

    return _sql(export, X, qid, connection, insert)


def sql_rows(X, qid):
    numbers = {query: number for number, query in enumerate(dict.fromkeys(qid))}
    return [(numbers[query], row, *map(float, x)) for row, (x, query) in enumerate(zip(X, qid, strict=True))]


def _sql(export, X, qid, connection, insert):
    columns = ", ".join(f"{quoted(name)} DOUBLE" for name in export.features)
    connection.execute(f'CREATE TABLE "documents" ("qid" INTEGER, "row" INTEGER, {columns})')
    insert(f'INSERT INTO "documents" VALUES (?, ?{", ?" * X.shape[1]})')
    drop, view, test, test_of_view = sql_statements(export)
    for statement in (drop, view, drop, view):
        connection.execute(statement)
    for _, expected, score in connection.execute(test).fetchall():
        assert score == pytest.approx(expected, rel=1e-9, abs=1e-9)
    name = re.search(r'CREATE VIEW ("(?:[^"]|"")+")', view)[1]
    rows = connection.execute(f'SELECT "row", "score" FROM {name} ORDER BY "row"').fetchall()
    assert [row for row, _ in rows] == list(range(len(X)))
    n_tested, without, different = connection.execute(test_of_view).fetchone()
    assert 0 < n_tested <= len(X)
    assert different == 0
    assert without <= sum(score is None or np.isnan(score) for _, score in rows)
    return np.array([score for _, score in rows], dtype=float)


def python(export, X, qid, folder):
    path = folder / "exported.py"
    path.write_bytes(export.content)
    assert run(sys.executable, "-I", path) == "self-test passed\n"
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return by_query(lambda rows: module.scores(rows.tolist()), X, qid)


def javascript(export, X, qid, folder):
    node = need("node")
    path = folder / "exported.js"
    path.write_bytes(export.content)
    assert run(node, path) == "self-test passed\n"
    text = json.dumps(groups(X, qid)).replace("NaN", "null")  # JSON has null, but not NaN
    program = (
        f"const model = require({json.dumps(str(path))}); const fs = require('fs');"
        "const read = JSON.parse(fs.readFileSync(0), (key, value) => value === null ? NaN : value);"
        "console.log(JSON.stringify(read.map(model.scores)))"
    )
    return ungrouped(json.loads(run(node, "-e", program, input=text)), qid)


JAVA_RUNNER = """
import java.util.Scanner;
public class Runner {
    public static void main(String[] a) throws Exception {
        java.io.BufferedReader in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        String line;
        StringBuilder out = new StringBuilder();
        while ((line = in.readLine()) != null) {
            int n = Integer.parseInt(line.trim());
            double[][] rows = new double[n][];
            for (int i = 0; i < n; i++) {
                String[] words = in.readLine().split(" ");
                rows[i] = new double[words.length];
                for (int j = 0; j < words.length; j++) rows[i][j] = Double.parseDouble(words[j]);
            }
            for (double score : NAME.scores(rows)) out.append(score).append("\\n");
        }
        System.out.print(out);
    }
}
"""


def java(export, X, qid, folder):
    compiler, program = need("javac"), need("java")
    name = re.search(r"public final class (\w+)", export.text)[1]
    (folder / f"{name}.java").write_bytes(export.content)
    (folder / "Runner.java").write_text(JAVA_RUNNER.replace("NAME", name))
    run(compiler, "-encoding", "UTF-8", "-Xlint:all", "-Werror", f"{name}.java", "Runner.java", cwd=folder)
    assert run(program, "-cp", folder, name) == "self-test passed\n"
    return grouped_lines(run(program, "-cp", folder, "Runner", input=query_lines(X, qid).replace("nan", "NaN")), qid)


C_RUNNER = """
#include <stdio.h>
#include <stdlib.h>
void NAME_scores(const double *documents, size_t n_documents, double *scores);
extern const char *const NAME_names[WIDTH];
int main(void) {
    int n, i;
    while (scanf("%d", &n) == 1) {
        double *rows = malloc(sizeof(double) * WIDTH * n), *scores = malloc(sizeof(double) * n);
        for (i = 0; i < n * WIDTH; i++) if (scanf("%lf", rows + i) != 1) return 1;
        NAME_scores(rows, n, scores);
        for (i = 0; i < n; i++) printf("%.17g\\n", scores[i]);
        free(rows); free(scores);
    }
    return 0;
}
"""


def c(export, X, qid, folder):
    compiler = need("cc")
    name = re.search(r"void (\w+)_scores", export.text)[1]
    (folder / "exported.c").write_bytes(export.content)
    (folder / "runner.c").write_text(C_RUNNER.replace("NAME", name).replace("WIDTH", str(X.shape[1])))
    flags = ["-std=c89", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
    run(compiler, *flags, "-DRANKSVM_SELF_TEST", "exported.c", "-lm", "-o", "self_test", cwd=folder)
    assert run(folder / "self_test") == "self-test passed\n"
    run(compiler, "exported.c", "runner.c", "-O1", "-ffp-contract=off", "-lm", "-o", "runner", cwd=folder)
    return grouped_lines(run(folder / "runner", input=query_lines(X, qid)), qid)


def groups(X, qid):
    return [X[qid == query].tolist() for query in dict.fromkeys(qid)]


def ungrouped(lists, qid):
    scores = np.empty(len(qid))
    for query, found in zip(dict.fromkeys(qid), lists, strict=True):
        scores[qid == query] = found
    return scores


def query_lines(X, qid):
    lines = []
    for rows in groups(X, qid):
        lines += [str(len(rows)), *(" ".join(map(repr, row)) for row in rows)]
    return "\n".join(lines) + "\n"


def grouped_lines(text, qid):
    numbers = iter(map(float, text.split()))
    return ungrouped([[next(numbers) for _ in np.flatnonzero(qid == query)] for query in dict.fromkeys(qid)], qid)


def json_names(export, X, qid):
    document = json.loads(export.text)
    if document["format"] == "ranksvm-additive":
        return by_query(lambda rows: json_tables(document, rows), X, qid)
    weights = np.array([feature["weight"] for feature in document["features"]])
    return by_query(lambda rows: json_scaled(document, rows) @ weights, X, qid)


def json_scaled(document, rows):
    scaler = document["query_scaler"]
    if scaler is None:
        shift = np.array([feature.get("shift", 0.0) for feature in document["features"]])
        scale = np.array([feature.get("scale", 1.0) for feature in document["features"]])
        return (rows - shift) / scale
    constant = np.ptp(rows, axis=0) == 0
    if scaler["method"] == "min_max":
        return (rows - rows.min(axis=0)) / np.where(constant, 1.0, np.ptp(rows, axis=0))
    scaled = rows - rows.mean(axis=0) if scaler["with_mean"] else rows
    if scaler["with_std"]:
        scaled = scaled / np.where(constant, 1.0, rows.std(axis=0))
    return np.where(constant, 0.0 if scaler["with_mean"] else rows, scaled)


def json_tables(document, rows):
    names = [feature["name"] for feature in document["features"]]
    scaled = json_scaled(document, rows)
    scores = np.zeros(len(rows))
    for feature, x in zip(document["features"], scaled.T, strict=True):
        scores += feature["weight"] * (np.where(np.isnan(x), 0.0, x) if feature["missing"] else x)
    for table in document["tables"]:
        places = []
        for axis in table["axes"]:
            x = scaled[:, names.index(axis["feature"]), np.newaxis]
            places.append((x >= np.array(axis["cuts"])).sum(axis=1))
        scores += np.array(table["values"])[tuple(places)]
    return scores


# ---- model files of other programs


def svm_rank(export, X, qid):
    """read_model and classify_example of SVM-light: vectors are float32, and scores are minus the threshold."""
    lines = export.text.splitlines()
    assert lines[0] == "SVM-light Version V6.20"
    settings = [line.split("#")[0].strip() for line in lines[1:11]]
    assert lines[10].endswith("# threshold b, each following line is a SV (starting with alpha*y)")
    kind, degree, gamma, s, r = int(settings[0]), int(settings[1]), *map(float, settings[2:5])
    threshold = float(settings[9])
    vectors = lines[11:]
    assert len(vectors) == int(settings[8]) - 1
    scores = np.full(len(X), -threshold)
    squares = np.square(X).sum(axis=1)
    for line in vectors:
        alpha, *words = line.split("#")[0].split()
        vector = np.zeros(X.shape[1])
        last = 0
        for word in words:
            number, value = word.split(":")
            assert last < int(number) <= X.shape[1], "features must be in increasing order"
            last = int(number)
            vector[last - 1] = np.float32(value)
        products = X @ vector
        if kind == 1:
            products = (s * products + r) ** degree
        elif kind == 2:
            products = np.exp(-gamma * (squares - 2 * products + vector @ vector))
        scores += float(alpha) * products
    return scores


def liblinear(export, X, qid, folder):
    module = pytest.importorskip("liblinear.liblinearutil", reason="liblinear-official is not installed")
    path = folder / "exported.model"
    path.write_bytes(export.content)
    model = module.load_model(str(path))
    _, _, values = module.predict(np.zeros(len(X)), X, model, "-q")
    return np.array(values).ravel()


def libsvm(export, X, qid, folder):
    module = pytest.importorskip("libsvm.svmutil", reason="libsvm-official is not installed")
    path = folder / "exported.model"
    path.write_bytes(export.content)
    model = module.svm_load_model(str(path))
    _, _, values = module.svm_predict(np.zeros(len(X)), X, model, "-q")
    return np.array(values).ravel()


def lightgbm(export, X, qid):
    module = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    booster = module.Booster(model_str=export.text)
    return booster.predict(X, num_threads=1)


def xgboost(export, X, qid):
    module = pytest.importorskip("xgboost", reason="xgboost is not installed")
    booster = module.Booster({"nthread": 1})
    booster.load_model(bytearray(export.content))
    names = export.features if booster.feature_names else None
    return booster.predict(module.DMatrix(X.astype(np.float32), feature_names=names, nthread=1))


# (target, runtime) -> the function that computes scores, whether it uses float32, and whether it needs a folder.
RUNTIMES = {
    ("solr", "rules"): (solr, True, False),
    ("elasticsearch", "rules"): (elasticsearch, True, False),
    ("opensearch", "rules"): (elasticsearch, True, False),
    ("vespa", "rules"): (vespa, False, False),
    ("onnx", "onnxruntime"): (onnx, True, False),
    ("sql", "sqlite"): (sqlite, False, False),
    ("sql", "duckdb"): (duckdb, False, False),
    ("python", "python"): (python, False, True),
    ("javascript", "node"): (javascript, False, True),
    ("java", "java"): (java, False, True),
    ("c", "cc"): (c, False, True),
    ("json", "rules"): (json_names, False, False),
    ("lightgbm", "lightgbm"): (lightgbm, False, False),
    ("svm-rank", "rules"): (svm_rank, True, False),
    ("liblinear", "liblinear"): (liblinear, False, True),
    ("libsvm", "libsvm"): (libsvm, False, True),
}
# Runtimes for additive models only.
TREE_RUNTIMES = {("xgboost", "xgboost"): (xgboost, True, False)}


def scores_of(target, runtime, export, X, qid, folder):
    """Scores of an export in one runtime."""
    function, _, in_folder = (RUNTIMES | TREE_RUNTIMES)[target, runtime]
    return function(export, X, qid, folder) if in_folder else function(export, X, qid)
