"""Kernel models on the command line."""

import numpy as np
import pytest

import ranksvm as package


@pytest.fixture(scope="module")
def train(folder):
    return package.datasets.read_data(folder / "train.txt")


def test_the_model_is_the_estimators_own(ranksvm_json, folder, train, tmp_path):
    out = tmp_path / "model"
    options = ("--kernel", "poly", "--gamma", "2^-2", "--degree", 2, "--coef0", 0.5, "-C", 0.1, "--tol", "1e-6")
    limits = ("--memory-limit", "1GB", "--kernel-dtype", "float64", "--loss", "huber", "--solver", "tron")
    report = ranksvm_json("train", folder / "train.txt", "--test", folder / "test.txt", *options, *limits, "-o", out)
    parameters = {"kernel": "poly", "gamma": 0.25, "degree": 2, "coef0": 0.5, "tol": 1e-6, "loss": "huber"}
    parameters |= {"memory_limit": "1GB", "kernel_dtype": "float64", "solver": "tron"}
    expected = package.KernelRankSVM(0.1, **parameters).fit(train.X, train.y, qid=train.qid)
    model = package.load(out)
    assert model.get_params() == expected.get_params()
    np.testing.assert_allclose(model.predict(train.X), expected.predict(train.X), atol=1e-6)
    assert report["objective"] == pytest.approx(expected.objective_, rel=1e-9)
    assert report["kernel"] == {
        "name": "poly",
        "gamma": 0.25,
        "degree": 2,
        "coef0": 0.5,
        "approximation": None,
        "n_components": None,
        "landmarks": None,
        "terms": len(model.dual_coef_),
        "products": model.n_kernel_products_,
        "pruned": 0,
    }
    assert report["solver"] == "tron"
    assert report["selection"] is None


def test_a_linear_model_has_no_kernel(ranksvm_json, folder, tmp_path):
    assert ranksvm_json("train", folder / "train.txt", "-o", tmp_path / "model")["kernel"] is None


@pytest.mark.parametrize(
    ("options", "terms"),
    [
        (["--approximation", "nystroem", "--landmarks", "kmeans++"], "20 kmeans++ landmarks"),
        (["--approximation", "fourier"], "20 random features"),
    ],
)
def test_approximations_are_told_of_and_written(options, terms, ranksvm, folder, train, tmp_path):
    out = tmp_path / "model"
    options = ["--kernel", "rbf", *options, "--n-components", 20, "--random-state", 3]
    stdout = ranksvm("train", folder / "train.txt", *options, "-o", out, "-q").stdout
    assert terms in stdout
    assert f"approximated by {options[3]}" in stdout
    info = ranksvm("info", out).stdout
    assert terms in info
    assert f"{out.stat().st_size:,} bytes" in info
    model = package.load(out)
    assert (model.n_components, model.random_state) == (20, 3)
    again = package.KernelRankSVM(**model.get_params()).fit(train.X, train.y, qid=train.qid)
    np.testing.assert_allclose(model.predict(train.X), again.predict(train.X), atol=1e-6)


@pytest.mark.parametrize("by", ["valid", "folds"])
def test_C_and_gamma_are_the_best_of_their_ranges(ranksvm_json, folder, tmp_path, by):
    valid = ["--valid", folder / "valid.txt"] if by == "valid" else ["--folds", 3]
    report = ranksvm_json(
        *("train", folder / "train.txt", *valid, "--kernel", "rbf", "--C-range", "0.01,1", "--gamma-range"),
        *("2^-4:2^0:2", "-o", tmp_path / "model"),
    )
    tried = report["selection"]["candidates"]
    assert [(item["gamma"], item["C"]) for item in tried] == [(g, C) for g in (1 / 16, 1 / 4, 1) for C in (0.01, 1)]
    best = max(item["score"] for item in tried)
    chosen = {(item["gamma"], item["C"]) for item in tried if item["score"] == best}
    assert (report["kernel"]["gamma"], report["C"]) in chosen
    assert {len(item["fold_scores"]) for item in tried} == ({1} if by == "valid" else {3})
    assert type(package.load(tmp_path / "model")).__name__ == "KernelRankSVMCV"


def test_one_of_the_two_may_be_given(ranksvm, ranksvm_json, folder, tmp_path):
    arguments = ["train", folder / "train.txt", "--valid", folder / "valid.txt", "-o", tmp_path / "model"]
    report = ranksvm_json(*arguments, "--kernel", "rbf", "-C", 0.5, "--gamma-range", "0.1,0.2")
    assert {item["C"] for item in report["selection"]["candidates"]} == {0.5}
    report = ranksvm_json(*arguments, "--kernel", "rbf", "--gamma", 0.1, "--C-range", "0.1,0.2")
    assert [item["gamma"] for item in report["selection"]["candidates"]] == [0.1, 0.1]
    assert "C by ndcg@10 on validation data" in ranksvm(*arguments, "--kernel", "cosine", "--C-range", "1,2").stdout
    report = ranksvm_json(*arguments, "--kernel", "cosine", "--C-range", "0.1,0.2")
    assert [item["gamma"] for item in report["selection"]["candidates"]] == [None, None]
    report = ranksvm_json(*arguments, "--kernel", "laplacian", "--C-range", "0.1")
    assert len(report["selection"]["candidates"]) == 4  # gammas around that of scale


def test_a_person_sees_a_table_of_C_by_gamma(ranksvm, folder, tmp_path):
    arguments = ["train", folder / "train.txt", "--valid", folder / "valid.txt", "--kernel", "rbf"]
    result = ranksvm(*arguments, "--C-range", "2^-2:2^0", "--gamma-range", "0.1,0.5", "-o", tmp_path / "model")
    for text in ["C and gamma by ndcg@10 on validation data (* chosen)", "C \\ gamma", "0.25 = 2^-2", "0.1", "0.5"]:
        assert text in result.stdout
    assert result.stdout.count("* ") == 2  # one in the title
    for text in ["support vectors", "kernel products", "gamma tried was chosen"]:
        assert text in result.stdout
    assert "gamma = 2^-1, C = 1: ndcg@10" in result.stderr


@pytest.fixture(scope="module")
def kernel_model(folder, train):
    path = folder / "kernel.rsvm"
    package.KernelRankSVM(0.1, gamma=0.5).fit(train.X, train.y, qid=train.qid).save(path)
    return path


def test_other_commands_take_kernel_models(ranksvm, ranksvm_json, folder, kernel_model, model, tmp_path):
    test = folder / "test.txt"
    data = package.datasets.read_data(test)
    expected = package.load(kernel_model).predict(data.X)
    scores = ranksvm_json("predict", kernel_model, test)["scores"]
    np.testing.assert_allclose(scores, expected)
    assert len(ranksvm("rank", kernel_model, test, "--format", "tsv").stdout.splitlines()) == 1 + len(expected)
    systems = ranksvm_json("evaluate", test, "-m", model, "-m", kernel_model)["systems"]
    assert len(systems) == 2
    report = ranksvm_json("info", kernel_model)
    assert report["kernel"]["terms"] == len(package.load(kernel_model).dual_coef_)
    assert report["bytes"] == kernel_model.stat().st_size
    assert ranksvm_json("info", model)["kernel"] is None
    pruned = package.load(kernel_model)
    n_dropped = pruned.prune(0.1).n_dropped
    pruned.save(tmp_path / "pruned")
    assert f"{n_dropped} pruned" in ranksvm("info", tmp_path / "pruned").stdout


def test_explain_says_what_works(ranksvm, folder, kernel_model):
    stderr = ranksvm("explain", kernel_model, folder / "test.txt", code=2).stderr
    assert "the score of a KernelRankSVM is not a sum over the features" in stderr
    assert "explain a RankSVM" in stderr


def test_a_scaler_goes_with_the_kernel(ranksvm_json, folder, tmp_path):
    out = tmp_path / "model"
    options = ["--kernel", "rbf", "--scaler", "query-minmax", "--test", folder / "test.txt"]
    report = ranksvm_json("train", folder / "train.txt", *options, "-o", out)
    again = ranksvm_json("evaluate", folder / "test.txt", "--model", out, "--metrics", "map")
    assert again["systems"][0]["metrics"]["map"] == pytest.approx(report["metrics"]["test"]["map"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--degree", "2"], "--degree is an option of kernel models: give --kernel too."),
        (["--gamma-range", "0.1,1"], "--gamma-range is an option of kernel models"),
        (["--kernel", "sigmoid"], "is not one of"),
        (["--kernel", "precomputed"], "is not one of"),
        (
            ["--kernel", "linear", "--gamma", "0.1"],
            "--gamma is used by --kernel rbf or poly or laplacian, not by linear",
        ),
        (["--kernel", "rbf", "--degree", "2"], "--degree is used by --kernel poly, not by rbf"),
        (["--kernel", "rbf", "--landmarks", "uniform"], "--landmarks is an option of --approximation nystroem."),
        (["--kernel", "rbf", "--n-components", "5"], "is an option of --approximation nystroem or fourier."),
        (["--kernel", "poly", "--approximation", "fourier"], "'fourier' is for the kernels 'rbf' and 'laplacian'"),
        (["--kernel", "rbf", "--gamma", "1", "--gamma-range", "1,2"], "give --gamma or --gamma-range, not both"),
        (["--kernel", "rbf", "--gamma", "scale", "--C-range", "1,2"], "give a number, or --gamma-range"),
        (["--kernel", "rbf", "--gamma", "-1"], "is not a positive number"),
        (["--kernel", "rbf", "--gamma", "0"], "--gamma 0: the gamma of a kernel is a positive number."),
        (["--kernel", "rbf", "--memory-limit", "much"], "memory_limit must be None"),
        (["--kernel", "rbf", "--memory-limit", "1KB"], "memory"),
    ],
)
def test_wrong_usage(ranksvm, folder, tmp_path, options, message):
    stderr = ranksvm("train", folder / "train.txt", "-o", tmp_path / "model", *options, code=2).stderr
    assert message in " ".join(stderr.split())
    assert not list(tmp_path.iterdir())


def test_real_data(ranksvm_json, shared_data, tmp_path):
    fold = shared_data / "MQ2008" / "Fold1"
    report = ranksvm_json(
        *("train", fold / "train.txt.gz", "--test", fold / "test.txt.gz", "--kernel", "rbf", "--gamma", "2^-3"),
        *("-C", "2^-3", "-o", tmp_path / "model"),
    )
    assert report["objective"] == pytest.approx(2976.21924, rel=2e-4)
    assert report["metrics"]["test"]["pairwise_accuracy"] == pytest.approx(0.8213, abs=0.005)
