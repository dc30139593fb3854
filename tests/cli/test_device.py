"""``--device`` on the command line, by the host in the place of a GPU."""

import numpy as np
import pytest

import ranksvm as package

pytestmark = pytest.mark.usefixtures("host_devices")


@pytest.mark.parametrize(
    "options", [("-C", "0.1"), ("--C-range", "0.01,0.1"), ("--kernel", "rbf", "--gamma", "0.1", "-C", "0.1")], ids=str
)
def test_training_on_a_device_gives_the_processors_model(options, ranksvm_json, folder, tmp_path):
    reports, scores = [], []
    for device in ("cpu", "host:0"):
        out = tmp_path / device.partition(":")[0]
        given = (*options, "--tol", "1e-7", "--device", device, "-o", out)
        reports.append(ranksvm_json("train", folder / "train.txt", *given))
        data = package.datasets.read_data(folder / "train.txt")
        scores.append(package.load(out).predict(data.X))
    assert [report["device"] for report in reports] == ["cpu", "host:0"]
    assert reports[0]["objective"] == pytest.approx(reports[1]["objective"], rel=1e-6)
    np.testing.assert_allclose(*scores, atol=1e-3)


def test_several_devices_and_tuning(ranksvm_json, folder, tmp_path):
    report = ranksvm_json("train", folder / "train.txt", "--device", "host:0,host:1", "-o", tmp_path / "model")
    assert report["device"] == ["host:0", "host:1"]
    options = ("--C-range", "0.01,0.1", "--folds", 2, "--device", "host", "-o", tmp_path / "tuned")
    assert ranksvm_json("tune", folder / "train.txt", *options)["chosen"]["device"] == "host:0"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--device", "gpu"), "--device must be 'cpu', 'cuda', "),
        (("--device", "host,host:0"), "--device names a GPU twice"),
        (("--device", "host", "--low-rank", "factorized"), "omit it with --low-rank"),
        (("--device", "host:0,host:1", "--kernel", "rbf"), "a kernel model is fitted on one"),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["train", "tune"])
def test_what_a_device_cannot_do_is_said_before_the_data_are_read(command, options, message, ranksvm, tmp_path):
    data = tmp_path / "data.txt"
    data.write_text("no data", encoding="utf-8")
    done = ranksvm(command, data, *options, "-o", tmp_path / "model", code=2)
    assert message in done.stderr
    assert not (tmp_path / "model").exists()


def test_a_gpu_that_is_not_there(ranksvm, tmp_path):
    data = tmp_path / "data.txt"
    data.write_text("no data", encoding="utf-8")
    done = ranksvm("train", data, "--device", "cuda:63", "-o", tmp_path / "model", code=1)
    assert "cuda" in done.stderr
    assert "no data" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_report_for_people_names_the_device(ranksvm, folder, tmp_path):
    done = ranksvm("train", folder / "train.txt", "--device", "host", "-o", tmp_path / "model")
    assert "host:0" in done.stdout


@pytest.mark.parametrize(
    "options",
    [(), ("--kernel", "rbf"), ("--kernel", "linear"), ("--kernel", "rbf", "--approximation", "fourier")],
    ids=str,
)
def test_scores_computed_on_a_device_are_the_processors(options, ranksvm, ranksvm_json, folder, tmp_path):
    model = tmp_path / "model"
    ranksvm_json("train", folder / "train.txt", *options, "-C", "0.1", "-o", model)
    found = []
    for device in ("cpu", "host:1"):
        report = ranksvm_json("predict", model, folder / "train.txt", "--device", device)
        assert report["device"] == device
        found.append(report["scores"])
    np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)


def test_auto_is_the_cpu_and_says_so(ranksvm, folder, tmp_path):
    for command in (("train", "-o", tmp_path / "model"), ("predict", tmp_path / "model")):
        done = ranksvm(*command, folder / "train.txt", "--device", "auto")
        assert "--device auto: the CPU. Name a GPU to use it, such as --device cuda." in done.stderr


@pytest.mark.parametrize("device", ["gpu", "host:0,host:1"])
def test_what_cannot_compute_scores_is_refused(device, ranksvm, folder, tmp_path):
    (tmp_path / "model").write_text("no model", encoding="utf-8")
    done = ranksvm("predict", tmp_path / "model", folder / "train.txt", "--device", device, code=2)
    assert "--device must be 'cpu', 'cuda'" in done.stderr


def test_scores_of_an_additive_model_are_for_the_processor(ranksvm, folder, tmp_path):
    ranksvm("train", folder / "train.txt", "--model", "additive", "--device", "host", "-o", tmp_path / "model")
    done = ranksvm("predict", tmp_path / "model", folder / "train.txt", "--device", "host", code=2)
    assert "AdditiveRankSVM computes its scores on the processor: use device='cpu'." in done.stderr
