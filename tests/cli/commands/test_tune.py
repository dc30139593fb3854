"""``ranksvm tune``."""

import json
import sys

import numpy as np
import pytest

import ranksvm as package
from ranksvm import RankSVMCV
from ranksvm.metrics import compare
from ranksvm.model_selection import cross_validate

LISTS = ("--loss", "squared_hinge,huber", "--pair-weighting", "uniform,per-query")
RANGE = ("--C-range", "2^-8:2^0:4")


@pytest.fixture
def train(folder):
    return package.datasets.read_data(folder / "train.txt")


@pytest.mark.parametrize("by", ["valid", "folds"])
def test_the_best_combination_is_that_of_the_estimators(ranksvm_json, folder, train, by):
    valid = package.datasets.read_data(folder / "valid.txt")
    arguments = ["--valid", folder / "valid.txt"] if by == "valid" else ["--folds", 3]
    report = ranksvm_json("tune", folder / "train.txt", *arguments, *LISTS, *RANGE, "--metric", "MAP")
    sets = {"eval_set": (valid.X, valid.y), "eval_qid": valid.qid} if by == "valid" else {}
    expected = {}
    for loss in ("squared_hinge", "huber"):
        for weighting in ("uniform", "per_query"):
            ranker = RankSVMCV([2**-8, 2**-4, 1], metric="map", cv=3, loss=loss, pair_weighting=weighting)
            expected[loss, weighting] = ranker.fit(train.X, train.y, qid=train.qid, **sets)
    assert len(report["combinations"]) == len(expected)
    for item in report["combinations"]:
        ranker = expected[item["loss"], item["pair_weighting"]]
        assert item["C"] == ranker.C_
        assert item["score"] == pytest.approx(ranker.best_score_)
        assert [each["score"] for each in item["candidates"]] == pytest.approx(ranker.mean_scores_.tolist())
    scores = [item["score"] for item in report["combinations"]]
    assert scores == sorted(scores, reverse=True)
    assert [item["chosen"] for item in report["combinations"]] == [True, False, False, False]
    best = report["combinations"][0]
    assert {name: report["chosen"][name] for name in ("C", "loss", "pair_weighting")} == {
        name: best[name] for name in ("C", "loss", "pair_weighting")
    }
    assert report["settings"]["C"] == best["C"]
    assert report["interrupted"] is False
    assert report["by"] == ("validation data" if by == "valid" else "3 folds of queries")


def test_the_best_is_compared_with_the_next_query_by_query(ranksvm_json, folder, train):
    report = ranksvm_json("tune", folder / "train.txt", "--pair-weighting", "uniform,label-gap", *RANGE, "--folds", 3)
    evaluations = []
    for item in report["combinations"]:
        ranker = package.RankSVM(C=item["C"], pair_weighting=item["pair_weighting"])
        evaluations.append(cross_validate(ranker, train.X, train.y, qid=train.qid, cv=3).pooled())
    expected = compare(evaluations[1], evaluations[0], "ndcg@10")
    found = report["against_runner_up"]
    assert found["difference"] == pytest.approx(expected.difference)
    assert found["p_value"] == pytest.approx(expected.p_value)
    assert found["runner_up"]["pair_weighting"] == report["combinations"][1]["pair_weighting"]
    assert ranksvm_json("tune", folder / "train.txt", *RANGE)["against_runner_up"] is None


def test_model_and_choice_are_saved_and_train_repeats_them(ranksvm, ranksvm_json, folder, tmp_path):
    model, choice, again = tmp_path / "tuned", tmp_path / "best.json", tmp_path / "again"
    report = ranksvm_json(
        *("tune", folder / "train.txt", "--test", folder / "test.txt", "-o", model, "--save-choice", choice),
        *("--loss", "huber", "--huber-width", "0.5,1", "--scaler", "standard,query-minmax", "--pair-selection"),
        *("adjacent", *RANGE, "--tol", "1e-6", "--max-iter", 500),
    )
    assert report["files"] == {"model": str(model), "settings": str(choice), "plot": None}
    saved = json.loads(choice.read_text())
    assert saved["settings"] == report["settings"]
    assert saved["found"]["score"] == report["combinations"][0]["score"]
    trained = ranksvm_json(
        "train", folder / "train.txt", "--test", folder / "test.txt", "--settings", choice, "-o", again
    )
    names = ("loss", "huber_width", "pair_selection", "pair_weighting", "scaler", "C", "tol")
    assert [trained[name] for name in names] == [report["chosen"][name] for name in names]
    assert trained["metrics"]["test"] == pytest.approx(report["chosen"]["metrics"]["test"], abs=1e-3)
    assert package.load(again).named_steps["ranker"].max_iter == 500
    coefs = [package.load(path).named_steps["ranker"].coef_ for path in (model, again)]
    np.testing.assert_allclose(*coefs, rtol=0.01, atol=0.01)


def test_what_is_given_goes_before_a_settings_file(ranksvm, ranksvm_json, folder, tmp_path):
    choice = tmp_path / "best.json"
    choice.write_text('{"ranksvm": "settings", "settings": {"loss": "huber", "huber_width": 0.5, "C": 0.125}}')
    arguments = ["train", folder / "train.txt", "-o", tmp_path / "model", "--settings", choice]
    report = ranksvm_json(*arguments)
    assert (report["loss"], report["huber_width"], report["C"]) == ("huber", 0.5, 0.125)
    report = ranksvm_json(*arguments, "--loss", "squared_hinge", "-C", "0.25")
    assert (report["loss"], report["C"]) == ("squared_hinge", 0.25)
    report = ranksvm_json(*arguments, "--C-range", "1,2")
    assert report["C"] in (1, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not a settings file: "),
        ("[1]", "is not a settings file, as `ranksvm tune --save-choice` writes them."),
        ('{"loss": "hinge"}', "is not a settings file, as"),
        ('{"ranksvm": "settings"}', "'settings' is missing"),
        ('{"ranksvm": "settings", "settings": {"speed": 3}}', "unknown setting 'speed': expected some of loss,"),
        ('{"ranksvm": "settings", "settings": {"C": -1}}', "C: '-1' is not a positive number"),
        ('{"ranksvm": "settings", "settings": {"loss": "log"}}', "loss: 'log' is not one of"),
    ],
)
def test_bad_settings_files(ranksvm, folder, tmp_path, content, message):
    choice = tmp_path / "best.json"
    choice.write_text(content)
    stderr = ranksvm("train", folder / "train.txt", "-o", tmp_path / "m", "--settings", choice, code=2).stderr
    assert str(choice) in stderr
    assert message in stderr


def test_a_person_sees_table_lines_and_notes(ranksvm, folder, tmp_path):
    result = ranksvm("tune", folder / "train.txt", *LISTS, *RANGE, "-o", tmp_path / "m", "--rule", "one-standard-error")
    for text in [
        "By ndcg@10 on 5 folds of queries, one standard error rule: best first",
        "ndcg@10 (default) ± standard error",
        "weighting",
        "over runner-up",
    ]:
        assert text in result.stdout
    assert result.stdout.count("* ") == 2  # in the title and before the best
    assert "relative duality gap" in result.stdout
    lines = result.stderr.splitlines()
    assert len(lines) == 1 + 4 + 1  # the file read, the combinations, the file written
    assert {line[:6] for line in lines[1:5]} == {"1 of 4", "2 of 4", "3 of 4", "4 of 4"}
    assert ranksvm("tune", folder / "train.txt", *RANGE, "--quiet").stderr == ""
    stderr = ranksvm("tune", folder / "train.txt", *RANGE, "--folds", 2, "-v").stderr
    assert stderr.count(" on fold ") == 3 * 2
    assert "iteration" not in stderr


def test_a_c_at_the_end_of_the_range_is_noted(ranksvm, folder):
    assert "the largest C tried was chosen" in ranksvm("tune", folder / "train.txt", "--C-range", "1e-9,1e-2").stdout
    assert " C tried was chosen" not in ranksvm("tune", folder / "train.txt", "--C-range", "1").stdout


@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupt_shows_what_was_compared(ranksvm, folder, tmp_path, monkeypatch, as_json):
    fit = RankSVMCV.fit

    def interrupted(self, *arguments, **others):
        if self.pair_weighting == "per_query":
            raise KeyboardInterrupt
        return fit(self, *arguments, **others)

    monkeypatch.setattr(RankSVMCV, "fit", interrupted)
    result = ranksvm(
        *("tune", folder / "train.txt", *LISTS, *RANGE, "--n-jobs", 1, "-o", tmp_path / "m"),
        *("--save-choice", tmp_path / "best.json", *["--json"] * as_json),
        code=130,
    )
    assert "Interrupted: unfinished files were not kept." in result.stderr
    assert not list(tmp_path.iterdir())
    if as_json:
        report = json.loads(result.stdout)
        assert report["interrupted"] is True
        assert [item["pair_weighting"] for item in report["combinations"]] == ["uniform"]
    else:
        assert "1 of 4 compared" in result.stdout


def test_an_error_shows_what_was_compared(ranksvm, folder, monkeypatch):
    fit = RankSVMCV.fit

    def failing(self, *arguments, **others):
        if self.loss == "huber":
            raise package.exceptions.DataError("features are too large")
        return fit(self, *arguments, **others)

    monkeypatch.setattr(RankSVMCV, "fit", failing)
    arguments = ["tune", folder / "train.txt", *RANGE, "--n-jobs", 1, "--loss"]
    result = ranksvm(*arguments, "squared_hinge,huber", code=1)
    assert "1 of 2 compared" in result.stdout
    assert result.stderr.endswith("Error: features are too large\n")
    assert ranksvm(*arguments, "huber", code=1).stdout == ""


def test_what_needs_labels_is_refused_with_pairs_before_the_first_fit(ranksvm, folder, tmp_path):
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("0 1\n")
    arguments = ["tune", folder / "train.txt", *RANGE, "--pairs", pairs, "--valid", folder / "valid.txt"]
    result = ranksvm(*arguments, "--pair-weighting", "uniform,label-gap", code=2)
    assert "is computed from labels" in result.stderr
    assert "1 of 2" not in result.stderr


def test_fits_that_did_not_converge_are_counted(ranksvm, folder):
    arguments = ["tune", folder / "train.txt", *RANGE, "--scaler", "none,minmax", "--folds", 2]
    stderr = ranksvm(*arguments, "--max-iter", 1, "--tol", "1e-12").stderr
    assert stderr.count("Warning: ") == 1
    assert "fits did not converge; the first message was: C = " in stderr


def test_weights_and_pairs_are_used(ranksvm_json, folder, train, tmp_path):
    weights, pairs = tmp_path / "weights.txt", tmp_path / "pairs.txt"
    numbers = np.random.default_rng(0).uniform(0.5, 2, len(train.y)).round(3)
    weights.write_text("".join(f"{number}\n" for number in numbers))
    pairs.write_text("0 1\n9 8 0.5\n2 5\n")
    report = ranksvm_json("tune", folder / "train.txt", "--sample-weight", weights, *RANGE, "--folds", 3)
    ranker = RankSVMCV([2**-8, 2**-4, 1], cv=3).fit(train.X, train.y, qid=train.qid, sample_weight=numbers)
    assert report["combinations"][0]["score"] == pytest.approx(ranker.best_score_)
    assert report["weights"] == {"sample_weight": str(weights)}
    report = ranksvm_json("tune", folder / "train.txt", "--pairs", pairs, "--valid", folder / "valid.txt", *RANGE)
    assert report["chosen"]["pairs"] == 3
    assert report["pairs_from"] == str(pairs)


def test_a_plot_without_matplotlib_is_refused_at_once(ranksvm, folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    stderr = ranksvm("tune", folder / "train.txt", *RANGE, "--plot", tmp_path / "curves.png", code=1).stderr
    assert stderr == 'Error: plotting needs matplotlib: pip install "ranksvm[plot]"\n'


@pytest.mark.parametrize("suffix", [".png", ".SVG"])
def test_a_plot(ranksvm, folder, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"curves{suffix}"
    ranksvm("tune", folder / "train.txt", *LISTS, *RANGE, "--folds", 2, "--plot", path)
    assert path.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--loss", "hinge,log"], "'log' is not one of"),
        (["--pair-weighting", ","], "the list is empty"),
        (["--huber-width", "0"], "is not a range"),
        (["--metric", "ndgc"], "unknown metric 'ndgc'"),
        (["--n-jobs", "0"], "n_jobs must be"),
        (["--folds", "500"], "--folds 500, but the data have only 30 queries"),
        (["--plot", "curves.xyz"], "the file name extension must be one of"),
    ],
)
def test_wrong_usage(ranksvm, folder, arguments, message):
    assert message in ranksvm("tune", folder / "train.txt", *RANGE, *arguments, code=2).stderr


def test_a_scaler_that_fills_sparse_data_is_refused_at_once(ranksvm, tmp_path):
    path = tmp_path / "sparse.txt"
    path.write_text("".join(f"{i % 2} qid:{i // 4} {1 + 3 * i}:1\n" for i in range(400)))
    stderr = ranksvm("tune", path, "--scaler", "none,minmax", code=2).stderr
    assert "--scaler minmax would make sparse data dense" in stderr
    assert "1 of 2" not in stderr


def test_real_data(ranksvm_json, shared_data):
    fold = shared_data / "MQ2008" / "Fold1"
    report = ranksvm_json(
        *("tune", fold / "train.txt.gz", "--valid", fold / "vali.txt.gz", "--test", fold / "test.txt.gz"),
        *("--pair-weighting", "uniform,per_query", "--C-range", "2^-3:2^7:5", "--metric", "mean_ndcg"),
        *("--convention", "letor"),
    )
    assert report["chosen"]["pairs"] == 52_325
    assert report["chosen"]["metrics"]["test"]["mean_ndcg"] > 0.45


def test_signs_hold_for_every_combination_and_go_to_the_settings(ranksvm_json, folder, tmp_path):
    choice, model = tmp_path / "best.json", tmp_path / "model"
    ranksvm_json(
        *("tune", folder / "train.txt", "--loss", "squared_hinge,huber", "--C-range", "0.01,1", "--folds", 2),
        *("--monotone", "decreasing", "--save-choice", choice, "-o", model),
    )
    assert (package.load(model).coef_ <= 0.0).all()
    report = ranksvm_json("train", folder / "train.txt", "--settings", choice, "-o", tmp_path / "again")
    assert report["monotone"] == {"increasing": 0, "decreasing": 5}


@pytest.mark.parametrize("other", [("--kernel", "rbf"), ("--low-rank", "factorized")])
@pytest.mark.parametrize("linear", [(), ("--no-linear",)])
def test_signs_are_refused_beside_models_that_cannot_keep_them(ranksvm, folder, other, linear):
    result = ranksvm("tune", folder / "train.txt", *linear, *other, "--monotone", "increasing", code=2)
    assert f"{other[0]} with --monotone" in result.stderr


# ---- kernels and models of low rank

KERNELS = ("--kernel", "rbf,cosine", "--gamma-range", "0.1,1", "--C-range", "0.01,1", "--folds", 2)


def test_kernels_beside_linear_models(ranksvm_json, folder, train):
    report = ranksvm_json("tune", folder / "train.txt", *KERNELS)
    found = {item["kernel"]: item for item in report["combinations"]}
    assert set(found) == {None, "rbf", "cosine"}
    how = {"cv": 2, "metric": "ndcg@10"}
    rbf = package.KernelRankSVMCV([0.01, 1], [0.1, 1], **how).fit(train.X, train.y, qid=train.qid)
    cosine = package.KernelRankSVMCV([0.01, 1], kernel="cosine", **how).fit(train.X, train.y, qid=train.qid)
    linear = RankSVMCV([0.01, 1], **how).fit(train.X, train.y, qid=train.qid)
    for name, ranker in (("rbf", rbf), ("cosine", cosine), (None, linear)):
        assert found[name]["C"] == ranker.C_
        assert found[name]["score"] == pytest.approx(ranker.best_score_)
        assert found[name]["standard_error"] == pytest.approx(
            ranker.standard_errors_[ranker.mean_scores_ == ranker.best_score_][0]
        )
    assert found["rbf"]["gamma"] == rbf.gamma_
    assert "gamma" not in found[None]
    assert "approximation" not in found["rbf"]
    assert len(found["rbf"]["candidates"]) == 4


@pytest.mark.parametrize("by", ["valid", "folds"])
def test_models_of_low_rank_beside_linear_ones(ranksvm_json, folder, train, by):
    valid = package.datasets.read_data(folder / "valid.txt")
    arguments = ["--valid", folder / "valid.txt"] if by == "valid" else ["--folds", 3]
    report = ranksvm_json(
        *("tune", folder / "train.txt", *arguments, "--low-rank", "factorized,regularized", "--rank", "2,3"),
        *("--gamma", "0.5,2", "--C-range", "0.01,1", "--random-state", 0, "--rule", "one-standard-error"),
    )
    models = [(item["low_rank"], item.get("n_components"), item.get("gamma")) for item in report["combinations"]]
    assert sorted(models, key=str) == sorted(
        [
            *((None, None, None), ("factorized", 2, None), ("factorized", 3, None)),
            *(("regularized", None, 0.5), ("regularized", None, 2)),
        ],
        key=str,
    )
    assert {item["loss"] for item in report["combinations"] if item["low_rank"]} == {"hinge"}
    item = report["combinations"][models.index(("regularized", None, 2))]
    for place, C in enumerate([0.01, 1]):
        ranker = package.RegularizedRankSVM(C, gamma=2)
        if by == "valid":
            scores = ranker.fit(train.X, train.y, qid=train.qid).predict(valid.X)
            expected = package.metrics.evaluate(valid.y, scores, valid.qid, ["ndcg@10"]).means["ndcg@10"]
        else:
            expected = cross_validate(ranker, train.X, train.y, qid=train.qid, cv=3).means["ndcg@10"]
        assert item["candidates"][place]["score"] == pytest.approx(expected, abs=1e-3)
        assert item["candidates"][place]["standard_error"] > 0


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["--kernel", "rbf", "--gamma-range", "0.1,1"], "KernelRankSVMCV"),
        (["--kernel", "poly", "--gamma-range", "0.5", "--degree", 2, "--coef0", 0.5], "KernelRankSVMCV"),
        (["--kernel", "rbf", "--approximation", "nystroem", "--n-components", "5,20", "--random-state", 0], None),
        (["--low-rank", "factorized", "--rank", "2", "--random-state", 0], "FactorizedRankSVM"),
        (["--low-rank", "factorized", "--early-stopping-rounds", 5, "--random-state", 0], "FactorizedRankSVM"),
        (["--low-rank", "regularized", "--lam", "0.5,2"], "RegularizedRankSVM"),
    ],
)
def test_train_repeats_the_best_model_of_any_kind(ranksvm, ranksvm_json, folder, tmp_path, arguments, kind):
    model, choice, again = tmp_path / "tuned", tmp_path / "best.json", tmp_path / "again"
    report = ranksvm_json(
        *("tune", folder / "train.txt", "--valid", folder / "valid.txt", "--no-linear", *arguments),
        *("--C-range", "0.1,1", "-o", model, "--save-choice", choice, "--tol", "1e-6", "--scaler", "standard"),
    )
    trained = ranksvm_json("train", folder / "train.txt", "--settings", choice, "-o", again)
    for name in ("C", "loss", "scaler"):
        assert trained[name] == report["chosen"][name]
    for name in ("kernel", "low_rank"):
        if report["chosen"][name] is not None:
            same = ("name", "gamma", "degree", "coef0", "approximation", "n_components", "model", "lam")
            there = {key: value for key, value in report["chosen"][name].items() if key in same}
            assert {key: trained[name][key] for key in there} == pytest.approx(there)
    if kind is not None:
        ranker = package.load(model).steps[-1][1]
        assert type(ranker).__name__ == kind
        assert not isinstance(getattr(ranker, "C", None), np.floating)
    test = package.datasets.read_data(folder / "test.txt")
    scores = [package.load(path).predict(test.X) for path in (model, again)]
    np.testing.assert_allclose(*scores, atol=0.02 * np.ptp(scores[0]))


def test_costly_models_try_a_part_of_the_default_range(ranksvm, ranksvm_json, folder):
    arguments = ["tune", folder / "train.txt", "--valid", folder / "valid.txt", "--kernel", "cosine"]
    report = ranksvm_json(*arguments)
    Cs = {item["kernel"]: [each["C"] for each in item["candidates"]] for item in report["combinations"]}
    assert len(Cs[None]) == 21
    assert Cs["cosine"] == Cs[None][::4]
    result = ranksvm(*arguments, "--memory-limit", "100KB", code=2)
    assert "Kernels and low-rank models: 6 fits on 240 rows, with every fourth C from 2^-15 to 2^5" in result.stderr
    assert "a kernel matrix of 240 rows takes 115 KB, more than 100 KB" in result.stderr
    assert "raise memory_limit" in result.stderr
    assert "1 of 2 compared" in result.stdout
    assert (
        "memory_limit must be None, a positive number" in ranksvm(*arguments, "--memory-limit", "much", code=2).stderr
    )


def test_plots_of_kernels_and_low_rank(ranksvm, folder, tmp_path):
    pytest.importorskip("matplotlib")
    arguments = ["tune", folder / "train.txt", "--valid", folder / "valid.txt", "--C-range", "0.1,1"]
    for models in (
        ["--kernel", "rbf"],
        ["--no-linear", "--low-rank", "regularized"],
        ["--no-linear", "--kernel", "rbf"],
    ):
        ranksvm(*arguments, *models, "--plot", tmp_path / "plot.png")
        assert (tmp_path / "plot.png").read_bytes()[:5] == b"\x89PNG\r"
        (tmp_path / "plot.png").unlink()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--no-linear"], "--no-linear leaves nothing to compare"),
        (["--gamma-range", "1"], "--gamma-range is an option of kernels"),
        (["--kernel", "rbf", "--degree", "2"], "--degree is used by --kernel poly"),
        (["--kernel", "rbf", "--n-components", "5"], "--n-components is an option of --approximation"),
        (["--n-components", "5"], "--n-components is an option of --approximation"),
        (["--kernel", "poly", "--approximation", "fourier"], "is known for rbf and laplacian only, not for poly"),
        (["--gamma", "1"], "--gamma is an option of --low-rank regularized"),
        (["--rank", "1"], "--rank is an option of --low-rank factorized"),
        (["--low-rank", "factorized", "--rank", "0"], "is not a list of whole numbers from 1"),
        (["--low-rank", "factorized", "--early-stopping-rounds", "3"], "give --valid"),
        (["--memory-limit", "1GB"], "--memory-limit is an option of kernels"),
    ],
)
def test_options_of_models_that_are_not_compared(ranksvm, folder, arguments, message):
    assert message in ranksvm("tune", folder / "train.txt", *RANGE, *arguments, code=2).stderr


def test_low_rank_with_weights_is_refused(ranksvm, folder, tmp_path):
    (tmp_path / "weights.txt").write_text("1\n" * 240)
    stderr = ranksvm(
        *("tune", folder / "train.txt", "--low-rank", "factorized", "--sample-weight", tmp_path / "weights.txt"), code=2
    ).stderr
    assert "--low-rank with --sample-weight: the low-rank models weight all pairs equally" in stderr
