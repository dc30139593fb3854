"""Low-rank models on the command line."""

import numpy as np
import pytest

import ranksvm as package
from ranksvm.cli.rankers import LowRankChoice


@pytest.fixture(scope="module")
def train(folder):
    return package.datasets.read_data(folder / "train.txt")


@pytest.fixture(scope="module")
def valid(folder):
    return package.datasets.read_data(folder / "valid.txt")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_factorized_model_is_the_estimators_own(ranksvm_json, folder, train, tmp_path):
    out = tmp_path / "model"
    options = ("--n-components", 3, "--learning-rate", "2^-6", "--max-epochs", 30, "--random-state", 1, "-C", 0.5)
    options += ("--init", "uniform")
    report = ranksvm_json(
        *("train", folder / "train.txt", "--test", folder / "test.txt", "--low-rank", "factorized", *options),
        *("--tol", 0.01, "--n-jobs", 1, "-o", out),
    )
    parameters = {
        "n_components": 3,
        "learning_rate": 2**-6,
        "max_epochs": 30,
        "random_state": 1,
        "tol": 0.01,
        "init": "uniform",
    }
    expected = package.FactorizedRankSVM(0.5, **parameters, n_jobs=1).fit(train.X, train.y, qid=train.qid)
    model = package.load(out)
    assert model.get_params() == expected.get_params()
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert report["low_rank"] == {
        "model": "factorized",
        "n_components": 3,
        "best_iteration": None,
        "best_score": None,
        "metric": None,
    }
    assert report["objective"] == expected.objective_
    assert report["iterations"] == expected.n_iter_
    assert report["converged"] is expected.converged_
    assert (report["duality_gap"], report["relative_gap"]) == (None, None)
    assert (report["loss"], report["pair_selection"], report["pair_weighting"]) == ("hinge", "all", "uniform")
    assert report["kernel"] is report["solver"] is report["selection"] is None
    assert report["metrics"]["test"]["pairwise_accuracy"] > 0.7


def test_a_regularized_model_is_the_estimators_own(ranksvm_json, folder, train, tmp_path):
    out = tmp_path / "model"
    options = ("--gamma", "2^-1", "--lam", 2, "--memory-limit", "1GB", "-C", 0.1, "--tol", 0.01)
    report = ranksvm_json(
        *("train", folder / "train.txt", "--test", folder / "test.txt", "--low-rank", "regularized", *options),
        *("--max-iter", 500, "--n-jobs", 1, "-o", out),
    )
    parameters = {"gamma": 0.5, "lam": 2.0, "memory_limit": "1GB", "tol": 0.01, "max_iter": 500}
    expected = package.RegularizedRankSVM(0.1, **parameters, n_jobs=1).fit(train.X, train.y, qid=train.qid)
    model = package.load(out)
    assert model.get_params() == expected.get_params()
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert report["low_rank"] == {
        "model": "regularized",
        "gamma": 0.5,
        "lam": 2.0,
        "mean_rank": expected.ranks_.mean(),
        "largest_rank": expected.ranks_.max(),
    }
    assert report["converged"] is True
    assert report["relative_gap"] == pytest.approx(expected.duality_gap_ / -expected.objective_)
    assert 0 <= report["relative_gap"] <= 0.01
    assert report["metrics"]["test"]["pairwise_accuracy"] > 0.7


def test_other_models_are_of_no_low_rank(ranksvm_json, folder, model):
    assert ranksvm_json("info", model)["low_rank"] is None


def test_the_best_epoch_on_validation_data_is_kept(ranksvm, ranksvm_json, folder, train, valid, tmp_path):
    out = tmp_path / "model"
    arguments = ["train", folder / "train.txt", "--valid", folder / "valid.txt", "--low-rank", "factorized"]
    arguments += ["--early-stopping-rounds", 3, "--metric", "MAP", "--random-state", 0, "-o", out]
    report = ranksvm_json(*arguments)
    expected = package.FactorizedRankSVM(early_stopping_rounds=3, eval_metric="map", random_state=0)
    expected.fit(train.X, train.y, qid=train.qid, eval_set=(valid.X, valid.y), eval_qid=valid.qid)
    np.testing.assert_allclose(package.load(out).coef_, expected.coef_)
    assert report["low_rank"]["best_iteration"] == expected.best_iteration_
    assert report["low_rank"]["best_score"] == pytest.approx(expected.best_score_)
    assert report["metrics"]["valid"]["map"] == pytest.approx(report["low_rank"]["best_score"])
    found = ranksvm(*arguments, "-v")
    assert f"epoch {expected.best_iteration_} kept: map" in " ".join(found.stdout.split())
    assert f"{expected.n_iter_} epochs" in found.stdout
    assert f"epoch {expected.best_iteration_}: valid_0 map {expected.best_score_:.4f}" in found.stderr
    assert "valid_0" not in ranksvm(*arguments).stderr


def test_without_nuclear_norms_the_regularized_model_is_that_of_the_hinge_loss(ranksvm_json, folder, tmp_path):
    arguments = ["train", folder / "train.txt", "-C", 0.1, "--tol", 1e-6, "-o", tmp_path / "model"]
    report = ranksvm_json(*arguments, "--low-rank", "regularized", "--gamma", "0")
    assert -report["objective"] == pytest.approx(ranksvm_json(*arguments, "--loss", "hinge")["objective"], rel=1e-5)


@pytest.mark.parametrize("low_rank", ["factorized", "regularized"])
def test_without_early_stopping_validation_data_change_nothing(ranksvm, ranksvm_json, folder, low_rank, tmp_path):
    arguments = ["train", folder / "train.txt", "--low-rank", low_rank, "-C", 0.1, "--n-jobs", 1]
    arguments += [] if low_rank == "regularized" else ["--random-state", 0, "--max-epochs", 5]
    ranksvm(*arguments, "-o", tmp_path / "plain")
    report = ranksvm_json(*arguments, "--valid", folder / "valid.txt", "-o", tmp_path / "measured")
    assert set(report["metrics"]) == {"train", "valid"}
    plain, measured = (package.load(tmp_path / name) for name in ("plain", "measured"))
    np.testing.assert_array_equal(plain.coef_, measured.coef_)


@pytest.mark.parametrize("low_rank", ["factorized", "regularized"])
def test_the_model_serves_all_commands(ranksvm, ranksvm_json, folder, low_rank, tmp_path):
    out, test = tmp_path / "model", folder / "test.txt"
    arguments = ["train", folder / "train.txt", "--test", test, "--low-rank", low_rank, "-C", 0.1, "-o", out]
    report = ranksvm_json(*arguments, "--scaler", "query-minmax")
    again = ranksvm_json("evaluate", test, "--model", out, "--metrics", "map")
    assert again["systems"][0]["metrics"]["map"] == pytest.approx(report["metrics"]["test"]["map"])
    stdout = ranksvm(*arguments, "-q").stdout
    assert f"low rank {low_rank}" in " ".join(stdout.split())
    assert len(ranksvm("predict", out, test).stdout.splitlines()) == 120
    assert len(ranksvm("rank", out, test, "--format", "tsv").stdout.splitlines()) == 121
    assert "contribut" in ranksvm("explain", out, test).stdout
    info = ranksvm_json("info", out)
    assert info["low_rank"] == {**info["low_rank"], "model": low_rank}
    assert info["objective"] < 0
    assert info["features"] == 5
    stdout = ranksvm("info", out).stdout
    assert low_rank in stdout
    assert ("certificate" in stdout) == (low_rank == "regularized")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lam", "1"], "--lam is an option of --low-rank regularized: give that option too."),
        (["--max-epochs", "1"], "--max-epochs is an option of --low-rank factorized: give that option too."),
        (["--early-stopping-rounds", "1"], "--early-stopping-rounds is an option of --low-rank factorized"),
        (["--gamma", "0.1"], "of kernel models, or of --low-rank regularized: give --kernel or --low-rank too."),
        (["--n-components", "3"], "of kernel models, or of --low-rank factorized: give --kernel or --low-rank too."),
        (["--low-rank", "sparse"], "is not one of"),
        (["--low-rank", "factorized", "--lam", "1"], "--lam is used by --low-rank regularized, not by factorized."),
        (["--low-rank", "factorized", "--gamma", "1"], "--gamma is used by --low-rank regularized, not by factorized."),
        (["--low-rank", "factorized", "--max-iter", "9"], "--max-iter is used by --low-rank regularized, not by"),
        (["--low-rank", "factorized", "--memory-limit", "1GB"], "--memory-limit is used by --low-rank regularized"),
        (["--low-rank", "regularized", "--n-components", "3"], "is used by --low-rank factorized, not by regularized."),
        (["--low-rank", "regularized", "--max-epochs", "3"], "--max-epochs is used by --low-rank factorized"),
        (["--low-rank", "regularized", "--gamma", "scale"], "with --gamma scale: give a number."),
        (["--low-rank", "regularized", "--memory-limit", "1KB"], "more than 1 KB (memory_limit="),
        (["--low-rank", "regularized", "--lam", "0"], "is not a positive number"),
        (["--low-rank", "factorized", "--learning-rate", "fast"], "is not a positive number"),
        (["--low-rank", "factorized", "--kernel", "rbf"], "--kernel: the low-rank models are linear"),
        (["--low-rank", "factorized", "--C-range", "1,2"], "--C-range: the low-rank models are not fitted along"),
        (["--low-rank", "regularized", "--gamma-range", "1,2"], "--gamma-range: the low-rank models are not fitted"),
        (["--low-rank", "factorized", "--loss", "huber"], "--loss: the low-rank models have the hinge loss."),
        (["--low-rank", "factorized", "--loss", "squared_hinge"], "--loss: the low-rank models have the hinge loss."),
        (["--low-rank", "factorized", "--huber-width", "1"], "--huber-width: the low-rank models have the hinge"),
        (
            ["--low-rank", "factorized", "--pair-selection", "adjacent"],
            "--pair-selection: the low-rank models take all",
        ),
        (["--low-rank", "factorized", "--pair-weighting", "per_query"], "--pair-weighting: the low-rank models weight"),
        (
            ["--low-rank", "regularized", "--solver", "tron"],
            "--solver: the command fits the low-rank models by their default solvers.",
        ),
        (["--low-rank", "regularized", "--degree", "2"], "--degree: it is an option of kernels."),
        (["--low-rank", "factorized", "--early-stopping-rounds", "5"], "needs data to evaluate every epoch on: give"),
    ],
)
def test_wrong_usage(ranksvm, folder, tmp_path, options, message):
    stderr = ranksvm("train", folder / "train.txt", "-o", tmp_path / "model", *options, code=2).stderr
    assert message in " ".join(stderr.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--sample-weight", "--query-weight", "--propensity", "--pairs"])
def test_neither_weights_nor_pairs(ranksvm, folder, tmp_path, option):
    arguments = ["train", folder / "train.txt", "--low-rank", "factorized", "-o", tmp_path / "model"]
    stderr = ranksvm(*arguments, option, folder / "valid.txt", code=2).stderr
    reason = "the low-rank models learn from labels." if option == "--pairs" else "the low-rank models weight all pairs"
    assert f"--low-rank with {option}: {reason}" in " ".join(stderr.split())


def test_early_stopping_is_by_the_default_convention(ranksvm, folder, tmp_path):
    arguments = ["train", folder / "train.txt", "--low-rank", "factorized", "-o", tmp_path / "model"]
    arguments += ["--valid", folder / "valid.txt", "--early-stopping-rounds", 2]
    stderr = ranksvm(*arguments, "--convention", "letor", code=2).stderr
    assert "--early-stopping-rounds with --convention letor" in " ".join(stderr.split())


def test_settings_for_another_loss_are_refused(ranksvm, folder, tmp_path):
    settings = tmp_path / "best.json"
    settings.write_text('{"ranksvm": "settings", "settings": {"loss": "squared_hinge", "C": 0.5}}')
    arguments = ["train", folder / "train.txt", "--low-rank", "factorized", "-o", tmp_path / "model"]
    stderr = ranksvm(*arguments, "--settings", settings, code=2).stderr
    assert "--low-rank with --loss: the low-rank models have the hinge loss." in " ".join(stderr.split())
    settings.write_text('{"ranksvm": "settings", "settings": {"loss": "hinge", "pair_selection": "all", "C": 0.5}}')
    ranksvm(*arguments, "--settings", settings, "--max-epochs", 5)
    assert package.load(tmp_path / "model").C == 0.5


def test_steps_too_short_to_change_anything_do_not_converge(ranksvm, ranksvm_json, folder, tmp_path):
    arguments = "train", folder / "train.txt", "-o", tmp_path / "model", "--low-rank", "factorized"
    short = "--learning-rate", "1e-7", "--max-epochs", "3"
    assert ranksvm_json(*arguments, *short)["converged"] is False
    assert "Stopped at max_epochs" in ranksvm(*arguments, *short).stderr


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_err_has_the_scale_of_all_labels_in_folds(train):
    y, qid = np.minimum(train.y, 1.0), train.qid
    y[0] = 4.0  # the highest grade is in one fold
    options = {"random_state": 0, "max_epochs": 5, "n_jobs": 1}
    how = {"metric": "err", "convention": "default", "rule": "best", "label": ""}
    choice = LowRankChoice(lambda C: package.FactorizedRankSVM(C, **options), [0.1], cv=3, **how)
    found = choice.fit(train.X, y, qid=qid).scores_[0]
    for (rows, test), value in zip(package.QueryKFold(3).split(train.X, qid=qid), found, strict=True):
        model = package.FactorizedRankSVM(0.1, **options).fit(train.X[rows], y[rows], qid=qid[rows])
        scores = model.predict(train.X[test])
        assert value == package.metrics.evaluate(y[test], scores, qid[test], "err", max_label=4).means["err"]
