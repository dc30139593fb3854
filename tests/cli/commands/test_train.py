"""``ranksvm train``."""

import re

import numpy as np
import pytest

import ranksvm as package
from ranksvm.fits.linear import LinearProblem


def test_the_model_is_the_estimators_own(ranksvm_json, folder, tmp_path):
    out = tmp_path / "model"
    report = ranksvm_json("train", folder / "train.txt", "--test", folder / "test.txt", "-C", "2^-2", "-o", out)
    model = package.load(out)
    assert model.C == report["C"] == 0.25
    data = package.datasets.read_data(folder / "train.txt")
    expected = package.RankSVM(C=0.25).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
    assert report["objective"] == pytest.approx(expected.objective_, rel=1e-9)
    assert report["pairs"] == expected.n_pairs_
    assert report["converged"] is True
    assert 0 <= report["relative_gap"] <= 1e-4
    assert set(report["metrics"]) == {"train", "test"}
    assert set(report["metrics"]["test"]) == {"ndcg@10", "map", "mrr", "pairwise_accuracy"}
    assert report["metrics"]["test"]["pairwise_accuracy"] > 0.75
    assert report["data"]["train"] == {
        "path": str(folder / "train.txt"),
        "rows": 240,
        "queries": 30,
        "features": 5,
    }
    assert {"reading", "training", "evaluating"} <= set(report["seconds"])
    assert report["selection"] is None


@pytest.mark.parametrize("by", ["valid", "folds"])
def test_c_is_the_best_of_its_range(ranksvm_json, folder, tmp_path, by):
    valid = ["--valid", folder / "valid.txt"] if by == "valid" else ["--folds", 3]
    report = ranksvm_json(
        *("train", folder / "train.txt", *valid, "--C-range", "2^-12:2^0:4", "--metric", "MAP"),
        *("--convention", "letor", "-o", tmp_path / "model"),
    )
    selection = report["selection"]
    assert [item["C"] for item in selection["candidates"]] == [2**-12, 2**-8, 2**-4, 1]
    best = max(selection["candidates"], key=lambda item: item["score"])
    assert report["C"] in {item["C"] for item in selection["candidates"] if item["score"] == best["score"]}
    assert selection["metric"] == "map"
    assert selection["by"] == ("validation data" if by == "valid" else "3 folds of queries")
    assert {len(item["fold_scores"]) for item in selection["candidates"]} == ({1} if by == "valid" else {3})
    if by == "valid":
        assert report["metrics"]["valid"]["map"] == pytest.approx(best["score"], abs=1e-3)
    assert report["C"] == package.load(tmp_path / "model").C_


def test_a_person_sees_metrics_certificate_pairs_and_times(ranksvm, folder, tmp_path):
    result = ranksvm(
        *("train", folder / "train.txt", "--valid", folder / "valid.txt", "--test", folder / "test.txt"),
        *("--C-range", "0.01,0.1", "-o", tmp_path / "model"),
    )
    for text in ["C by ndcg@10 on validation data", "chosen", "train", "valid", "test", "ndcg@10", "map"]:
        assert text in result.stdout
    for text in ["relative duality gap", "pairs", "reading", "training", str(tmp_path / "model")]:
        assert text in result.stdout
    assert "Read " in result.stderr
    assert "30 queries" in result.stderr


def test_numbers_are_written_alike_and_with_grammar(ranksvm, folder, tmp_path):
    arguments = ["train", folder / "train.txt", "-o", tmp_path / "model", "--valid", folder / "valid.txt", "-q"]
    stdout = ranksvm(*arguments, "--C-range", "2^-4:2^0:2").stdout
    for text in ["0.0625 = 2^-4", "0.25 = 2^-2", "1 = 2^0"]:
        assert text in stdout
    assert "1 iteration\n" in ranksvm(*arguments, "--max-iter", 1).stdout


def test_progress_tells_of_every_c_and_iteration_unless_quiet(ranksvm, folder, tmp_path):
    arguments = ["train", folder / "train.txt", "--valid", folder / "valid.txt", "--C-range", "0.25,0.5"]
    stderr = ranksvm(*arguments, "-o", tmp_path / "model").stderr
    assert "2^-2" in stderr
    assert "2^-1" in stderr
    assert stderr.count("\n") == 2 + 2 + 1  # files read, values of C, the model saved
    assert "iteration" not in stderr
    again = ranksvm(*arguments, "-o", tmp_path / "model", "--verbose").stderr
    assert re.sub(r"[\d.]+ s\b", "", again) == re.sub(r"[\d.]+ s\b", "", stderr)  # but for the seconds
    assert ranksvm(*arguments, "-o", tmp_path / "model", "-vv").stderr.count("  iteration ") >= 2
    one = ["train", folder / "train.txt", "-C", "0.25", "-o", tmp_path / "model"]
    assert "  iteration 1: objective" in ranksvm(*one).stderr
    assert ranksvm(*arguments, "-o", tmp_path / "model", "--quiet").stderr == ""


@pytest.mark.parametrize("scaler", ["query-minmax", "query-standard", "standard", "minmax"])
def test_a_scaler_is_saved_with_the_model(ranksvm_json, folder, tmp_path, scaler):
    out = tmp_path / "model"
    report = ranksvm_json("train", folder / "train.txt", "--test", folder / "test.txt", "--scaler", scaler, "-o", out)
    assert list(package.load(out).named_steps) == ["scaler", "ranker"]
    again = ranksvm_json("evaluate", folder / "test.txt", "--model", out, "--metrics", "ndcg@10,map")
    assert again["systems"][0]["metrics"]["map"] == pytest.approx(report["metrics"]["test"]["map"])


def test_solvers_agree(ranksvm_json, folder, tmp_path):
    reports = [
        ranksvm_json("train", folder / "train.txt", "--solver", solver, "--tol", "1e-8", "-o", tmp_path / solver)
        for solver in ("newton", "tron", "dual")
    ]
    assert [report["solver"] for report in reports] == ["newton", "tron", "dual"]
    assert reports[2]["objective"] == pytest.approx(reports[0]["objective"])
    assert reports[0]["objective"] == pytest.approx(reports[1]["objective"], rel=1e-6)


def test_a_model_that_did_not_converge_is_saved_with_a_warning(ranksvm, folder, tmp_path):
    out = tmp_path / "model"
    result = ranksvm("train", folder / "train.txt", "--max-iter", 1, "--tol", "1e-12", "-C", 100, "-o", out)
    assert "Warning: " in result.stderr
    assert package.load(out).converged_ is False


def test_files_of_other_widths(ranksvm, folder, tmp_path):
    narrow, wide = tmp_path / "narrow.txt", tmp_path / "wide.txt"
    narrow.write_text("1 qid:1 1:1 2:0.5\n0 qid:1 1:0.5\n")
    wide.write_text("1 qid:1 1:1 9:0.5\n0 qid:1 1:0.5\n")
    arguments = ["train", folder / "train.txt", "-o", tmp_path / "model", "-q"]
    fewer, more = (ranksvm(*arguments, "--test", path).stderr for path in (narrow, wide))
    assert "has 2 features, but the training data have 5: the missing ones are 0" in fewer
    assert "has 9 features, but the training data have 5: the additional ones are ignored" in more


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-C", "1", "--C-range", "1,2"], "give -C or --C-range, not both"),
        (["-C", "-1"], "is not a positive number"),
        (["--C-range", "5:1"], "is not a range: write"),
        (["--metric", "ndgc@10"], "unknown metric 'ndgc@10'"),
        (["--convention", "mine"], "is not one of"),
        (["--solver", "simplex"], "is not one of"),
        (["--n-jobs", "0"], "n_jobs must be"),
        (["--tol", "-1"], "tol"),
        (["--valid", "absent.txt"], "does not exist"),
    ],
)
def test_wrong_usage(ranksvm, folder, tmp_path, arguments, message):
    result = ranksvm("train", folder / "train.txt", "-o", tmp_path / "model", *arguments, code=2)
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_more_folds_than_queries(ranksvm, folder, tmp_path):
    arguments = ["train", folder / "train.txt", "-o", tmp_path / "model", "--folds", 500]
    stderr = ranksvm(*arguments, "--C-range", "1,2", code=2).stderr
    assert "Error: --folds 500, but the data have only 30 queries: give fewer folds, or --valid." in stderr
    one = tmp_path / "one.txt"
    one.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    assert "only 1 query:" in ranksvm("train", one, "-o", tmp_path / "model", "--C-range", "1,2", code=2).stderr


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("train", ["--folds", 5]),
        ("train", ["--rule", "best"]),
        ("train", ["--folds", 5, "--C-range", "1,2", "--valid", "valid.txt"]),
        ("tune", ["--folds", 5, "--C-range", "1,2", "--valid", "valid.txt"]),
        ("folds", ["--folds", 5, "--C-range", "1,2"]),
        ("folds", ["--rule", "best", "-C", 1]),
        ("folds", ["--metric", "map", "-C", 1]),
    ],
)
def test_options_of_a_choice_that_is_not_made_are_refused(ranksvm, folder, tmp_path, command, options):
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.txt").write_bytes((folder / f"{part}.txt").read_bytes())
    given = [tmp_path / option if option == "valid.txt" else option for option in options]
    data = tmp_path if command == "folds" else tmp_path / "train.txt"
    output = [] if command == "folds" else ["-o", tmp_path / "model"]
    assert f"Error: {options[0]} is " in ranksvm(command, data, *given, *output, code=2).stderr


def test_the_model_file_is_asked_for(ranksvm, folder):
    assert "'-o' / '--output'" in ranksvm("train", folder / "train.txt", code=2).stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 qid:1 1:0.5\n0 qid:1 1:x\n", "bad.txt:2:"),
        ("1 qid:1 1:0.5\n1 qid:1 1:0.7\n", "pair"),
        ("", ""),
    ],
)
def test_bad_data_fail_with_their_place(ranksvm, tmp_path, content, message):
    bad, out = tmp_path / "bad.txt", tmp_path / "model"
    bad.write_text(content)
    result = ranksvm("train", bad, "-o", out, code=1)
    assert "Error: " in result.stderr
    assert message in result.stderr
    assert not out.exists()


def test_an_interrupt_writes_nothing(ranksvm, folder, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(LinearProblem, "solve", interrupted)
    ranksvm("train", folder / "train.txt", "-o", tmp_path / "model", code=130)
    assert not list(tmp_path.iterdir())


def test_keep_on_interrupt_is_passed_on(ranksvm, folder, tmp_path):
    out = tmp_path / "model"
    ranksvm("train", folder / "train.txt", "--keep-on-interrupt", "-o", out)
    assert package.load(out).keep_on_interrupt is True
    assert package.load(out).verbose == 0


def test_data_without_query_ids_are_one_query_with_a_warning(ranksvm, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("2 1:0.5 2:1\n1 1:0.2\n0 2:3\n")
    result = ranksvm("train", path, "-o", tmp_path / "model", "-q")
    where = "qid:... in LETOR text, a column qid, or --qid COLUMN, in tables"
    assert result.stderr == f"Warning: {path} has no query ids ({where}): all its 3 rows are treated as one query.\n"
    assert package.load(tmp_path / "model").n_pairs_ == 3


def test_real_data(ranksvm_json, shared_data, tmp_path):
    fold = shared_data / "MQ2008" / "Fold1"
    report = ranksvm_json(
        *("train", fold / "train.txt.gz", "--valid", fold / "vali.txt.gz", "--test", fold / "test.txt.gz"),
        *("--C-range", "2^-3:2^7:5", "--metric", "mean_ndcg", "--convention", "letor", "-o", tmp_path / "model"),
    )
    assert report["pairs"] == 52_325
    assert report["converged"]
    assert report["metrics"]["test"]["mean_ndcg"] > 0.45
    assert report["metrics"]["test"]["pairwise_accuracy"] > 0.82


@pytest.fixture
def numbers(tmp_path):
    """Writes one number per line for the 240 rows of train.txt, and gives the file and the numbers."""

    def write(name, values):
        path = tmp_path / f"{name}.txt"
        path.write_text("".join(f"{value!r}\n" for value in np.asarray(values).tolist()))
        return path, np.asarray(values)

    return write


def test_every_choice_reaches_the_estimator(ranksvm_json, folder, tmp_path):
    report = ranksvm_json(
        *("train", folder / "train.txt", "-o", tmp_path / "model", "--loss", "huber", "--huber-width", "2^-1"),
        *("--pair-selection", "adjacent", "--pair-weighting", "gain-gap", "-C", "0.125"),
    )
    data = package.datasets.read_data(folder / "train.txt")
    options = {"loss": "huber", "huber_width": 0.5, "pair_selection": "adjacent", "pair_weighting": "gain_gap"}
    expected = package.RankSVM(C=0.125, **options).fit(data.X, data.y, qid=data.qid)
    assert {name: report[name] for name in options} == options
    assert report["objective"] == pytest.approx(expected.objective_)
    assert report["pairs"] == expected.n_pairs_
    assert report["width"] == 0.5


def test_the_hinge_is_certified_and_its_width_told(ranksvm, ranksvm_json, folder, tmp_path):
    arguments = ["train", folder / "train.txt", "-o", tmp_path / "model", "--loss", "hinge", "-C", "0.1"]
    report = ranksvm_json(*arguments)
    assert report["relative_gap"] <= 1e-4
    assert report["width"] == package.load(tmp_path / "model").width_
    assert report["huber_width"] is None
    assert "hinge, smoothed over a width of " in ranksvm(*arguments).stdout
    assert "hinge, smoothed over a width of " in ranksvm("info", tmp_path / "model").stdout


def test_the_one_standard_error_rule(ranksvm, ranksvm_json, folder, tmp_path):
    arguments = ["train", folder / "train.txt", "-o", tmp_path / "model", "--C-range", "2^-12:2^0:3"]
    report = ranksvm_json(*arguments, "--rule", "one-standard-error")
    tried = report["selection"]["candidates"]
    best = max(tried, key=lambda item: item["score"])
    enough = [item["C"] for item in tried if item["score"] >= best["score"] - best["standard_error"]]
    assert report["C"] == min(enough)
    assert report["selection"]["rule"] == "one_standard_error"
    shown = ranksvm(*arguments, "--rule", "one_standard_error").stdout
    assert "one standard error rule" in shown
    assert "ndcg@10 (default) ± standard error" in shown


@pytest.mark.parametrize("choosing", [[], ["--C-range", "0.01,1", "--folds", 3], ["--C-range", "0.01,1", "--valid"]])
def test_weights(ranksvm, ranksvm_json, folder, tmp_path, numbers, choosing):
    rng = np.random.default_rng(0)
    data = package.datasets.read_data(folder / "train.txt")
    files, weights = {}, {}
    for name, values in {
        "sample_weight": rng.uniform(0.5, 2, 240),
        "query_weight": np.repeat(rng.uniform(0.5, 2, 30), 8),
        "propensity": rng.uniform(0.1, 1, 240),
    }.items():
        files[name], weights[name] = numbers(name, values)
    flags = [item for name, path in files.items() for item in (f"--{name.replace('_', '-')}", path)]
    if choosing[-1:] == ["--valid"]:
        choosing = [*choosing, folder / "valid.txt"]
    report = ranksvm_json("train", folder / "train.txt", "-o", tmp_path / "model", *flags, *choosing)
    expected = package.RankSVM(C=report["C"]).fit(data.X, data.y, qid=data.qid, **weights)
    assert report["objective"] == pytest.approx(expected.objective_, rel=1e-3)
    assert report["weights"] == {name: str(path) for name, path in files.items()}
    stdout = ranksvm("train", folder / "train.txt", "-o", tmp_path / "model", *flags).stdout
    assert "times sample_weight, times query_weight, times propensity" in stdout


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--sample-weight", "1\n" * 239, "has 239 numbers but the data have 240 rows."),
        ("--sample-weight", "1\n" * 7 + "heavy\n", "bad.txt:8: 'heavy' is not a number: expected one number per line."),
        ("--sample-weight", "1\n" * 239 + "-1\n", "bad.txt: sample_weight is -1.0 in row 239"),
        ("--query-weight", "1\n" * 239 + "nan\n", "bad.txt: query_weight is nan in row 239"),
        ("--query-weight", "1\n2\n" * 120, "bad.txt: query_weight varies within query 100"),
        ("--propensity", "1\n" * 239 + "0\n", "bad.txt: propensity is 0.0 in row 239"),
        ("--propensity", "", "has 0 numbers but"),
        (
            "--pairs",
            "0 1\n\n2\n",
            "bad.txt:3: '2' is not a pair: expected 'preferred other' or 'preferred other weight'",
        ),
        ("--pairs", "0 x\n", "bad.txt:1: '0 x' is not a pair"),
        ("--pairs", "0 1 2 3\n", "bad.txt:1: '0 1 2 3' is not a pair"),
        ("--pairs", "0 1 -2\n", "weight' per line: row numbers from 0, weights not below 0."),
        ("--pairs", "0 1 nan\n", "bad.txt:1: '0 1 nan' is not a pair"),
        ("--pairs", "0 1\n1 240\n", "bad.txt:2: there is no row 240: the data have rows 0 to 239."),
        ("--pairs", "-1 1\n", "bad.txt:1: there is no row -1"),
        ("--pairs", "3 3\n", "bad.txt:1: row 3 is compared with itself."),
        ("--pairs", "7 8\n", "bad.txt:1: row 7 is in query 100, row 8 in query 101: both must be in one query."),
        ("--pairs", "# none\n", "bad.txt holds no pair"),
    ],
)
def test_bad_files_of_weights_and_pairs(ranksvm, folder, tmp_path, option, content, message):
    path, out = tmp_path / "bad.txt", tmp_path / "model"
    path.write_text(content)
    stderr = ranksvm("train", folder / "train.txt", "-o", out, option, path, code=1).stderr
    assert message in stderr
    assert "iteration" not in stderr
    assert not out.exists()


def test_weights_that_are_no_text(ranksvm, folder, model, tmp_path):
    for option, expected in (("--propensity", "one number per line"), ("--pairs", "'preferred other' or")):
        arguments = ["train", folder / "train.txt", "-o", tmp_path / "model", option, model]
        assert f"{model} is not text: expected {expected}" in ranksvm(*arguments, code=1).stderr


def test_pairs_take_the_place_of_labels(ranksvm, ranksvm_json, folder, tmp_path):
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("# preferred other weight\n0 1\n9\t8 0.5  # clicked\n\n2 5 2e0\n")
    report = ranksvm_json(
        "train", folder / "train.txt", "--test", folder / "test.txt", "--pairs", pairs, "-o", tmp_path / "model"
    )
    data = package.datasets.read_data(folder / "train.txt")
    ranker = package.RankSVM()
    ranker.fit(data.X, qid=data.qid, pairs=[[0, 1], [9, 8], [2, 5]], pair_weight=[1, 0.5, 2])
    assert report["objective"] == pytest.approx(ranker.objective_)
    assert report["pairs_from"] == str(pairs)
    assert set(report["metrics"]) == {"train", "test"}
    unlabeled = tmp_path / "unlabeled.txt"
    lines = (folder / "train.txt").read_text().splitlines()
    unlabeled.write_text("".join(f"0 {line.split(' ', 1)[1]}\n" for line in lines))
    arguments = ["train", unlabeled, "--pairs", pairs, "-o", tmp_path / "model"]
    again = ranksvm_json(*arguments)
    assert again["objective"] == pytest.approx(ranker.objective_)
    assert again["metrics"] == {}
    assert f"3, from {pairs}" in ranksvm(*arguments).stdout


def test_pairs_have_no_folds_and_no_neighboring_labels(ranksvm, folder, tmp_path):
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("0 1\n")
    arguments = ["train", folder / "train.txt", "--pairs", pairs, "-o", tmp_path / "model"]
    assert "no labels to evaluate folds with: give --valid" in ranksvm(*arguments, "--C-range", "1,2", code=2).stderr
    ranksvm(*arguments, "--C-range", "1,2", "--valid", folder / "valid.txt")
    assert "leave it at 'all'" in ranksvm(*arguments, "--pair-selection", "adjacent", code=2).stderr


def test_feature_ids_count_as_told(ranksvm, tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("1 qid:1 1:1 2:0.5\n0 qid:1 1:0.5\n")
    for option, n_features in (("--zero-based", 3), ("--one-based", 2)):
        ranksvm("train", path, "-o", tmp_path / "model", option)
        assert package.load(tmp_path / "model").n_features_in_ == n_features


def test_signs_by_number_from_1(ranksvm, ranksvm_json, folder, tmp_path):
    data = package.datasets.read_data(folder / "train.txt")
    arguments = ["train", folder / "train.txt", "-C", "1", "-o", tmp_path / "model"]
    report = ranksvm_json(*arguments, "--monotone", "1=increasing,2=-1, 5=decreasing")
    expected = package.RankSVM(C=1.0, monotone={0: 1, 1: -1, 4: -1}).fit(data.X, data.y, qid=data.qid)
    model = package.load(tmp_path / "model")
    np.testing.assert_array_equal(model.monotone_, [1, -1, 0, 0, -1])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
    assert report["monotone"] == {"increasing": 1, "decreasing": 2}
    assert "increasing in 5 features" in ranksvm(*arguments, "--monotone", "increasing").stdout
    for wrong, message in {
        "up": "'up' is not FEATURE=SIGN",
        "1=up": "'1=up' is not FEATURE=SIGN",
        "6=1": "no feature '6' in the training data (numbers 1 to 5)",
        "0=1": "no feature '0'",
        "bm25=1": "no feature 'bm25'",
        "1=1,1=-1": "given twice",
    }.items():
        result = ranksvm(*arguments, "--monotone", wrong, code=2)
        assert message in " ".join(result.stderr.split())


def test_signs_by_name(ranksvm_json, folder, tmp_path):
    data = package.datasets.read_data(folder / "train.txt")
    lines = ["label,qid,a,b,c,d,e"]
    lines += [",".join(map(str, (y, q, *x))) for y, q, x in zip(data.y, data.qid, np.asarray(data.X), strict=True)]
    (tmp_path / "train.csv").write_text("\n".join(lines))
    ranksvm_json("train", tmp_path / "train.csv", "--monotone", "b=-1,e=1", "-o", tmp_path / "model")
    np.testing.assert_array_equal(package.load(tmp_path / "model").monotone_, [0, -1, 0, 0, 1])


@pytest.mark.parametrize("model", [["--kernel", "rbf"], ["--low-rank", "factorized"]])
def test_only_linear_models_have_signs(ranksvm, folder, tmp_path, model):
    result = ranksvm("train", folder / "train.txt", *model, "--monotone", "increasing", "-o", tmp_path / "m", code=2)
    assert "--monotone" in result.stderr


def test_a_plot_of_the_choice(ranksvm, ranksvm_json, folder, tmp_path):
    pytest.importorskip("matplotlib")
    arguments = ["train", folder / "train.txt", "-o", tmp_path / "model", "--plot", tmp_path / "plot.png"]
    for more in (["--C-range", "0.1,1"], ["--kernel", "rbf", "--C-range", "0.1,1", "--gamma-range", "0.1,1"]):
        assert ranksvm_json(*arguments, *more, "--folds", 2)["plot"] == str(tmp_path / "plot.png")
        assert (tmp_path / "plot.png").read_bytes()[:5] == b"\x89PNG\r"
        (tmp_path / "plot.png").unlink()
    assert "--plot draws the scores of a range" in ranksvm(*arguments, "-C", 1, code=2).stderr
    arguments[-1] = tmp_path / "plot.xyz"
    stderr = ranksvm(*arguments, "--C-range", "0.1,1", code=2).stderr
    assert "the file name extension must be one of" in stderr


def test_ctrl_c_after_the_model_was_written(ranksvm, folder, tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(figure.Figure, "savefig", interrupted)
    arguments = ["-o", tmp_path / "model", "--plot", tmp_path / "plot.png", "--C-range", "0.1,1"]
    result = ranksvm("train", folder / "train.txt", *arguments, code=130)
    assert "Interrupted: unfinished files were not kept." in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_published_stopping_rule(ranksvm, ranksvm_json, folder, tmp_path):
    given = ["-C", 1, "--solver", "tron", "--stopping", "gradient", "--tol", "1e-3", "-o", tmp_path / "model"]
    report = ranksvm_json("train", folder / "train.txt", *given)
    data = package.datasets.read_data(folder / "train.txt")
    expected = package.RankSVM(solver="tron", stopping="gradient", tol=1e-3).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(package.load(tmp_path / "model").coef_, expected.coef_, rtol=1e-6)
    assert report["converged"] is True
    for wrong in (["--C-range", "0.1,1"], ["--low-rank", "factorized"]):
        result = ranksvm("train", folder / "train.txt", "--stopping", "gradient", *wrong, "-o", tmp_path / "no", code=2)
        assert "--stopping is for one C of a linear or kernel model" in result.stderr
    result = ranksvm("train", folder / "train.txt", "--stopping", "gradient", "-o", tmp_path / "no", code=2)
    assert "published rule of solver='tron'" in result.stderr
    assert ranksvm_json("train", folder / "train.txt", "--kernel", "rbf", *given)["converged"] is True
    assert package.load(tmp_path / "model").stopping == "gradient"


@pytest.mark.parametrize(
    ("option", "lists", "parameter", "expected"),
    [
        ("--categorical", ["1", "2,3"], "categorical", [0, 1, 2]),
        ("--monotone", ["1=1", "2=-1"], "monotone", {0: 1, 1: -1}),
        ("--interactions", ["1:2", "3:4"], "interactions", [[0, 1], [2, 3]]),
    ],
)
def test_lists_given_several_times_are_joined(ranksvm, folder, tmp_path, option, lists, parameter, expected):
    given = [word for each in lists for word in (option, each)]
    ranksvm("train", folder / "train.txt", "--model", "additive", *given, "-o", tmp_path / "model")
    assert package.load(tmp_path / "model").get_params()[parameter] == expected


def test_lists_that_cannot_be_joined_are_refused(ranksvm, folder, tmp_path):
    command = ("train", folder / "train.txt", "--model", "additive", "-o", tmp_path / "model")
    assert "'8,auto'" in ranksvm(*command, "--interactions", "8", "--interactions", "auto", code=2).stderr
    assert "'increasing'" in ranksvm(*command, "--monotone", "1=1", "--monotone", "increasing", code=2).stderr


@pytest.mark.parametrize("command", ["train", "tune"])
@pytest.mark.parametrize(
    "options",
    [
        ["--huber-width", 2],
        ["--huber-width", 2, "--loss", "hinge"],
        ["--interaction-bins", 4, "--model", "additive"],
        ["--interaction-bins", 4, "--model", "additive", "--interactions", 0],
    ],
)
def test_parameters_of_other_losses_and_models_are_refused(ranksvm, folder, tmp_path, command, options):
    words = (command, folder / "train.txt", *options, "-o", tmp_path / "model")
    assert f"Error: {options[0]} is " in ranksvm(*words, code=2).stderr


def test_a_loss_given_with_settings_leaves_their_huber_width(ranksvm, folder, tmp_path):
    huber = ("--loss", "huber", "--huber-width", 2, "--C-range", 1)
    ranksvm("tune", folder / "train.txt", *huber, "--save-choice", tmp_path / "best.json")
    settings = ("--settings", tmp_path / "best.json", "--loss", "hinge")
    ranksvm("train", folder / "train.txt", *settings, "-o", tmp_path / "model")
    assert package.load(tmp_path / "model").loss == "hinge"
