"""DaskRankSVMCV against RankSVMCV: the same folds, scores, choice and model; all values of C share each round."""

import numpy as np
import pytest

import ranksvm
from ranksvm import QueryKFold, RankSVMCV
from ranksvm.dask import DaskRankSVMCV
from ranksvm.dask.backend import DaskBackend
from ranksvm.exceptions import OptionError

pytestmark = pytest.mark.usefixtures("client")

CS = [1e-4, 1e-2, 1.0]


def check_same(fit, expected):
    assert fit.C_ == expected.C_
    np.testing.assert_array_equal(fit.Cs_, expected.Cs_)
    np.testing.assert_allclose(fit.scores_, expected.scores_, rtol=1e-12)
    np.testing.assert_allclose(fit.mean_scores_, expected.mean_scores_, rtol=1e-12)
    np.testing.assert_allclose(fit.standard_errors_, expected.standard_errors_, rtol=1e-8)
    assert fit.best_score_ == pytest.approx(expected.best_score_, rel=1e-12)
    assert fit.objective_ == pytest.approx(expected.objective_, rel=1e-8)


@pytest.mark.parametrize(
    "options",
    [{"cv": 3}, {"cv": QueryKFold(2, shuffle=True, random_state=1), "pair_weighting": "gain_gap", "loss": "huber"}],
    ids=["folds", "shuffled folds"],
)
def test_folds(data, parts_of, options, tmp_path):
    options = {"Cs": CS, "tol": 1e-8, **options}
    labels = data.y.astype(float)
    labels[data.qid == data.qid[0]] += 1.0  # the largest label is in one fold
    X, y, qid = parts_of(ranksvm.RankingData(data.X, labels, data.qid))
    fit = DaskRankSVMCV(**options).fit(X, y, qid=qid)
    check_same(fit, RankSVMCV(**options).fit(data.X, labels, qid=data.qid))
    local = fit.to_local()
    assert type(local) is RankSVMCV
    local.save(tmp_path / "model.rsvm")
    np.testing.assert_array_equal(ranksvm.load(tmp_path / "model.rsvm").coef_, fit.coef_)


def test_validation_data(data, parts_of, monkeypatch):
    n_rounds = []
    plain = DaskBackend.round
    monkeypatch.setattr(DaskBackend, "round", lambda self, jobs: n_rounds.append(len(jobs)) or plain(self, jobs))
    train, test = data.select(data.qid < 30), data.select(data.qid >= 30)
    X, y, qid = parts_of(train)
    X_test, y_test, qid_test = parts_of(test)
    options = {"Cs": CS, "tol": 1e-8, "rule": "one_standard_error"}
    fit = DaskRankSVMCV(**options).fit(X, y, qid=qid, eval_set=[(X_test, y_test)], eval_qid=[qid_test])
    expected = RankSVMCV(**options).fit(
        train.X, train.y, qid=train.qid, eval_set=[(test.X, test.y)], eval_qid=[test.qid]
    )
    check_same(fit, expected)
    assert fit.evals_result_["valid_0"]["ndcg@10"] == pytest.approx(expected.evals_result_["valid_0"]["ndcg@10"])
    assert max(n_rounds) == 3
    assert len(n_rounds) < 60


def test_early_stopping_leaves_out_the_same(data, parts_of):
    X, y, qid = parts_of(data)
    options = {"Cs": [1e-4, 1e-3, 1.0, 10.0, 100.0], "early_stopping_rounds": 1, "tol": 1e-6}
    fit = DaskRankSVMCV(**options).fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid])
    expected = RankSVMCV(**options).fit(data.X, data.y, qid=data.qid, eval_set=[(data.X, data.y)], eval_qid=[data.qid])
    np.testing.assert_array_equal(fit.Cs_, expected.Cs_)
    with pytest.raises(OptionError, match="early_stopping_rounds"):
        DaskRankSVMCV(early_stopping_rounds=1).fit(X, y, qid=qid)
