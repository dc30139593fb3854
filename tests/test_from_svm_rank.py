"""docs/from_svm_rank.md: our line of every row is run, theirs where a package has it, and what they do is compared."""

import shlex
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import average_precision_score, ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC

import ranksvm
from code_tables import rows, run
from command_runner import command_runner
from ranksvm import QueryKFold, QueryMinMaxScaler, RankSVM, RankSVMCV, make_ranking, metrics
from ranksvm.cli import main

ROWS = list(rows("from_svm_rank.md"))
COMMANDS = [row for row in ROWS if row[3].startswith("ranksvm ")]
PYTHON = [pytest.param(*row, id=f"{row[0]}: {row[1]}") for row in ROWS if row not in COMMANDS]
N_QUERIES = 30


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=N_QUERIES, n_docs=(4, 8), n_features=5, random_state=0)


@pytest.fixture(scope="module")
def pairs(data):
    """Differences of all pairs, every second one reversed, and their signs."""
    same = data.qid[:, None] == data.qid[None, :]
    preferred, other = np.nonzero(same & (data.y[:, None] > data.y[None, :]))
    signs = np.where(np.arange(len(preferred)) % 2, -1.0, 1.0)
    return (data.X[preferred] - data.X[other]) * signs[:, None], signs


@pytest.fixture(scope="module")
def folder(tmp_path_factory, data):
    """A folder with the files that the commands read; they are run in the order of the page."""
    made = tmp_path_factory.mktemp("commands")
    ranksvm.write_letor(made / "train.dat", data)
    ranksvm.write_letor(made / "test.dat", make_ranking(n_queries=10, n_docs=6, n_features=5, random_state=1))
    return made


def test_commands(folder, data, pairs, monkeypatch):
    monkeypatch.chdir(folder)
    for section, name, _, line in COMMANDS:
        result = command_runner().invoke(main, shlex.split(line)[1:])
        assert result.exit_code == 0, (section, name, result.stderr)
        if name == "train":  # 1/2 |w|^2 + c / n times the hinges of all pairs: SVM-rank's objective with -c 3
            model = ranksvm.load("model.rsvm")
            hinges = np.maximum(0.0, 1.0 - pairs[1] * (pairs[0] @ model.coef_)).sum()
            theirs = 0.5 * model.coef_ @ model.coef_ + 3.0 / N_QUERIES * hinges
            assert model.objective_ == pytest.approx(theirs, rel=1e-4)
        if name == "scores":
            scores = np.loadtxt("scores.txt")
            assert scores.shape == (60,)
        if name == "one of their models":
            np.testing.assert_allclose(ranksvm.load("imported.rsvm").coef_, model.coef_, rtol=1e-6)
    assert len(COMMANDS) == 7


def check_weights(row):
    theirs = getattr(row.theirs, "coef_", None)
    if theirs is None:  # a model of LIBLINEAR
        theirs = np.array(row.theirs.get_decfun()[0])
    np.testing.assert_allclose(np.ravel(theirs), row.ours.coef_, rtol=1e-3, atol=1e-5)


def check_order(row):
    theirs, ours = (
        metrics.evaluate(row.data.y, model.predict(row.data.X), row.data.qid, "ndcg@10")["ndcg@10"]
        for model in (row.theirs, row.ours)
    )
    assert min(theirs, ours) > 0.8


def check_folds(row):
    for folds in (list(row.theirs), list(row.ours)):
        assert len(folds) == 5
        for train, test in folds:
            assert not set(row.data.qid[train]) & set(row.data.qid[test])


def check_same_number(row):
    assert row.ours == pytest.approx(row.theirs, abs=1e-12)


def check_search(row):
    assert row.theirs.best_params_["alpha"] in (1, 10)
    assert row.ours.C_ in (0.01, 0.1)


def check_scaled(row):
    for scaled in (row.theirs, row.ours):
        assert scaled.shape == row.data.X.shape
        assert scaled.min() == 0.0
    assert 0.99 < row.ours.max() <= 1.0


def check_file(row):
    assert (ranksvm.load(row.our_path).coef_ == row.names["model"].coef_).all()


def check_same_order(row):
    np.testing.assert_allclose(np.diff(row.theirs), np.diff(row.ours), atol=1e-5)  # float32 features


def check_imported(row):
    np.testing.assert_allclose(
        row.ours.coef_, RankSVM(C=0.1, tol=1e-10).fit(row.data.X, row.data.y, qid=row.data.qid).coef_, rtol=1e-3
    )


CHECKS = {
    "L2-loss SVC of pairs": check_weights,
    "L1-loss SVC of pairs": check_weights,
    "LIBLINEAR: a model file": check_imported,
    "pairs for LinearSVC": check_weights,
    "a pointwise regression": check_order,
    "folds of whole queries": check_folds,
    "NDCG": check_same_number,
    "average precision": check_same_number,
    "search for C": check_search,
    "scaling": check_scaled,
    "scikit-learn: a model file": check_file,
    "a fitted linear model": check_same_order,
}


@pytest.mark.parametrize(("section", "name", "their_line", "our_line"), PYTHON)
def test_row(section, name, their_line, our_line, data, pairs, tmp_path):
    names = {"np": np, "ranksvm": ranksvm, "metrics": metrics, "joblib": joblib}
    for thing in (RankSVM, RankSVMCV, QueryKFold, QueryMinMaxScaler, Ridge, LinearSVC, GridSearchCV, GroupKFold):
        names[thing.__name__] = thing
    names |= {
        "MinMaxScaler": MinMaxScaler,
        "ndcg_score": ndcg_score,
        "average_precision_score": average_precision_score,
    }
    # a query without a relevant document has no average precision in scikit-learn
    relevant = np.isin(data.qid, data.qid[data.y > 0])
    part = data.select(relevant)
    names |= {"X": part.X, "y": part.y, "qid": part.qid, "differences": pairs[0], "signs": pairs[1]}
    names["model"] = RankSVM(C=0.1).fit(part.X, part.y, qid=part.qid)
    names["scores"] = names["model"].predict(part.X)
    if section == "LIBLINEAR":
        names["liblinear"] = pytest.importorskip("liblinear.liblinearutil", reason="LIBLINEAR is not installed")
    path = str(tmp_path / "model")
    names["path"] = path
    theirs = run(their_line, names)
    if section == "scikit-learn":
        names["path"] = path + ".rsvm"
    row = SimpleNamespace(data=part, names=names, our_path=names["path"], theirs=theirs, ours=run(our_line, names))
    (CHECKS.get(name) or CHECKS[f"{section}: {name}"])(row)
