"""docs/from_xgboost.md: both lines of every row of its tables are run, and what they do is compared."""

import re
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

import ranksvm
from code_tables import rows, run
from ranksvm import FactorizedRankSVM, RankSVM, RankSVMCV, SOLARRanker, make_ranking, metrics

ROWS = [pytest.param(*row, id=f"{row[0]}: {row[1]}") for row in rows("from_xgboost.md")]
QUIET = {"iterations": 50, "verbose": False, "allow_writing_files": False}
LIBRARIES = {"XGBoost": ("xgboost", "xgb"), "LightGBM": ("lightgbm", "lgb"), "CatBoost": ("catboost", "cb")}


@pytest.fixture(scope="module")
def data():
    made = make_ranking(n_queries=50, n_docs=(5, 12), n_features=4, random_state=0)
    train, valid = made.select(made.qid <= 30), made.select(made.qid > 30)
    rng = np.random.default_rng(0)
    group, group_valid = (np.unique(part.qid, return_counts=True)[1] for part in (train, valid))
    return {
        "X": train.X,
        "y": train.y.astype(int),
        "qid": train.qid,
        "group": group,
        "frame": pd.DataFrame(train.X, columns=list("abcd")).assign(qid=train.qid),
        "X_valid": valid.X,
        "y_valid": valid.y.astype(int),
        "qid_valid": valid.qid,
        "group_valid": group_valid,
        "pairs": [[0, 1], [0, 2], [3, 1]],
        "weight": rng.uniform(0.5, 2.0, len(group)),
        "row_weight": rng.uniform(0.5, 2.0, len(train.y)),
        "valid_weight": np.repeat(rng.uniform(0.1, 4.0, len(group_valid)), group_valid),
    }


@pytest.fixture(scope="module")
def models(data):
    """The library, and its models and ours that rows begin with, by the name of the library; skips without it."""

    @cache
    def fitted(library):
        module = pytest.importorskip(LIBRARIES[library][0], reason=f"{LIBRARIES[library][0]} is not installed")
        X, y = data["X"], data["y"]
        valid = {"eval_set": [(data["X_valid"], data["y_valid"])]}
        if library == "CatBoost":
            queries, valid["eval_qid"] = {"qid": data["qid"]}, [data["qid_valid"]]
            make, fit = partial(module.CatBoostRanker, **QUIET), {"group_id": data["qid"]}
            theirs = {"ranker": make().fit(X, y, **fit)}
            ours = {"ranker": RankSVM(C=0.01).fit(X, y, **queries)}
            return module, valid, theirs, ours
        if library == "XGBoost":
            queries, valid["eval_qid"] = {"qid": data["qid"]}, [data["qid_valid"]]
            make = partial(module.XGBRanker, eval_metric="ndcg@10")
            stopped = make(early_stopping_rounds=3).fit(X, y, **queries, **valid)
        else:
            queries, valid["eval_group"] = {"group": data["group"]}, [data["group_valid"]]
            make = partial(module.LGBMRanker, verbose=-1)
            stopped = make().fit(X, y, **queries, **valid, eval_at=[10], callbacks=[module.early_stopping(3)])
        theirs = {"ranker": make().fit(X, y, **queries), "stopped": stopped}
        ours = {
            "ranker": RankSVM(C=0.01).fit(X, y, **queries),
            "stopped": FactorizedRankSVM(C=0.1, early_stopping_rounds=3, random_state=0).fit(X, y, **queries, **valid),
        }
        return module, valid, theirs, ours

    return fitted


def names_of(library, data, folder, models):
    """The names that the rows of a library use, theirs and ours."""
    module, valid, theirs, ours = models(library)
    common = {**data, "valid": valid, "np": np, "metrics": metrics, LIBRARIES[library][1]: module}
    common["scores"] = theirs["ranker"].predict(data["X_valid"])
    if library == "XGBoost":
        common["linear"] = module.XGBRanker(booster="gblinear").fit(data["X"], data["y"], qid=data["qid"])
    classes = {"RankSVM": RankSVM, "RankSVMCV": RankSVMCV, "FactorizedRankSVM": FactorizedRankSVM}
    classes |= {"SOLARRanker": SOLARRanker, "ranksvm": ranksvm}
    if library == "CatBoost":
        from catboost.utils import eval_metric

        pool = module.Pool(data["X_valid"], data["y_valid"], group_id=data["qid_valid"])
        theirs = {**theirs, "eval_metric": eval_metric, "valid": {"eval_set": pool}, "quiet": QUIET}
    their_path, our_path = str(folder / "model.json"), str(folder / "model.rsvm")
    return (
        {**common, **theirs, **_observers(module, library == "XGBoost"), "path": their_path},
        {**common, **ours, **classes, **_observers(module, False), "path": our_path},
    )


def _observers(module, of_xgboost):
    """A callback of each kind that writes the numbers of the rounds to ``seen``."""
    seen, record = [], {}
    if not of_xgboost:
        return {"rounds": lambda env: seen.append(env.iteration), "seen": seen, "record": record}

    class Rounds(module.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            seen.append(epoch)
            return False

    return {"Rounds": Rounds, "seen": seen}


def value(row, scores, metric="ndcg@10", **options):
    data = row.data
    return metrics.evaluate(data["y_valid"], scores, data["qid_valid"], metric, **options)[metric]


def check_fit(row):
    theirs, ours = (value(row, model.predict(row.data["X_valid"])) for model in (row.theirs, row.ours))
    assert theirs > 0.5  # trees overfit so few rows
    assert ours > 0.7
    assert row.ours.converged_


def check_weights(row):
    check_fit(row)
    plain = RankSVM(C=0.01).fit(row.data["X"], row.data["y"], qid=row.data["qid"])
    assert np.abs(plain.coef_ - row.ours.coef_).max() > 1e-3


def check_column(row):
    plain = RankSVM(C=0.01).fit(row.data["frame"].drop(columns="qid"), row.data["y"], qid=row.data["qid"])
    np.testing.assert_array_equal(row.ours, plain.predict(row.data["X"]))
    assert row.theirs.shape == row.ours.shape


def check_score(row):
    assert 0.7 < row.ours < 1.0
    assert 0.7 < row.theirs <= 1.0


def check_pairs(row):
    assert row.theirs.predict(row.data["X"]).shape == row.ours.predict(row.data["X"]).shape
    assert row.ours.n_pairs_ == len(row.data["pairs"])


def check_sets(row):
    data = row.data
    (their_set, theirs), (our_set, ours) = (next(iter(each.items())) for each in (row.theirs, row.ours))
    model = RankSVM(C=0.01).fit(data["X"], data["y"], qid=data["qid"])
    assert ours == {metric: [value(row, model.predict(data["X_valid"]), metric)] for metric in ours}
    if row.library == "XGBoost":
        assert (their_set, our_set) == ("validation_0", "valid_0")
    else:
        assert their_set == our_set == "test"
        assert list(theirs) == list(ours) == ["ndcg@5", "ndcg@10"]


def check_metrics(row):
    theirs, ours = (next(iter(each.values())) for each in (row.theirs, row.ours))
    assert list(theirs) == list(ours)
    assert len(ours) == 2


def check_weighted_sets(row):
    data = row.data
    scores = RankSVM(C=0.01).fit(data["X"], data["y"], qid=data["qid"]).predict(data["X_valid"])
    weighted = value(row, scores, sample_weight=data["valid_weight"])
    assert row.ours["valid_0"]["ndcg@10"] == [pytest.approx(weighted)]
    assert weighted != pytest.approx(value(row, scores), abs=1e-4)


def check_their_values(row):
    assert row.ours == pytest.approx(row.theirs, abs=1e-6)


def check_stopped(row):
    model = row.ours
    found = model.evals_result_["valid_0"]["ndcg@10"]
    assert model.best_score_ == max(found) == found[model.best_iteration_ - 1]
    assert len(found) == model.best_iteration_ + 3
    assert value(row, model.predict(row.data["X_valid"])) == pytest.approx(model.best_score_)


def check_best(row):
    iteration, score = row.ours
    assert iteration == row.our_names["stopped"].evals_result_["valid_0"]["ndcg@10"].index(score) + 1
    assert 0.5 < row.theirs[1] <= 1.0


def check_rounds(row):
    for names in (row.their_names, row.our_names):
        assert names["seen"] == list(range(len(names["seen"])))
        assert len(names["seen"]) > 1


def check_record(row):
    assert row.our_names["record"] == row.ours.evals_result_
    assert row.their_names["record"].keys() == row.our_names["record"].keys()


def check_log(row):
    assert re.search(r"\[10\]\s+valid_0's ndcg@10: 0\.\d+", row.printed)


def check_progress(row):
    assert "[0]\tvalidation_0" in row.printed
    assert "objective" in row.printed


def check_importances(row):
    assert row.theirs.shape == row.ours.shape == (4,)
    assert row.ours.sum() == pytest.approx(1.0)
    coef = abs(row.our_names["ranker"].coef_)
    np.testing.assert_allclose(row.ours, coef / coef.sum())


def check_read(row):
    scores = row.our_names["model"].predict(row.data["X_valid"])
    np.testing.assert_array_equal(scores, row.our_names["ranker"].predict(row.data["X_valid"]))
    assert row.their_names["model"].predict(row.data["X_valid"]).shape == scores.shape


def check_imported(row):
    linear = row.our_names["linear"]
    X = row.data["X_valid"]
    difference = linear.predict(X) - row.ours.predict(X)
    np.testing.assert_allclose(difference, difference[0], atol=1e-5)
    # another fit differs: its updater is not deterministic
    assert value(row, row.theirs.predict(X)) == pytest.approx(value(row, row.ours.predict(X)), abs=0.1)


CHECKS = {
    "query ids": check_fit,
    "sizes of queries": check_fit,
    "a column of ids": check_column,
    "score with that column": check_score,
    "a weight for each query": check_weights,
    "weights of rows": check_weights,
    "listed pairs": check_pairs,
    "evaluation sets": check_sets,
    "the same sets, in the form of LightGBM 4.7": check_sets,
    "weights of evaluation rows": check_weighted_sets,
    "metrics": check_metrics,
    "several metrics": check_metrics,
    "their NDCG": check_their_values,
    "early stopping": check_stopped,
    "early stopping, over values of C": check_stopped,
    "early stopping, in epochs": check_stopped,
    "early stopping, in passes": check_stopped,
    "the best round": check_best,
    "callbacks": check_rounds,
    "a custom callback": check_rounds,
    "recorded values": check_record,
    "a line every 10 rounds": check_log,
    "progress": check_progress,
    "importances": check_importances,
    "the linear booster": check_fit,
    "its model": check_imported,
    "a model file": check_read,
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("library", "name", "their_line", "our_line"), ROWS)
def test_row(library, name, their_line, our_line, models, data, tmp_path, capfd, caplog):
    theirs, ours = names_of(library, data, tmp_path, models)
    row = SimpleNamespace(library=library, data=data, their_names=theirs, our_names=ours)
    with threadpool_limits(1):  # boosting so few rows on several threads is mostly waiting
        row.theirs, row.ours = run(their_line, theirs), run(our_line, ours)
    row.printed = "".join([*capfd.readouterr(), caplog.text])
    CHECKS[name](row)


def test_the_page_has_rows_for_all():
    found = [row.values[0] for row in ROWS]
    assert found.count("XGBoost") >= 15
    assert found.count("LightGBM") >= 12
    assert found.count("CatBoost") >= 6
