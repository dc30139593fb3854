"""The example of a leaderboard: its model is scikit-learn's logistic regression of the differences."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ranksvm import RankSVM

PATH = Path(__file__).parents[2] / "examples" / "leaderboard.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("leaderboard", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("with_features", [True, False])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_it_is_the_logistic_regression_of_differences(example, with_features, C):
    battles, features = example.made(10, 800)
    names, pairs, counts = example.counted(battles)
    X = example.competitors(names, features if with_features else None)
    assert X.shape == (10, 12 if with_features else 10)
    model = RankSVM(C, loss="logistic", tol=1e-12).fit(X, pairs=pairs, pair_weight=counts)
    # each battle twice, as won and as lost, so that both classes are there
    D = X.toarray()[pairs[:, 0]] - X.toarray()[pairs[:, 1]]
    other = LogisticRegression(C=C / 2, fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    other.fit(np.vstack([D, -D]), np.repeat([1, 0], len(D)), sample_weight=np.tile(counts, 2))
    np.testing.assert_allclose(model.coef_, other.coef_[0], atol=1e-6)
    np.testing.assert_allclose(
        model.predict_proba(X[pairs[:, 0]], X[pairs[:, 1]]), other.predict_proba(D)[:, 1], atol=1e-6
    )


def test_battles_are_counted_and_ties_are_half_a_win_each_way(example):
    names, pairs, counts = example.counted([("a", "b", "a"), ("b", "a", "a"), ("b", "c", "tie"), ("c", "b", "c")])
    assert names == ["a", "b", "c"]
    assert dict(zip(map(tuple, pairs.tolist()), counts, strict=True)) == {(0, 1): 2.0, (1, 2): 0.5, (2, 1): 1.5}
    with pytest.raises(ValueError, match="the winner of a and b is 'd'"):
        example.counted([("a", "b", "d")])


def test_the_strongest_comes_first(example, capsys):
    example.main(["--competitors", "6", "--battles", "2000"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2,000 battles of 6 competitors")
    ratings = [float(line.split()[2]) for line in lines[2:]]
    assert ratings == sorted(ratings, reverse=True)
    beats = [float(line.split()[3]) for line in lines[2:-1]]
    assert all(0.5 <= p < 1.0 for p in beats)


def test_a_file_of_battles(example, tmp_path, capsys):
    (tmp_path / "battles.csv").write_text("x,y,x\ny,z,y\nx,z,x\nz,x,tie\n")
    example.main(["--load", str(tmp_path / "battles.csv")])
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[2:]] == ["x", "y", "z"]
