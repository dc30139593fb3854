"""``ranksvm train``."""

import numpy as np
import pytest

import ranksvm as package


def test_the_model_is_the_estimators_own(ranksvm_json, folder, tmp_path):
    out = tmp_path / "model"
    report = ranksvm_json("train", folder / "train.txt", "--test", folder / "test.txt", "-C", "2^-2", "-o", out)
    model = package.load(out)
    assert model.C == report["C"] == 0.25
    data = package.data.read_data(folder / "train.txt")
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
    assert "0.25" in stderr
    assert "0.5" in stderr
    assert stderr.count("\n") == 2 + 2 + 1  # files read, values of C, the model saved
    assert "iteration" not in stderr
    assert ranksvm(*arguments, "-o", tmp_path / "model", "--verbose").stderr.count("  iteration ") >= 2
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
        for solver in ("newton", "tron")
    ]
    assert [report["solver"] for report in reports] == ["newton", "tron"]
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
    assert ranksvm(*arguments, "--test", narrow).stderr == ""
    assert "has 9 features, the training data 5" in ranksvm(*arguments, "--test", wide).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-C", "1", "--C-range", "1,2"], "give -C or --C-range, not both"),
        (["-C", "-1"], "is no positive number"),
        (["--C-range", "5:1"], "is no range: write"),
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
    ranksvm(*arguments)
    ranksvm(*arguments, "--C-range", "1,2", "--valid", folder / "valid.txt")
    one = tmp_path / "one.txt"
    one.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    assert "only 1 query:" in ranksvm("train", one, "-o", tmp_path / "model", "--C-range", "1,2", code=2).stderr


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

    monkeypatch.setattr(package.RankSVM, "fit", interrupted)
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
    assert result.stderr == f"Warning: {path} has no query ids (qid:...): all its 3 rows are taken for one query.\n"
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
