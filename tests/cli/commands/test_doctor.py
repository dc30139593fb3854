"""``ranksvm doctor``."""

import importlib.metadata
import tomllib
from pathlib import Path

import pytest

import ranksvm as package
import ranksvm.cli.commands.doctor as doctor
from ranksvm.exceptions import DeviceError

ROOT = Path(__file__).parents[3]


def test_it_says_what_is_here(ranksvm_json):
    document = ranksvm_json("doctor")
    assert document["ranksvm"] == package.__version__
    assert document["instruction set"] in document["available"].split(", ")
    assert document["threads"] >= 1
    assert document["free_memory"] > 0
    assert [fit["instruction_set"] for fit in document["fits"]] == document["available"].split(", ")
    assert all(fit["certified"] for fit in document["fits"])
    assert document["problems"] == []


def test_it_leaves_the_instruction_set_as_it_was(ranksvm):
    before = package.environment()["instruction set"]
    ranksvm("doctor")
    assert package.environment()["instruction set"] == before


def test_a_person_sees_extras_and_how_to_get_them(ranksvm, monkeypatch):
    monkeypatch.setattr(doctor, "_package", lambda name, needs: found(name, needs, None))
    stdout = ranksvm("doctor").stdout
    assert 'pip install "ranksvm[parquet]"' in stdout
    assert doctor.GIVES["parquet"] in stdout
    assert "No problem found." in stdout


def found(name, needs, version, too_old=False):
    return {"name": name, "version": version, "needs": needs, "too_old": too_old}


def test_every_extra_says_what_it_gives():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras) - {"all"} == set(doctor.GIVES)


def test_extras_are_those_of_the_metadata(monkeypatch):
    lines = [
        "numpy>=2.0",
        'pyarrow>=16; extra == "parquet"',
        'zstandard>=0.22; python_version < "3.14" and extra == "zstd"',
        'ancient>=1; python_version < "3" and extra == "zstd"',
        'cuda-bindings==13.*; extra == "cuda"',
        'dask[array,dataframe]>=2025.1; extra == "dask"',
        'psycopg[binary]>=3.2.1; extra == "postgres"',
        'ranksvm[dask,parquet]; extra == "all"',
    ]
    versions = {"numpy": "1.26.4", "pyarrow": "16.0.0", "cuda-bindings": "12.9", "dask": "2025.1"}

    def version(name):
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines)
    monkeypatch.setattr(importlib.metadata, "version", version)
    required, extras = doctor._requirements()
    assert required == [found("numpy", ">=2.0", "1.26.4", too_old=True)]
    by_name = {extra["name"]: extra for extra in extras}
    assert list(by_name) == ["parquet", "zstd", "cuda", "dask", "postgres"]
    assert by_name["parquet"]["packages"] == [found("pyarrow", ">=16", "16.0.0")]
    assert by_name["cuda"]["packages"] == [found("cuda-bindings", "==13.*", "12.9", too_old=True)]
    assert by_name["dask"]["packages"] == [found("dask", ">=2025.1", "2025.1")]
    assert all(package["name"] == "zstandard" for package in by_name["zstd"]["packages"])
    assert by_name["dask"]["install"] == 'pip install "ranksvm[dask]"'
    assert by_name["postgres"]["install"] == 'pip install "ranksvm[serve,postgres]"'


def test_an_old_package_is_a_problem(ranksvm, monkeypatch):
    monkeypatch.setattr(doctor, "_package", lambda name, needs: found(name, needs, "0.1", name == "scipy"))
    assert "Problem: scipy 0.1 is installed, but ranksvm needs >=" in ranksvm("doctor", code=1).stdout


@pytest.mark.parametrize(
    ("fits", "problem"),
    [
        ([(5.0, True), (5.1, True)], "has another optimum"),
        ([(5.0, True), (5.0, False)], "did not meet its certificate"),
    ],
)
def test_loops_that_compute_something_else_are_a_problem(fits, problem, ranksvm, monkeypatch):
    class Model:
        def fit(self, *_, **__):
            self.objective_, self.converged_ = fits.pop(0)
            return self

    import ranksvm._compiled.instruction_set as instruction_set

    monkeypatch.setattr(instruction_set, "available", lambda: ["baseline", "avx2"])
    monkeypatch.setattr(instruction_set, "use", lambda name: None)
    monkeypatch.setattr(package, "RankSVM", lambda **_: Model(), raising=False)
    stdout = ranksvm("doctor", code=1).stdout
    assert f"Problem: A fit with the instruction set avx2 {problem}." in stdout


def test_gpus(monkeypatch):
    from ranksvm.device import cuda

    monkeypatch.setattr(cuda, "gpu_names", lambda: ["cuda:0 (A)"])
    assert doctor._gpu() == {"names": ["cuda:0 (A)"], "reason": None}

    def fails():
        raise DeviceError("no driver")

    monkeypatch.setattr(cuda, "gpu_names", fails)
    assert doctor._gpu() == {"names": [], "reason": "no driver"}


def test_a_driver_without_a_gpu(ranksvm, ranksvm_json, driver):
    driver.n_devices = 0
    assert ranksvm_json("doctor")["gpu"] == {"names": [], "reason": "the NVIDIA driver is here, but it finds no GPU"}
    assert "the NVIDIA driver is here, but it finds no GPU" in ranksvm("doctor").stdout
