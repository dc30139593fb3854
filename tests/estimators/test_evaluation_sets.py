"""eval_set, eval_qid, eval_group and group: the calls that code written for LightGBM, XGBoost or PyTerrier makes."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranksvm import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    FactorizedRankSVM,
    KernelRankSVM,
    RankSVM,
    RankSVMCV,
    RegularizedRankSVM,
    SOLARRanker,
    load,
    make_ranking,
)
from ranksvm.exceptions import DataError, ScaleWarning
from ranksvm.fits.linear import LinearProblem
from ranksvm.metrics import evaluate

CS = [1e-4, 1e-2, 1.0]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_docs=(4, 12), n_features=5, random_state=0)


@pytest.fixture(scope="module")
def others():
    return [make_ranking(n_queries=15, n_docs=(4, 12), n_features=5, random_state=seed) for seed in (1, 2)]


def sizes(data):
    return np.unique(data.qid, return_counts=True)[1]


def value(model, data, metric="ndcg@10"):
    return evaluate(data.y, model.predict(data.X), data.qid, [metric]).means[metric]


def test_what_the_model_gives_on_each_set(data, others, tmp_path):
    sets = [(each.X, each.y) for each in others]
    model = RankSVM(C=0.01).fit(data.X, data.y, group=sizes(data), eval_set=sets, eval_group=[*map(sizes, others)])
    expected = {f"valid_{place}": {"ndcg@10": [value(model, each)]} for place, each in enumerate(others)}
    assert model.evals_result_ == expected
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").evals_result_ == expected
    by_qid = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid, eval_set=sets, eval_qid=[each.qid for each in others])
    assert by_qid.evals_result_ == expected
    plain = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    assert plain.evals_result_ == {}


@pytest.mark.parametrize(
    "model",
    [
        RankSVM(C=0.01),
        RankSVMCV(CS),
        KernelRankSVM(C=0.01),
        AdditiveRankSVM(C=0.01),
        FactorizedRankSVM(C=0.01, max_epochs=3, random_state=0),
        RegularizedRankSVM(C=0.01),
        SOLARRanker(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_features_and_labels_may_be_given_apart_as_in_lightgbm(data, others, model):
    fit = partial(clone(model).fit, data.X, data.y, group=sizes(data))
    Xs, ys = tuple(each.X for each in others), tuple(each.y for each in others)
    groups = [*map(sizes, others)]
    expected = fit(eval_set=list(zip(Xs, ys, strict=True)), eval_group=groups).evals_result_
    assert expected.keys() == {"valid_0", "valid_1"}
    assert fit(eval_X=Xs, eval_y=ys, eval_group=groups).evals_result_ == expected
    one = fit(eval_X=Xs[0], eval_y=ys[0], eval_group=groups[0]).evals_result_
    assert one == {"valid_0": expected["valid_0"]}


@pytest.mark.parametrize("make", [RankSVM, lambda: RankSVMCV(CS)])
def test_several_sets_may_be_a_tuple_as_in_xgboost(data, others, make):
    sets, qids = [(each.X, each.y) for each in others], [each.qid for each in others]
    fit = partial(make().fit, data.X, data.y, qid=data.qid)
    expected = fit(eval_set=sets, eval_qid=qids).evals_result_
    assert fit(eval_set=tuple(sets), eval_qid=tuple(qids)).evals_result_ == expected


def test_the_first_set_chooses_C(data, others):
    sets = [(each.X, each.y) for each in others]
    model = RankSVMCV(CS, metric="map").fit(
        data.X, data.y, group=sizes(data), eval_set=sets, eval_group=[*map(sizes, others)]
    )
    alone = RankSVMCV(CS, metric="map").fit(data.X, data.y, qid=data.qid, eval_set=sets[0], eval_group=sizes(others[0]))
    assert alone.C_ == model.C_
    assert model.scores_.shape == (3, 1)
    assert model.evals_result_["valid_0"]["map"] == model.scores_[:, 0].tolist()
    chosen = CS.index(model.C_)
    assert model.evals_result_["valid_1"]["map"][chosen] == value(model, others[1], "map")


@pytest.mark.parametrize("shape", ["bare", "in a list"])
@pytest.mark.parametrize("kind", ["qid", "group"])
def test_the_queries_of_one_set_may_be_bare(data, others, shape, kind):
    other = others[0]
    queries = other.qid if kind == "qid" else sizes(other)
    for container in (np.asarray, list, pd.Series):
        given = container(queries) if shape == "bare" else [container(queries)]
        model = RankSVM().fit(data.X, data.y, qid=data.qid, eval_set=[(other.X, other.y)], **{f"eval_{kind}": given})
        assert model.evals_result_["valid_0"]["ndcg@10"] == [value(model, other)]


def test_columns_of_ids(data, others):
    def frame(part):
        return pd.DataFrame(part.X, columns=list("abcde")).assign(query=part.qid, session=part.qid)

    expected = RankSVM().fit(data.X, data.y, qid=data.qid)
    by_query, by_session = (frame(others[0]).drop(columns=name) for name in ("session", "query"))
    for X, qid, X_eval, eval_qid in (
        (frame(data).drop(columns="session"), "query", by_query, None),
        (frame(data)[list("abcde")], data.qid, by_session, "session"),
        (frame(data)[list("abcde")], data.qid, by_session, ["session"]),
    ):
        model = RankSVM().fit(X, data.y, qid=qid, eval_set=[(X_eval, others[0].y)], eval_qid=eval_qid)
        assert model.evals_result_["valid_0"]["ndcg@10"] == [value(expected, others[0])]


class _LTRTransformer:
    """The calls of ``pyterrier.ltr.apply_learned_model(learner, form="ltr", fit_kwargs=...)``, as it makes them."""

    def __init__(self, learner, fit_kwargs):
        self.learner, self.fit_kwargs = learner, fit_kwargs

    @staticmethod
    def _count_by_topic(results):
        results = results.sort_values("qid")
        return results.groupby(["qid"], sort=False)["docno"].count().to_numpy(), results

    def fit(self, results, qrels, results_valid, qrels_valid):
        train = results.merge(qrels, on=["qid", "docno"], how="left").fillna(0)
        valid = results_valid.merge(qrels_valid, on=["qid", "docno"], how="left").fillna(0)
        counts_train, train = self._count_by_topic(train)
        counts_valid, valid = self._count_by_topic(valid)
        self.learner.fit(
            np.stack(train["features"].values),
            train["label"].values,
            group=counts_train,
            eval_set=[(np.stack(valid["features"].values), valid["label"].values)],
            eval_group=[counts_valid],
            **self.fit_kwargs,
        )

    def transform(self, results):
        n_features = results.iloc[0].features.shape[0]
        if hasattr(self.learner, "feature_importances_") and len(self.learner.feature_importances_) != n_features:
            raise ValueError("another number of features")
        return results.assign(score=self.learner.predict(np.stack(results["features"].values)))


@pytest.mark.parametrize("make", [RankSVM, lambda: RankSVMCV(CS)])
def test_pyterrier(data, others, make):
    def retrieved(part):
        docno = [f"d{row}" for row in range(len(part.y))]
        qid = [f"q{n}" for n in part.qid]
        results = pd.DataFrame({"qid": qid, "docno": docno, "features": list(part.X)}).sample(frac=1, random_state=0)
        judged = pd.DataFrame({"qid": qid, "docno": docno, "label": part.y.astype(int)})
        return results, judged[judged["label"] > 0]  # most documents are unjudged

    results, judged = retrieved(data)
    results_valid, judged_valid = retrieved(others[0])
    learner = make()
    weight = np.ones(len(results))
    transformer = _LTRTransformer(learner, fit_kwargs={"sample_weight": weight, "query_weight": weight})
    transformer.fit(results, judged, results_valid, judged_valid)
    assert learner.n_queries_ == 40
    scored = transformer.transform(results_valid).sort_index()
    np.testing.assert_array_equal(scored["score"], learner.predict(others[0].X))
    values = learner.evals_result_["valid_0"]["ndcg@10"]
    assert any(each == pytest.approx(value(learner, others[0])) for each in values)


@pytest.mark.parametrize("make", [RankSVM, lambda: RankSVMCV(CS), AdditiveRankSVM, lambda: AdditiveRankSVMCV(CS)])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eval_qid": [1]}, r"eval_qid is given without eval_set=\[\(X, y\)\]"),
        ({"eval_group": [1]}, "eval_group is given without eval_set"),
        ({"eval_set": []}, "eval_set must be a list of tuples"),
        ({"eval_X": np.eye(5)}, "eval_X and eval_y belong together"),
        ({"eval_X": np.eye(5), "eval_y": (np.zeros(5),)}, "must both be arrays, or tuples with one array for each set"),
        ({"eval_X": np.eye(5), "eval_y": np.zeros(5), "eval_set": [(np.eye(5), np.zeros(5))]}, "give one of them"),
        ({"eval_set": [np.eye(5)]}, "eval_set must be a list of tuples"),
        ({"eval_set": (np.eye(5), np.zeros(5))}, "valid_0: the training data have 40 queries: give this set's"),
        ({"eval_set": [(np.eye(5), np.zeros(5))] * 2, "eval_group": [5]}, "eval_group must be a list of 2"),
        ({"eval_set": [(np.eye(5), np.zeros(5))], "eval_group": [4]}, "valid_0: the sizes in group add up to 4"),
        ({"eval_set": [(np.eye(4), np.zeros(4))], "eval_group": [4]}, "valid_0: X has 4 features, but"),
        ({"eval_set": [(np.eye(5), np.full(5, np.nan))], "eval_group": [5]}, "valid_0: y is nan in row 0"),
        (
            {"eval_set": [(np.full((5, 5), np.inf), np.zeros(5))], "eval_group": [5]},
            r"^eval_set, valid_0: .* infinity at X\[0, 0\]",
        ),
        ({"eval_set": [(np.eye(5), np.zeros(5))], "eval_group": [5], "eval_qid": [[0] * 5]}, "valid_0: Give qid"),
    ],
)
def test_sets_that_cannot_be_used(data, make, options, message, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("refused only after the fit")

    monkeypatch.setattr(LinearProblem, "solve", never)
    with pytest.raises(DataError, match=message):
        make().fit(data.X, data.y, qid=data.qid, **options)


SCALED = [RankSVM(), RankSVMCV(Cs=[0.1]), FactorizedRankSVM(max_epochs=2), SOLARRanker()]


@pytest.mark.parametrize("model", SCALED, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_set_of_another_scale_is_warned_about(model, make):
    data = make_ranking(n_queries=20, n_features=6, random_state=0)
    scale = np.array([100.0, 20.0, 1.0, 50.0, 1000.0, 30.0])
    for X, other in ((data.X, data.X * scale), (data.X * scale, data.X)):
        with pytest.warns(ScaleWarning, match=r"eval_set, valid_0: .* times as large.* Pipeline") as found:
            model.fit(make(X), data.y, qid=data.qid, eval_set=(make(other), data.y), eval_qid=data.qid)
        assert [each.filename for each in found if each.category is ScaleWarning] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaleWarning)
        model.fit(make(data.X), data.y, qid=data.qid, eval_set=(make(3.0 * data.X), data.y), eval_qid=data.qid)


def test_a_pipeline_that_scales_x_alone_is_warned_about():
    data = make_ranking(n_queries=20, n_features=6, random_state=0)
    X = 1000.0 * data.X
    pipeline = make_pipeline(StandardScaler(), RankSVMCV(Cs=[0.1]))
    sets = {"ranksvmcv__eval_set": (X, data.y), "ranksvmcv__eval_qid": data.qid}
    with pytest.warns(ScaleWarning, match="steps of a Pipeline transform X, but not eval_set"):
        pipeline.fit(X, data.y, ranksvmcv__qid=data.qid, **sets)


def test_features_that_are_0_in_one_set_are_not_compared():
    data = make_ranking(n_queries=20, n_features=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaleWarning)
        RankSVM().fit(data.X, data.y, qid=data.qid, eval_set=(np.zeros_like(data.X), data.y), eval_qid=data.qid)


@pytest.mark.parametrize("ranker", [RankSVMCV(CS), SOLARRanker(random_state=0), AdditiveRankSVM()], ids=repr)
def test_a_pipeline_transforms_the_features_of_a_set_if_asked_to(data, others, ranker):
    other, scaler = others[0], StandardScaler().fit(data.X)
    expected = clone(ranker).fit(
        scaler.transform(data.X),
        data.y,
        qid=data.qid,
        eval_set=(scaler.transform(other.X), other.y),
        eval_qid=other.qid,
    )
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(ranker).set_fit_request(eval_X=True, eval_y=True, eval_qid=True)
        pipeline = make_pipeline(StandardScaler(), asking, transform_input=["eval_X"])
        pipeline.fit(data.X, data.y, qid=data.qid, eval_X=other.X, eval_y=other.y, eval_qid=other.qid)
    assert pipeline[-1].evals_result_ == expected.evals_result_
