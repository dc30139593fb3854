"""Small LETOR files and a trained model for the tests of the commands."""

import json

import numpy as np
import pytest

from command_runner import command_runner
from ranksvm.cli import main


def letor_lines(n_queries, seed, n_features=5, docid=True):
    """Documents whose grade (0, 1, 2) follows a linear score with noise."""
    rng = np.random.default_rng(seed)
    w = np.linspace(1, -1, n_features)
    lines = []
    for query in range(n_queries):
        X = rng.uniform(size=(8, n_features)).round(3)
        grades = np.clip(np.round(1 + 1.5 * X @ w + 0.3 * rng.normal(size=8)), 0, 2)
        for document, (x, grade) in enumerate(zip(X, grades, strict=True)):
            features = " ".join(f"{j}:{value}" for j, value in enumerate(x, 1))
            comment = f" #docid = D{query}-{document}" if docid else ""
            lines.append(f"{int(grade)} qid:{100 + query} {features}{comment}")
    return lines


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """train.txt, valid.txt, test.txt and anonymous.txt (without document ids)."""
    path = tmp_path_factory.mktemp("cli")
    for seed, (name, n_queries) in enumerate([("train", 30), ("valid", 15), ("test", 15), ("anonymous", 3)]):
        lines = letor_lines(n_queries, seed, docid=name != "anonymous")
        (path / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture(scope="session")
def long(folder):
    """long.txt: a stream of 400 queries."""
    path = folder / "long.txt"
    path.write_text("".join(f"{line}\n" for line in letor_lines(400, 7)))
    return path


@pytest.fixture(scope="session")
def model(folder):
    """A model file trained by the command."""
    path = folder / "model.rsvm"
    result = command_runner().invoke(main, ["train", str(folder / "train.txt"), "-o", str(path), "--quiet"])
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture
def ranksvm():
    """A function that runs a command line, and fails the test if the exit code is not the expected one."""

    def run(*arguments, code=0):
        result = command_runner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == code, f"exit code {result.exit_code}\n{result.output}"
        assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def ranksvm_json(ranksvm):
    """A function that runs a command line with --json and returns the JSON document, which is all of stdout."""

    def run(*arguments):
        return json.loads(ranksvm(*arguments, "--json").stdout)

    return run
