"""cross_validate with pairs, Preferences and censored times, against folds fitted one by one."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranksvm import KernelRankSVM, Preferences, QueryKFold, RankSVM, cross_validate
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics import accuracy_interval, evaluate

NAME = "pairwise_accuracy"


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    chosen, rejected = random.normal(0.4, 1.0, (90, 4)), random.normal(size=(90, 4))
    return Preferences(chosen, rejected, prompt=np.arange(90) // 3, weight=random.random(90))


def by_hand(data, model, place, cv=5):
    train, test = list(QueryKFold(cv).split(data.pairs, groups=data.prompt))[place]
    part = data.taken(test)
    fitted = model.fit(data.taken(train))
    right = fitted.predict(data.chosen[test]) > fitted.predict(data.rejected[test])
    return np.average(right, weights=part.weight)


@pytest.mark.parametrize("model", [RankSVM(C=0.1), KernelRankSVM(C=0.1, gamma=0.1)], ids=["linear", "kernel"])
def test_folds_of_prompts(data, model):
    found = cross_validate(model, data)
    assert found.scores[NAME] == pytest.approx([by_hand(data, model, place) for place in range(5)])
    listed = {"pairs": data.pairs, "pair_weight": data.weight, "qid": data.qid}
    assert cross_validate(model, data.X, **listed, metrics=NAME).scores[NAME].tolist() == found.scores[NAME].tolist()
    low, high = accuracy_interval(found.pooled())
    assert low < found.pooled().means[NAME] < high


def test_folds_without_queries(data):
    alone = Preferences(data.chosen, data.rejected)
    found = cross_validate(RankSVM(C=0.1), alone, cv=3)
    listed = cross_validate(RankSVM(C=0.1), alone.X, pairs=alone.pairs, cv=3)
    assert [fold.n_queries for fold in found.folds] == [fold.n_queries for fold in listed.folds] == [30, 30, 30]


def test_frames_and_splits_of_ones_own(data):
    frames = Preferences(pd.DataFrame(data.chosen), pd.DataFrame(data.rejected), prompt=data.prompt, weight=data.weight)
    splits = [(np.arange(60), np.arange(60, 90))]
    found, expected = (cross_validate(RankSVM(C=0.1), each, cv=splits) for each in (frames, data))
    assert found.means == expected.means
    with pytest.raises(DataError, match="divides query 9"):
        cross_validate(RankSVM(), data, cv=[(np.arange(29), np.arange(29, 90))])


def test_pairs_reach_the_ranker_of_a_pipeline(data):
    found = cross_validate(make_pipeline(StandardScaler(), RankSVM(C=0.1)), data)
    train, test = next(QueryKFold(5).split(data.pairs, groups=data.prompt))
    scaler = StandardScaler().fit(data.taken(train).rows(np.concatenate([train, train + 90])))
    scaled = Preferences(scaler.transform(data.chosen), scaler.transform(data.rejected), weight=data.weight)
    fitted = RankSVM(C=0.1).fit(scaled.taken(train))
    assert found.scores[NAME][0] == pytest.approx(fitted.score(scaled.taken(test)))


def test_a_precomputed_kernel(data):
    gram = data.X @ data.X.T
    model = KernelRankSVM(C=0.1, kernel="precomputed", tol=1e-8)
    found = cross_validate(model, gram, pairs=data.pairs, qid=data.qid)
    linear = cross_validate(RankSVM(C=0.1, tol=1e-8), data.X, pairs=data.pairs, qid=data.qid)
    np.testing.assert_allclose(found.scores[NAME], linear.scores[NAME], atol=0.06)


def test_censored_times():
    random = np.random.default_rng(0)
    X, time, event = random.normal(size=(100, 3)), random.exponential(size=100), random.random(100) < 0.6
    qid = np.arange(100) % 10
    found = cross_validate(RankSVM(C=0.1), X, time, qid=qid, event=event)
    for place, (train, test) in enumerate(QueryKFold(5).split(X, qid=qid)):
        scores = RankSVM(C=0.1).fit(X[train], time[train], event=event[train], qid=qid[train]).predict(X[test])
        expected = evaluate(time[test], scores, qid[test], "concordance_index", event=event[test])
        assert found.scores["concordance_index"][place] == pytest.approx(expected["concordance_index"])


def test_what_is_refused(data):
    with pytest.raises(OptionError, match="metric='map' needs labels"):
        cross_validate(RankSVM(), data, metrics=["map"])
    with pytest.raises(DataError, match="y is given in addition to Preferences"):
        cross_validate(RankSVM(), data, np.ones(180))
    with pytest.raises(DataError, match="y and event are for labels"):
        cross_validate(RankSVM(), data.X, np.ones(180), pairs=data.pairs)
    with pytest.raises(DataError, match="without pairs"):
        cross_validate(RankSVM(), data.X, np.ones(180), pair_weight=np.ones(90))
    with pytest.raises(DataError, match="needs labels y, or pairs"):
        cross_validate(RankSVM(), data.X, qid=data.qid)
