"""Additive models on the command line."""

import itertools
import json
import re

import numpy as np
import pytest

import ranksvm as package

ADDITIVE = ("--model", "additive", "--n-jobs", 1)


@pytest.fixture(scope="module")
def train(folder):
    return package.datasets.read_data(folder / "train.txt")


@pytest.fixture(scope="module")
def valid(folder):
    return package.datasets.read_data(folder / "valid.txt")


def test_the_model_is_the_estimators_own(ranksvm_json, folder, train, tmp_path):
    out = tmp_path / "model"
    options = ("--step-weight", 0.5, "--max-bins", 8, "--interactions", "1:3,2:5", "--interaction-bins", 4)
    options += ("--no-linear-part", "--categorical", "4", "--monotone", "1=increasing", "-C", 0.1, "--loss", "hinge")
    report = ranksvm_json("train", folder / "train.txt", *ADDITIVE, *options, "-o", out)
    parameters = {
        "step_weight": 0.5,
        "max_bins": 8,
        "interactions": [[0, 2], [1, 4]],
        "interaction_bins": 4,
        "linear": False,
        "categorical": [3],
        "monotone": {0: 1},
        "loss": "hinge",
    }
    expected = package.AdditiveRankSVM(0.1, **parameters, n_jobs=1).fit(train.X, train.y, qid=train.qid)
    model = package.load(out)
    assert model.get_params() == expected.get_params()
    np.testing.assert_array_equal(model.shape_values_, expected.shape_values_)
    assert report["additive"] == {
        "step_weight": 0.5,
        "linear": False,
        "levels": len(expected.shape_values_),
        "categorical": 1,
        "with_missing": 0,
        "interactions": [[0, 2], [1, 4]],
        "cells": len(expected.interaction_values_),
    }
    assert report["objective"] == expected.objective_
    assert report["monotone"] == {"increasing": 1, "decreasing": 0}
    assert report["kernel"] is report["low_rank"] is report["selection"] is None


def test_info_lists_the_curves_that_spread_scores_most(ranksvm, ranksvm_json, folder):
    ranksvm("train", folder / "train.txt", *ADDITIVE, "-C", 0.1, "-o", folder / "curves.rsvm")
    curves = ranksvm_json("info", folder / "curves.rsvm")["curves"]
    spreads = [each["spread"] for each in curves]
    assert spreads == sorted(spreads, reverse=True)
    assert sum(each["share"] for each in curves) == pytest.approx(1.0)
    shown = ranksvm("info", folder / "curves.rsvm", "--weights", 2).output
    assert curves[0]["feature"] in shown
    assert "spread" in shown


def test_info_names_the_interactions(ranksvm, ranksvm_json, folder):
    ranksvm(
        "train", folder / "train.txt", *ADDITIVE, "-C", 0.1, "--interactions", "1:3,2:5", "-o", folder / "pairs.rsvm"
    )
    curves = ranksvm_json("info", folder / "pairs.rsvm")["curves"]
    functions = {each["feature"]: each["spread"] for each in curves if each["column"] is None}
    first, second = package.load(folder / "pairs.rsvm").interaction_shapes()
    assert functions == {"f1 x f3": first.spread, "f2 x f5": second.spread}
    assert sum(each["share"] for each in curves) == pytest.approx(1.0)
    assert "f1 x f3" in ranksvm("info", folder / "pairs.rsvm").output


def test_other_models_are_not_additive(ranksvm_json, model):
    assert ranksvm_json("info", model)["additive"] is None


def test_a_range_chooses_the_step_weight_too(ranksvm, ranksvm_json, folder, train, valid, tmp_path):
    arguments = ["train", folder / "train.txt", "--valid", folder / "valid.txt", *ADDITIVE, "--C-range", "0.01,1"]
    arguments += ["-o", tmp_path / "model", "--interactions", "auto"]
    report = ranksvm_json(*arguments)
    expected = package.AdditiveRankSVMCV([0.01, 1], interactions="auto", n_jobs=1)
    expected.fit(train.X, train.y, qid=train.qid, eval_set=(valid.X, valid.y), eval_qid=valid.qid)
    tried = report["selection"]["candidates"]
    assert {(each["step_weight"], each["interactions"]) for each in tried} == {
        (weight, count) for weight in (0, 0.5, 2) for count in (0, 8, 32)
    }
    np.testing.assert_allclose([each["score"] for each in tried], expected.mean_scores_.ravel())
    chosen = tried[report["selection"]["chosen"]]
    assert (chosen["C"], chosen["step_weight"]) == (report["C"], report["additive"]["step_weight"])
    assert chosen["score"] == expected.best_score_
    stdout = ranksvm(*arguments).stdout
    assert "C, step weight and interactions by ndcg@10 on validation data (* chosen)" in stdout
    one = ranksvm(*arguments, "--step-weight", 2).stdout
    assert "C and interactions by ndcg@10" in one
    assert "C by ndcg@10" in ranksvm(*arguments[:-1], 0, "--step-weight", 2).stdout


def test_the_number_of_interactions_is_chosen_with_one_c(ranksvm_json, folder, tmp_path):
    report = ranksvm_json("train", folder / "train.txt", *ADDITIVE, "--interactions", "auto", "-o", tmp_path / "model")
    tried = report["selection"]["candidates"]
    assert [(each["C"], each["step_weight"], each["interactions"]) for each in tried] == [(1, 1, n) for n in (0, 8, 32)]
    assert report["selection"]["by"] == "5 folds of queries"


def test_a_plot_of_the_chosen_setting(ranksvm, folder, tmp_path):
    picture = tmp_path / "scores.svg"
    arguments = ("--C-range", "0.1,1", "--folds", 2, "--plot", picture, "-o", tmp_path / "model")
    ranksvm("train", folder / "train.txt", *ADDITIVE, *arguments)
    assert "</svg>" in picture.read_text()


def test_features_by_name(ranksvm, ranksvm_json, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["label,qid,bm25,age,kind"]
    for query in range(20):
        for x, age, kind in zip(rng.uniform(size=8), rng.uniform(size=8), rng.integers(4, size=8), strict=True):
            lines.append(f"{round(2 * x + (kind == 2))},{query},{x:.3f},{age:.3f},{kind}")
    path, out = tmp_path / "train.csv", tmp_path / "model"
    path.write_text("\n".join(lines))
    features = ("--categorical", "kind", "--interactions", "bm25:kind,1:2", "--monotone", "age=increasing")
    report = ranksvm_json("train", path, *ADDITIVE, *features, "-o", out)
    assert report["additive"]["interactions"] == [[0, 2], [0, 1]]
    model = package.load(out)
    assert (model.categorical, model.monotone) == ([2], {1: 1})
    assert ranksvm_json("info", out)["signs"] == {"age": 1}
    stderr = ranksvm("train", path, *ADDITIVE, "--categorical", "color", "-o", out, code=2).stderr
    assert "--categorical: there is no feature 'color' in the training data (such as 'bm25', 'age', 'kind')" in stderr
    settings = tmp_path / "settings"
    ranksvm("tune", path, *ADDITIVE, "--interactions", 1, "--C-range", "1", "--folds", 2, "--save-choice", settings)
    assert json.loads(settings.read_text())["settings"]["interactions"] in ("bm25:age", "bm25:kind", "age:kind")


@pytest.mark.parametrize("how", [("--no-linear-part",), ("--categorical", "2,4"), ()])
def test_tune_compares_step_weights_and_interactions(ranksvm_json, folder, how, tmp_path):
    settings, out, again = (tmp_path / name for name in ("settings", "model", "again"))
    report = ranksvm_json(
        *("tune", folder / "train.txt", "--valid", folder / "valid.txt", "--model", "linear,additive", *how),
        *(
            "--step-weight",
            "1,4",
            "--interactions",
            2,
            "--interactions",
            "1:3",
            "--C-range",
            "0.01,1",
            "--loss",
            "squared_hinge",
        ),
        *("--no-linear", "--tol", 1e-8, "--save-choice", settings, "-o", out),
    )
    found = [(each["step_weight"], each["interactions"]) for each in report["combinations"]]
    assert sorted(found, key=str) == [(1, "1:3"), (1, 2), (4, "1:3"), (4, 2)]
    ranksvm_json("train", folder / "train.txt", "--settings", settings, "-o", again)
    tuned, trained = package.load(out), package.load(again)
    np.testing.assert_array_equal(trained.interactions_, tuned.interactions_)
    np.testing.assert_allclose(trained.shape_values_, tuned.shape_values_, atol=1e-3)
    assert trained.get_params()["linear"] is tuned.linear
    assert report["against_runner_up"]["runner_up"]["model"] == "additive"


def test_tune_compares_additive_models_beside_others(ranksvm, folder):
    arguments = ("tune", folder / "train.txt", "--folds", 2, "--model", "linear,additive", "--kernel", "cosine")
    done = ranksvm(*arguments, "--interactions", "auto", "--scaler", "none,query-minmax", "--metric", "map")
    for weight, functions in itertools.product(("0", "0.5", "2"), ("", " interactions 8", " interactions 32")):
        assert f"additive step weight {weight}{functions} " in done.stdout
    assert re.search("^[* ] cosine ", done.stdout, re.MULTILINE)
    assert re.search("^[* ] linear ", done.stdout, re.MULTILINE)
    assert "Additive models: 396 fits on 240 rows, with every second C from 2^-15 to 2^5" in done.stderr
    without = ranksvm("tune", folder / "train.txt", *ADDITIVE, "--no-linear-part", "--C-range", 1, "--folds", 2).stdout
    assert not re.search("^[* ] linear ", without, re.MULTILINE)
    assert "step weight 0 " not in without


def test_folds(ranksvm, ranksvm_json, folder, tmp_path):
    for fold in ("Fold1", "Fold2"):
        (tmp_path / fold).mkdir()
        for name, source in (("train", "train"), ("vali", "valid"), ("test", "test")):
            (tmp_path / fold / f"{name}.txt").write_bytes((folder / f"{source}.txt").read_bytes())
    arguments = ("folds", tmp_path, *ADDITIVE, "--C-range", "0.1,1", "--interactions", 2)
    report = ranksvm_json(*arguments)
    assert [len(fold["additive"]["interactions"]) for fold in report["folds"]] in ([2, 2], [0, 0])
    assert {"step", "weight", "interactions"} <= set(ranksvm(*arguments).stdout.splitlines()[1].split())


@pytest.mark.parametrize("chosen", [(), ("--C-range", "0.01,1", "--folds", 2)])
def test_the_model_serves_all_commands(ranksvm, ranksvm_json, folder, chosen, tmp_path):
    out, test = tmp_path / "model", folder / "test.txt"
    arguments = ["train", folder / "train.txt", "--test", test, *ADDITIVE, *chosen, "--interactions", 2, "-o", out]
    report = ranksvm_json(*arguments, "--scaler", "query-minmax")
    again = ranksvm_json("evaluate", test, "--model", out, "--metrics", "map")
    assert again["systems"][0]["metrics"]["map"] == pytest.approx(report["metrics"]["test"]["map"])
    assert "2 functions of two features" in " ".join(ranksvm(*arguments, "-q").stdout.split())
    assert len(ranksvm("predict", out, test).stdout.splitlines()) == 120
    assert len(ranksvm("rank", out, test, "--format", "tsv").stdout.splitlines()) == 121
    assert "contribut" in ranksvm("explain", out, test).stdout
    assert ranksvm_json("info", out)["additive"].keys() == report["additive"].keys()
    assert "spread" in ranksvm("info", out).stdout
    assert ranksvm_json("analyze", out, folder / "train.txt")["models"]


def test_a_table_with_missing_values(ranksvm, ranksvm_json, train, tmp_path):
    pd, out = pytest.importorskip("pandas"), tmp_path / "model"
    X = np.array(train.X, dtype=float)
    X[::7, 1] = np.nan
    table = tmp_path / "train.csv"
    pd.DataFrame(X).add_prefix("x").assign(label=train.y, qid=train.qid).to_csv(table, index=False)
    assert "missing values" in ranksvm("train", table, *ADDITIVE, "-o", out, code=1).stderr
    options = ("--missing-values", "-C", 0.1)
    report = ranksvm_json("train", table, *ADDITIVE, *options, "-o", out)
    expected = package.AdditiveRankSVM(0.1, n_jobs=1).fit(X, train.y, qid=train.qid)
    assert report["objective"] == pytest.approx(expected.objective_, rel=1e-4)
    assert report["additive"]["with_missing"] == 1
    scores = ranksvm("predict", out, table, "--missing-values").stdout.split()
    np.testing.assert_allclose(np.array(scores, dtype=float), expected.predict(X), atol=1e-3)


def test_a_value_that_is_missing_in_one_query_only(ranksvm_json, train, tmp_path):
    pd, out, table = pytest.importorskip("pandas"), tmp_path / "model", tmp_path / "train.csv"
    X = np.array(train.X, dtype=float)
    X[3, 1] = np.nan
    pd.DataFrame(X).add_prefix("x").assign(label=train.y, qid=train.qid).to_csv(table, index=False)
    options = (*ADDITIVE, "--missing-values", "--step-weight", 1, "--C-range", "0.01,0.1", "--folds", 3, "-o", out)
    report = ranksvm_json("train", table, *options)
    expected = package.AdditiveRankSVMCV([0.01, 0.1], step_weights=[1.0], cv=3, n_jobs=1).fit(X, train.y, qid=train.qid)
    found = [each["score"] for each in report["selection"]["candidates"]]
    np.testing.assert_allclose(found, expected.mean_scores_[0], rtol=1e-6)
    against = ranksvm_json("tune", table, *options, "--loss", "hinge,squared_hinge")["against_runner_up"]
    assert against["runner_up"]["loss"] in ("hinge", "squared_hinge")


def test_a_value_that_a_linear_model_refuses_is_named_as_in_its_file(ranksvm, train, tmp_path):
    pd, out = pytest.importorskip("pandas"), tmp_path / "model"
    frame = pd.DataFrame(np.array(train.X, dtype=float)).add_prefix("x").assign(label=train.y, qid=train.qid)
    frame.to_csv(tmp_path / "whole.csv", index=False)
    frame.loc[7, "x1"] = np.nan
    frame.to_csv(tmp_path / "part.csv", index=False)
    whole, part = tmp_path / "whole.csv", tmp_path / "part.csv"
    place = "part.csv: Input X contains NaN at X[7, 1] (feature x1): drop such rows"
    options = ("--missing-values", "-o", out)
    for scaler in ("none", "standard", "query-standard"):
        ranksvm("train", whole, "-C", 0.1, "-o", out, "--scaler", scaler)
        assert place in ranksvm("predict", out, part, "--missing-values", code=1).stderr
        assert place in ranksvm("train", part, "-C", 0.1, "--scaler", scaler, *options, code=1).stderr
        # before the fit
        stderr = ranksvm("train", whole, "--valid", part, "-C", 0.1, "--scaler", scaler, *options, code=1).stderr
        assert place in stderr
        assert "iteration" not in stderr
    assert place in ranksvm("tune", whole, "--valid", part, "--model", "linear,additive", *options, code=1).stderr
    # which takes the place of missing scores
    for scaler in ("elasticsearch-minmax", "elasticsearch-none"):
        ranksvm("train", part, "-C", 0.1, "--scaler", scaler, *options)
    assert "rank-profile" in ranksvm("export", out, "--to", "vespa-hybrid").stdout


def test_an_infinite_value_is_named_as_in_its_file_where_missing_ones_are_taken(ranksvm, folder, train, tmp_path):
    pd, out = pytest.importorskip("pandas"), tmp_path / "model"
    frame = pd.DataFrame(np.array(train.X, dtype=float)).add_prefix("x").assign(label=train.y, qid=train.qid)
    frame.to_csv(tmp_path / "whole.csv", index=False)
    frame.loc[11, "x2"] = np.nan
    frame.loc[7, "x1"] = np.inf
    frame.to_csv(tmp_path / "part.csv", index=False)
    whole, part, missing = tmp_path / "whole.csv", tmp_path / "part.csv", "--missing-values"
    place = "part.csv: Input X contains infinity at X[7, 1] (feature x1): missing values are NaN"
    for options in (ADDITIVE, (*ADDITIVE, "--scaler", "standard"), ("--scaler", "elasticsearch-minmax")):
        arguments = (*options, "-C", 0.1, "-o", out)
        for names in (folder / "train.txt", whole):  # a model without names of features, and one with names
            ranksvm("train", names, *arguments)
            for command in ("predict", "explain"):
                assert place in ranksvm(command, out, part, missing, code=1).stderr
            assert place in ranksvm("export", out, "--to", "json", "--data", part, missing, code=1).stderr
        assert place in ranksvm("train", part, *arguments, missing, code=1).stderr
        # before the fit
        stderr = ranksvm("train", whole, "--valid", part, *arguments, missing, code=1).stderr
        assert place in stderr
        assert "iteration" not in stderr


def test_a_missing_value_that_is_new_is_named_as_in_its_file(ranksvm, folder, train, tmp_path):
    pd, out, missing = pytest.importorskip("pandas"), tmp_path / "model", "--missing-values"
    frame = pd.DataFrame(np.array(train.X, dtype=float)).add_prefix("x").assign(label=train.y, qid=train.qid)
    frame.to_csv(tmp_path / "whole.csv", index=False)
    frame.loc[3, "x0"] = np.nan
    frame.to_csv(tmp_path / "one.csv", index=False)
    frame.loc[7, "x1"] = np.nan
    frame.to_csv(tmp_path / "two.csv", index=False)
    place = "{}: Input X contains NaN at X[{}] (feature {}): this feature had no missing value in the training data."
    for scaler in ("none", "standard"):
        options = (*ADDITIVE, "--scaler", scaler, "-C", 0.1, "-o", out)
        for names in (folder / "train.txt", tmp_path / "whole.csv"):
            ranksvm("train", names, *options)
            for command in ("predict", "rank", "explain"):
                stderr = ranksvm(command, out, tmp_path / "one.csv", missing, code=1).stderr
                assert place.format(tmp_path / "one.csv", "3, 0", "x0") in stderr
            exported = ("export", out, "--to", "json", "--data", tmp_path / "one.csv")
            assert place.format(tmp_path / "one.csv", "3, 0", "x0") in ranksvm(*exported, missing, code=1).stderr
        for part in ("--valid", "--test"):
            arguments = (tmp_path / "whole.csv", *options, missing, part, tmp_path / "one.csv")
            stderr = ranksvm("train", *arguments, code=1).stderr
            assert place.format(tmp_path / "one.csv", "3, 0", "x0") in stderr
            assert "iteration" not in stderr  # the message comes before the fit
        ranksvm("train", tmp_path / "one.csv", *options, missing)  # with a value for missing x0
        stderr = ranksvm("predict", out, tmp_path / "two.csv", missing, code=1).stderr
        assert place.format(tmp_path / "two.csv", "7, 1", "x1") in stderr


def test_missing_values_are_refused_unless_all_scalers_take_them(ranksvm, train, tmp_path):
    pd, out = pytest.importorskip("pandas"), tmp_path / "model"
    frame = pd.DataFrame(np.array(train.X, dtype=float)).add_prefix("x").assign(label=train.y, qid=train.qid)
    frame.to_csv(tmp_path / "whole.csv", index=False)
    frame.loc[7, "x1"] = np.nan
    frame.to_csv(tmp_path / "part.csv", index=False)
    place = "part.csv: Input X contains NaN at X[7, 1] (feature x1)"
    scaled = (*ADDITIVE, "--scaler", "query-minmax", "-C", 0.1, "-o", out)
    ranksvm("train", tmp_path / "whole.csv", *scaled)
    for command in (("predict", out), ("train", *scaled), ("tune", "--scaler", "none,elasticsearch-minmax")):
        assert place in ranksvm(*command, tmp_path / "part.csv", "--missing-values", code=1).stderr


def test_info_says_that_there_is_no_linear_part(ranksvm, folder, tmp_path):
    ranksvm("train", folder / "train.txt", *ADDITIVE, "--no-linear-part", "-o", tmp_path / "model")
    assert "no linear part" in ranksvm("info", tmp_path / "model").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-bins", "5"], "--max-bins is an option of --model additive: give that option too."),
        (["--no-linear-part"], "--no-linear-part is an option of --model additive: give that option too."),
        (["--model", "tree"], "is not one of"),
        ([*ADDITIVE, "--kernel", "rbf"], "--model additive with --kernel: give one of them."),
        ([*ADDITIVE, "--low-rank", "factorized"], "--model additive with --low-rank: give one of them."),
        ([*ADDITIVE, "--gamma", "1"], "--gamma is an option of kernel models"),
        ([*ADDITIVE, "--gamma-range", "1"], "--model additive with --gamma-range: it is an option of kernels."),
        ([*ADDITIVE, "--device", "cuda,cuda:1"], "an additive model is fitted on one."),
        ([*ADDITIVE, "--stopping", "gap"], "--stopping is for one C of a linear or kernel model"),
        ([*ADDITIVE, "--no-linear-part", "--step-weight", "0"], "leaves nothing to learn."),
        ([*ADDITIVE, "--max-bins", "1"], "is not in the range 2<=x<=255"),
        ([*ADDITIVE, "--interactions", "1:2:3"], "'1:2:3' is not a number from 0, auto, or pairs such as"),
        ([*ADDITIVE, "--interactions", "-1"], "'-1' is not a number from 0, auto, or pairs such as"),
        ([*ADDITIVE, "--interactions", "1:9"], "--interactions: there is no feature '9' in the training data"),
        ([*ADDITIVE, "--categorical", "1,,2"], "'1,,2' is not a list of features"),
    ],
)
def test_conflicting_options(ranksvm, folder, options, message, tmp_path):
    done = ranksvm("train", folder / "train.txt", "-o", tmp_path / "model", *options, code=2)
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--step-weight", "1"], "--step-weight is an option of --model additive"),
        ([*ADDITIVE, "--no-linear-part", "--step-weight", "0,1"], "leaves nothing to learn."),
        ([*ADDITIVE, "--device", "cuda,cuda:1"], "an additive model is fitted on one."),
        ([*ADDITIVE, "--interactions", "0,x"], "'x' is not a number from 0, auto, or pairs such as"),
    ],
)
def test_conflicting_options_of_tune(ranksvm, folder, options, message):
    assert message in " ".join(ranksvm("tune", folder / "train.txt", *options, code=2).stderr.split())


BRANDS = np.array(["acme", "bolt", "corp"])


def shop(path, seed, brands=BRANDS, order=("price", "brand", "color")):
    """Write a table in which features are text; return the same as a DataFrame of the features."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(seed)
    n = 240
    number, price = rng.integers(0, len(brands), n), rng.normal(size=n).round(3)
    y = np.clip(np.round(np.array([0.0, 2.0, 1.0, 1.0])[number] + 0.3 * price), 0, 3)
    color = np.array(["red", "blue"])[rng.integers(0, 2, n)]
    X = pandas.DataFrame({"price": price, "brand": brands[number], "color": color})[list(order)]
    table = X.assign(label=y, qid=np.arange(n) // 12)
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    return X


@pytest.fixture
def texts(tmp_path):
    # the other files lack a category, have a new one, and have their columns in another order
    shop(tmp_path / "train.csv", 0)
    shop(tmp_path / "valid.parquet", 1, BRANDS[1:], ("color", "brand", "price"))
    return tmp_path


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_features_that_hold_text(ranksvm, ranksvm_json, texts, suffix):
    out, test = texts / "model", texts / f"test{suffix}"
    X = shop(test, 2, np.array([*BRANDS, "zeta"]), ("brand", "color", "price"))
    options = (*ADDITIVE, "--categorical", "brand,3", "-C", 0.1)
    ranksvm("train", texts / "train.csv", "--valid", texts / "valid.parquet", *options, "-o", out)
    model = package.load(out)
    assert model.categories_ == {"brand": list(BRANDS), "color": ["blue", "red"]}
    expected = package.AdditiveRankSVM(0.1, categorical=["brand", "color"], n_jobs=1).fit(texts / "train.csv")
    np.testing.assert_array_equal(model.shape_values_, expected.shape_values_)
    scores = expected.predict(X[["price", "brand", "color"]])
    printed = ranksvm("predict", out, test).stdout.split()
    np.testing.assert_allclose(np.array(printed, dtype=float), scores, rtol=1e-12)
    assert (X["brand"] == "zeta").any()
    # measured on data whose categories are others than the model's
    report = ranksvm_json("evaluate", test, "--model", out, "--metrics", "ndcg@10")
    data = package.datasets.read_data(test, categorical=["brand", "color"])
    found = package.metrics.evaluate(data.y, scores, data.qid, "ndcg@10").means
    assert report["systems"][0]["metrics"] == pytest.approx(found)
    known = int((X["brand"] != "zeta").argmax())
    explained = ranksvm("explain", out, test, "--query", 0, "--doc", known).stdout
    assert X["brand"][known] in explained
    assert X["color"][known] in explained


def test_choices_among_models_of_text(ranksvm_json, ranksvm, texts):
    out = texts / "model"
    options = ("--valid", texts / "valid.parquet", "--categorical", "brand,color", "--C-range", "0.01,0.1", "-o", out)
    ranksvm_json("train", texts / "train.csv", *options, *ADDITIVE)
    assert set(package.load(out).categories_) == {"brand", "color"}
    ranksvm_json("tune", texts / "train.csv", *options, *ADDITIVE)
    assert set(package.load(out).categories_) == {"brand", "color"}
    stderr = ranksvm("tune", texts / "train.csv", *options, "--model", "linear,additive", code=2).stderr
    assert "features of the training data hold text (brand, color): give --model additive" in stderr


def test_caches_keep_text(ranksvm, ranksvm_json, texts):
    cache, out = texts / "train.rsd", texts / "model"
    ranksvm("convert", texts / "train.csv", cache, "--categorical", "brand,color")
    report = ranksvm_json("info", cache)
    assert report["categories"] == {"brand": 3, "color": 2}
    assert ranksvm_json("info", texts / "train.csv", "--categorical", "2,3")["categories"] == {"brand": 3, "color": 2}
    assert "brand (3 texts), color (2 texts)" in ranksvm("info", cache).stdout
    options = (*ADDITIVE, "-C", 0.1, "-o", out)
    ranksvm("train", cache, *options, "--categorical", "brand,color")
    ranksvm("train", texts / "train.csv", *options, "--categorical", "brand,color", "-o", texts / "other")
    np.testing.assert_array_equal(package.load(out).shape_values_, package.load(texts / "other").shape_values_)
    for source, arguments in (
        (cache, ("-C", 0.1)),
        (cache, ADDITIVE),
        (cache, (*ADDITIVE, "--categorical", "brand")),
    ):
        stderr = ranksvm("train", source, *arguments, "-o", out, code=2).stderr
        assert "give --model additive --categorical brand,color" in stderr
    stderr = ranksvm("train", cache, *options, "--categorical", "brand,color", "--scaler", "standard", code=2).stderr
    assert "features of the training data hold text (brand, color): give --scaler none" in stderr


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_text_that_is_missing_in_every_row(ranksvm, texts, suffix):
    out, test = texts / "model", texts / f"test{suffix}"
    X = shop(texts / "train.csv", 0)
    X.loc[::7, "brand"] = None
    y, qid = np.arange(len(X)) % 3, np.arange(len(X)) // 12
    X.assign(label=y, qid=qid).to_csv(texts / "train.csv", index=False)
    X = X[:24].assign(brand=None)
    table = X.assign(label=y[:24], qid=qid[:24])
    table.to_csv(test, index=False) if suffix == ".csv" else table.to_parquet(test, index=False)
    options = (*ADDITIVE, "--categorical", "brand,color", "--missing-values", "-C", 0.1, "--test", test)
    ranksvm("train", texts / "train.csv", *options, "-o", out)
    printed = ranksvm("predict", out, test, "--missing-values").stdout.split()
    np.testing.assert_allclose(np.array(printed, dtype=float), package.load(out).predict(X), rtol=1e-12)


def test_text_in_one_file_and_numbers_in_the_other(ranksvm, texts, folder):
    out, numbers = texts / "model", texts / "numbers.csv"
    ranksvm("train", texts / "train.csv", *ADDITIVE, "--categorical", "brand,color", "-C", 0.1, "-o", out)
    numbers.write_text("label,qid,price,brand,color\n1,1,0.5,1,0\n0,1,0.25,0,1\n")
    # 0 and 1 are not the places of texts
    stderr = ranksvm("predict", out, numbers, code=1).stderr
    assert "feature 'brand' holds text in the model, and numbers in" in stderr
    package.datasets.write_data(package.datasets.read_data(numbers), texts / "numbers.parquet")
    stderr = ranksvm("predict", out, texts / "numbers.parquet", code=1).stderr
    assert "feature 'brand' holds text in the model, and numbers in" in stderr
    model, frame = package.load(out), package.datasets.read_data(numbers).to_frame(library="pandas")
    with pytest.raises(package.exceptions.DataError, match="column 'brand' of X held text when the model was trained"):
        model.predict(frame[model.feature_names_in_])
    (texts / "sparse.txt").write_text("1 qid:1 1:1\n0 qid:1 2:1\n" + "0 qid:1\n" * 9)
    for path in (folder / "test.txt", texts / "sparse.txt"):
        stderr = ranksvm("predict", out, path, code=1).stderr
        assert "feature 'brand' holds text in the model, and numbers in" in stderr
    ranksvm("convert", texts / "train.csv", texts / "train.rsd", "--categorical", "brand,color")
    ranksvm("train", numbers, "-C", 0.1, "-o", out)
    stderr = ranksvm("predict", out, texts / "train.rsd", code=1).stderr
    assert "train.rsd, and numbers in the model: use one kind in both" in stderr
    # a file in which text stands for these numbers
    valid = ("--valid", texts / "train.csv", "--categorical", "brand,color")
    for command in (("predict", out, texts / "train.csv"), ("train", numbers, *ADDITIVE, *valid, "-o", out)):
        stderr = ranksvm(*command, code=1).stderr
        assert "The training data have no text in such a column" in stderr
        assert "list it" not in stderr


def test_the_report_names_the_categories(ranksvm, texts):
    pytest.importorskip("matplotlib")
    out, page = texts / "model", texts / "report.html"
    ranksvm("train", texts / "train.csv", *ADDITIVE, "--categorical", "brand,color", "-C", 0.1, "-o", out)
    ranksvm("report", out, "--test", texts / "valid.parquet", "-o", page)
    assert "acme" in page.read_text()


def test_a_file_of_text_larger_than_memory(ranksvm, texts, monkeypatch):
    import ranksvm.fits.file_training_set as file_training_set

    monkeypatch.setattr(file_training_set, "used_memory", lambda: 0)
    monkeypatch.setattr(file_training_set, "MIN_MEMORY", 0)
    out, caches = texts / "model", texts / "caches"
    options = (*ADDITIVE, "--categorical", "brand,color", "-C", 0.1, "--tol", 1e-8, "-o", out)
    result = ranksvm("train", texts / "train.csv", *options, "--memory-limit", "20KB", "--cache-dir", caches)
    assert "larger than memory" in result.stderr
    found = package.load(out)
    ranksvm("train", texts / "train.csv", *options)
    expected = package.load(out)
    assert found.categories_ == expected.categories_
    np.testing.assert_allclose(found.shape_values_, expected.shape_values_, atol=1e-4)
    ranksvm("predict", out, texts / "valid.parquet")


def test_folds_of_text(ranksvm, texts):
    for number in (1, 2):
        for name in ("train", "vali", "test"):
            folder = texts / "folds" / f"Fold{number}"
            folder.mkdir(parents=True, exist_ok=True)
            shop(texts / "part.csv", 10 * number + len(name))
            ranksvm("convert", texts / "part.csv", texts / "part.rsd", "--categorical", "brand,color")
            (texts / "part.rsd").rename(folder / f"{name}.txt")
    ranksvm("folds", texts / "folds", *ADDITIVE, "--categorical", "brand,color", "-C", 0.1)
    for options in (("-C", 0.1), (*ADDITIVE, "-C", 0.1)):
        stderr = ranksvm("folds", texts / "folds", *options, code=2).stderr
        assert "give --model additive --categorical brand,color" in stderr


def test_columns_whose_names_are_numbers(ranksvm, tmp_path):
    path, out = tmp_path / "train.csv", tmp_path / "model"
    X = shop(path, 0)
    text = path.read_text().replace("price,brand,color", "5,1,2", 1)
    path.write_text(text)
    ranksvm("train", path, *ADDITIVE, "--categorical", "1,2", "-C", 0.1, "-o", out)
    model = package.load(out)
    assert (model.categorical, list(model.categories_)) == ([1, 2], ["1", "2"])
    assert len(X.columns) == 3
