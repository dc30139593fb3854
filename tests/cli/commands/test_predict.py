"""``ranksvm predict``."""

import numpy as np
import pytest

import ranksvm as package


@pytest.fixture
def expected(folder, model):
    return package.load(model).predict(package.datasets.read_data(folder / "test.txt").X)


def test_scores_are_those_of_the_model_to_the_last_digit(ranksvm, folder, model, expected, tmp_path):
    out = tmp_path / "scores.txt"
    result = ranksvm("predict", model, folder / "test.txt", "-o", out)
    np.testing.assert_array_equal([float(line) for line in out.read_text().splitlines()], expected)
    assert result.stdout == ""


def test_scores_go_to_stdout_by_default(ranksvm, folder, model, expected):
    result = ranksvm("predict", model, folder / "test.txt")
    np.testing.assert_array_equal([float(line) for line in result.stdout.splitlines()], expected)


def test_json_holds_the_scores_unless_a_file_does(ranksvm_json, folder, model, expected, tmp_path):
    document = ranksvm_json("predict", model, folder / "test.txt")
    np.testing.assert_array_equal(document["scores"], expected)
    document = ranksvm_json("predict", model, folder / "test.txt", "-o", tmp_path / "scores.txt")
    assert document["scores"] is None
    assert document["rows"] == len(expected) == len((tmp_path / "scores.txt").read_text().splitlines())


def test_a_file_that_is_no_model(ranksvm, folder, tmp_path):
    result = ranksvm("predict", folder / "test.txt", folder / "test.txt", code=1)
    assert "not a ranksvm model file" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "test.txt", "{model}"],
        ["rank", "test.txt", "{model}"],
        ["explain", "test.txt", "{model}"],
        ["analyze", "test.txt", "{model}"],
        ["export", "test.txt", "--to", "json", "--data", "{model}"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_exchanged_arguments(arguments, ranksvm, folder, model):
    given = [folder / word if word == "test.txt" else word.format(model=model) for word in arguments]
    message = ranksvm(*given, code=2).stderr
    assert f"test.txt, given as the model, is not one, but {model}, given as " in message, message


def test_a_truncated_model(ranksvm, folder, model, tmp_path):
    cut = tmp_path / "model"
    cut.write_bytes(model.read_bytes()[:-100])
    assert "truncated or damaged" in ranksvm("predict", cut, folder / "test.txt", code=1).stderr


def test_a_scaler_alone_gives_no_scores(ranksvm, folder, tmp_path):
    from sklearn.preprocessing import StandardScaler

    from ranksvm.model_files.persistence import save

    save(StandardScaler().fit(np.eye(5)), tmp_path / "scaler")
    result = ranksvm("predict", tmp_path / "scaler", folder / "test.txt", code=1)
    assert "a StandardScaler, which has no predict method" in result.stderr


def test_dense_data_with_fewer_features_than_the_model_are_warned_about(ranksvm, model, tmp_path):
    path = tmp_path / "fewer.txt"
    path.write_text("1 qid:1 1:1 2:2 3:3\n0 qid:1 1:2 2:1 3:4\n")
    assert (
        "has 3 features, but the training data have 5: the missing ones are 0" in ranksvm("predict", model, path).stderr
    )
    path.write_text("1 qid:1 1:1\n" + "0 qid:1 9:2\n" * 9)
    assert "missing" not in ranksvm("predict", model, path).stderr


def test_a_model_of_one_feature_takes_a_file_with_more(ranksvm, tmp_path):
    one, wide, model = tmp_path / "one.txt", tmp_path / "wide.txt", tmp_path / "model.rsvm"
    one.write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    wide.write_text("1 qid:1 1:1 2:7\n0 qid:1 1:2 2:9\n")
    ranksvm("train", one, "-o", model)
    assert ranksvm("predict", model, wide).stdout == ranksvm("predict", model, one).stdout
