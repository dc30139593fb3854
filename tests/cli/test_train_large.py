"""``ranksvm train`` of files larger than ``--memory-limit``, and their caches."""

import gzip
import os
import time

import numpy as np
import pytest

import ranksvm as package
import ranksvm.fits.file_training_set as file_training_set
from ranksvm.terms.parts import file_backend


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    """A limit of a few kB is one of the fit alone, and blocks are a few queries."""
    monkeypatch.setattr(file_training_set, "used_memory", lambda: 0)
    monkeypatch.setattr(file_training_set, "MIN_MEMORY", 0)
    monkeypatch.setattr(file_backend, "BLOCK_BYTES", 1000)


@pytest.fixture
def large(folder, tmp_path):
    def source(suffix):
        path = tmp_path / f"big{suffix}"
        if suffix == ".txt.gz":
            path.write_bytes(gzip.compress((folder / "train.txt").read_bytes()))
        else:
            package.datasets.write_data(package.datasets.read_data(folder / "train.txt"), path)
        return path

    return source


LIMIT = ("--memory-limit", "8KB", "--tol", "1e-8", "-C", "0.1")


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".parquet", ".csv", ".rsd"])
def test_the_model_is_that_of_a_fit_in_memory(ranksvm, ranksvm_json, large, folder, tmp_path, suffix):
    source, caches = large(suffix), tmp_path / "caches"
    arguments = ("--test", folder / "test.txt", "-o", tmp_path / "a.rsvm")
    found = ranksvm_json("train", source, *LIMIT, "--cache-dir", caches, *arguments)
    expected = ranksvm_json("train", source, *LIMIT[2:], "-o", tmp_path / "b.rsvm")
    models = [package.load(tmp_path / name) for name in ("a.rsvm", "b.rsvm")]
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-8)
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-4)
    assert found["data"]["train"] == expected["data"]["train"]
    assert list(found["metrics"]) == ["test"]
    assert caches.exists() == (suffix != ".rsd")
    # a second run finds the cache, a changed file has another one, and so has one that is read otherwise
    if suffix == ".txt":
        (cache,) = caches.iterdir()
        written = cache.stat().st_mtime_ns
        result = ranksvm("train", source, *LIMIT, "--cache-dir", caches, *arguments)
        assert f"found its cache {cache}" in result.stderr
        assert cache.stat().st_mtime_ns == written
        os.utime(source, ns=(time.time_ns(), time.time_ns() + 1))
        ranksvm("train", source, *LIMIT, "--cache-dir", caches, *arguments)
        assert len(list(caches.iterdir())) == 2
        ranksvm("train", source, *LIMIT, "--cache-dir", caches, "--zero-based", *arguments)
        assert len(list(caches.iterdir())) == 3


@pytest.mark.parametrize("model", [[], ["--model", "additive"]])
def test_data_within_the_limit_are_fitted_in_memory_without_a_warning(ranksvm, folder, tmp_path, model):
    arguments = ("train", folder / "train.txt", "-C", "0.1", *model)
    result = ranksvm(*arguments, "--memory-limit", "8GB", "-o", tmp_path / "a.rsvm")
    assert "memory_limit" not in result.stderr
    ranksvm(*arguments, "-o", tmp_path / "b.rsvm")
    models = [package.load(tmp_path / name) for name in ("a.rsvm", "b.rsvm")]
    assert models[0].objective_ == models[1].objective_


def test_additive_models(ranksvm, ranksvm_json, large, folder, tmp_path):
    additive = ("--model", "additive", "--interactions", "2", "--max-bins", "8", "-C", "0.1", "--tol", "1e-8")
    arguments = (*LIMIT[:2], "--cache-dir", tmp_path / "caches", *additive)
    found = ranksvm_json("train", large(".txt"), *arguments, "-o", tmp_path / "a.rsvm")
    expected = ranksvm_json("train", large(".txt"), *additive, "-o", tmp_path / "b.rsvm")
    assert (tmp_path / "caches").exists()
    models = [package.load(tmp_path / name) for name in ("a.rsvm", "b.rsvm")]
    np.testing.assert_array_equal(models[0].cuts_, models[1].cuts_)
    np.testing.assert_array_equal(models[0].interactions_, models[1].interactions_)
    np.testing.assert_allclose(models[0].shape_values_, models[1].shape_values_, atol=1e-4)
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-7)
    assert found["data"]["train"] == expected["data"]["train"]
    # C and the step weight are chosen by folds of the file
    arguments = (*arguments[:4], *additive[:2], "--C-range", "2^-6:2^0:3", "--folds", "2")
    found = ranksvm_json("train", large(".txt"), *arguments, "-o", tmp_path / "a.rsvm")
    expected = ranksvm_json("train", large(".txt"), *arguments[4:], "-o", tmp_path / "b.rsvm")
    assert (found["C"], found["additive"]) == (expected["C"], expected["additive"])


@pytest.mark.parametrize("model", ["linear", "additive"])
def test_the_limit_is_not_said_to_have_no_effect(ranksvm, large, tmp_path, model):
    limit = (*LIMIT[:2], "--cache-dir", tmp_path / "caches")
    done = ranksvm("train", large(".txt"), *limit, "--model", model, "-C", "0.1", "-o", tmp_path / "a.rsvm")
    assert "read in passes" in done.stderr
    assert "Warning" not in done.stderr


def test_c_is_chosen_on_validation_data(ranksvm_json, large, folder, tmp_path):
    arguments = ("--C-range", "2^-8:2^0:2", "--valid", folder / "valid.txt", "--cache-dir", tmp_path / "caches")
    found = ranksvm_json("train", large(".txt"), *LIMIT[:2], *arguments, "-o", tmp_path / "a.rsvm")
    expected = ranksvm_json("train", large(".txt"), *arguments, "-o", tmp_path / "b.rsvm")
    assert found["C"] == expected["C"]


def test_c_is_chosen_by_folds(ranksvm_json, large, tmp_path):
    arguments = ("--C-range", "2^-8:2^0:2", "--folds", "3", "--cache-dir", tmp_path / "caches")
    found = ranksvm_json("train", large(".txt"), *LIMIT[:4], *arguments, "-o", tmp_path / "a.rsvm")
    expected = ranksvm_json("train", large(".txt"), *LIMIT[2:4], *arguments, "-o", tmp_path / "b.rsvm")
    assert found["C"] == expected["C"]


def test_weights(ranksvm, large, tmp_path):
    weights, source = tmp_path / "weights.txt", large(".txt")
    weights.write_text("".join(f"{row % 3}\n" for row in range(240)))
    common = (*LIMIT[2:], "--sample-weight", weights, "--cache-dir", tmp_path / "caches")
    ranksvm("train", source, *LIMIT[:2], *common, "-o", tmp_path / "a.rsvm")
    ranksvm("train", source, *common, "-o", tmp_path / "b.rsvm")
    models = [package.load(tmp_path / name) for name in ("a.rsvm", "b.rsvm")]
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scaler", "standard"], "--scaler standard needs it in memory"),
        (["--memory-limit", "much"], "memory_limit must be None, a positive number"),
    ],
)
def test_what_is_refused(ranksvm, large, tmp_path, options, message):
    arguments = ("--memory-limit", "8KB", "--cache-dir", tmp_path / "caches", *options, "-o", tmp_path / "a.rsvm")
    assert message in ranksvm("train", large(".txt"), *arguments, code=2).stderr
    assert not (tmp_path / "caches").exists()


def test_features_of_a_cache_cannot_be_ignored(ranksvm, large, tmp_path):
    arguments = (*LIMIT, "--ignore", "f1", "-o", tmp_path / "a.rsvm")
    stderr = ranksvm("train", large(".rsd"), *arguments, code=2).stderr
    assert "is a cache, whose features cannot be ignored" in stderr
