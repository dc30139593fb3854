"""Features outside the range that answers have told: they are clipped or refused, and teach nothing."""

import time
from functools import wraps

import msgspec
import numpy as np
import pytest
from sklearn.base import clone

import ranksvm
from ranksvm import metrics
from ranksvm.estimators import ONLINE_CHOICES
from ranksvm.serving.feature_range import FeatureRange, RangeRule
from ranksvm.serving.feedback import Lesson
from ranksvm.serving.learner import Learner, Schedule, begin
from ranksvm.serving.learning import CHAMPION, Learning, Settings
from ranksvm.serving.records import Entry, Event, Kind, LogEntry, Shown
from ranksvm.serving.replay import replay
from ranksvm.serving.store import open_store

from .conftest import event, feedback
from .http_service import Running

CLIP = RangeRule("clip")
SETTINGS = Settings(["f1", "f2", "f3"])
WILD = [1e3, 1e10, 1e14, 1e100, 1e300]
MODELS = {
    "solar1": ranksvm.SOLARRanker(random_state=0),
    "solar2": ranksvm.SOLARRanker(order=2, gamma=10.0, random_state=0),
    "solar2, diagonal": ranksvm.SOLARRanker(order=2, covariance="diagonal", random_state=0),
    "prank": ranksvm.PRanker([0, 1, 2, 3, 4], random_state=0),
    "perceptron": ranksvm.PairwisePerceptronRanker(random_state=0),
    "committee": ranksvm.PerceptronCommitteeRanker(random_state=0),
}


def solar():
    return ranksvm.SOLARRanker(order=2, gamma=1.0, random_state=0)


def usual(n_answers=100, rule=CLIP, n_features=3):
    """A range after answers with standard normal features, and the largest values of each."""
    random, found, largest = np.random.default_rng(0), FeatureRange(rule), []
    for number in range(n_answers):
        X = random.normal(size=(10, n_features))
        assert found.outside(X) is None
        assert not found.add(X, None, float(number))
        largest.append(np.abs(X).max(axis=0))
    return found, np.array(largest)


def answer(X, y, seq, names=None):
    """An entry of a log that gives labels to documents."""
    X = np.ascontiguousarray(X)
    shown = Shown([f"d{row}" for row in range(len(X))], list(range(len(X))), 1, X.shape[1], X.dtype.str)
    one = Event(f"e{seq:06d}", float(seq), shown, X.tobytes())
    content = msgspec.msgpack.encode({"labels": np.asarray(y).tolist()})
    return LogEntry(seq, Entry(Kind.FEEDBACK, one.id, content, float(seq)), b"", one)


# -- the range ---------------------------------------------------------------------------------------------------------


def test_the_range_of_the_first_answers_is_a_multiple_of_a_quantile():
    for n in range(1, 26):
        found, largest = usual(n)
        size = np.sort(largest, axis=0)[int(0.75 * (n - 1))]
        assert found.bound == pytest.approx(5.0 * (1.0 + 10.0 / n) * size)


def test_sizes_of_many_answers_are_near_the_quantile():
    found, largest = usual(3_000)
    assert found.bound / (5.0 * (1.0 + 10.0 / 3_000)) == pytest.approx(np.quantile(largest, 0.75, axis=0), rel=0.1)


@pytest.mark.parametrize("value", WILD)
@pytest.mark.parametrize("n_answers", [1, 2, 5, 24, 25, 100])
def test_one_wild_value_does_not_widen_a_range(value, n_answers):
    found, _ = usual(n_answers)
    before, X = found.bound, np.ones((4, 3))
    X[1, 2] = value
    assert found.outside(X).sum() == 1
    found.add(X, np.array([True, False, True, True]), float(n_answers))
    assert (found.bound <= 1.011 * before).all() or n_answers < 25
    assert found.outside(X).sum() == 1


def test_a_fourth_of_the_answers_does_not_widen_a_range_for_good():
    found, _ = usual()
    random, before = np.random.default_rng(1), found.bound
    for number in range(5_000):
        X = random.normal(size=(10, 3)) * (1e10 if number % 5 == 0 else 1.0)
        found.add(X, None, 3600.0 * number)
    assert (found.bound < 1.3 * before).all()


def test_a_range_follows_features_that_have_changed():
    found, _ = usual()
    X = 1e3 * np.random.default_rng(1).normal(size=(10, 3))
    for number in range(1_000):
        found.add(X, None, 60.0 * number)
    assert found.outside(X) is None


def test_an_hour_at_most_doubles_a_range():
    found, _ = usual()
    before = found.bound * 100 / 110  # what will be known with certainty
    X = np.full((4, 3), 1e14)
    for _ in range(2_000):
        found.add(X, np.zeros(4, dtype=bool), 3599.0)
    assert (found.bound <= 2.0 * (1.0 + 10.0 / 2_100) * before * 1.2).all()
    at_most = found.bound
    for number in range(2_000):
        found.add(X, np.zeros(4, dtype=bool), 3600.0 + number)
    assert (found.bound <= 2.0 * at_most).all()
    assert (found.bound > 1.9 * at_most).all()


def test_a_range_grows_after_a_clock_was_set_back():
    found, _ = usual()
    X = np.full((4, 3), 1e14)
    found.add(X, None, 1e10)
    before = found.bound
    for number in range(2_000):
        found.add(X, None, 60.0 * number)
    assert (found.bound > 100.0 * before).all()


def test_clocks_that_differ_by_an_hour_do_not_make_a_range_grow_faster():
    found, _ = usual()
    X = np.full((4, 3), 1e14)
    for number in range(2_000):
        found.add(X, None, 3599.0 + number % 2)
    before = found.bound
    for number in range(2_000):
        found.add(X, None, 3599.0 + number % 2)
    assert (found.bound <= before).all()


def test_a_feature_that_was_always_0_counts_as_large_as_the_largest():
    found = FeatureRange(CLIP)
    for _ in range(30):
        found.add(np.array([[1.0, 0.0, 100.0], [0.0, 0.0, 10.0]]), None, 0.0)
    assert found.bound[1] == pytest.approx(5.0 * 11.0 * 100.0, rel=0.02)
    found.add(np.array([[1.0, 1e14, 100.0]]), np.zeros(1, dtype=bool), 0.0)
    assert found.bound[1] == pytest.approx(5.0 * 11.0 * 100.0, rel=0.04)
    for _ in range(1_000):
        found.add(np.array([[1.0, -3.0, 100.0]]), None, 0.0)
    assert found.bound[1] < 25.0


@pytest.mark.parametrize("number", [0, 20, 24, 25, 40])
@pytest.mark.parametrize("value", [1e-300, 1e300])
def test_the_first_value_of_a_feature_that_was_0_does_not_exclude_later_ones(number, value):
    found, rng = FeatureRange(CLIP), np.random.default_rng(0)
    X = np.abs(rng.normal(size=(300, 10, 3)))
    X[:45, :, 2] = 0.0
    X[number, :, 2] = value
    for X_of_query in X[:45]:
        found.add(X_of_query, None, 0.0)
    for X_of_query in X[45:]:
        assert found.outside(X_of_query) is None
        found.add(X_of_query, None, 0.0)
    assert found.bound[2] < 100.0


def test_answers_that_are_0_throughout_tell_no_range():
    found = FeatureRange(CLIP)
    for _ in range(30):
        found.add(np.zeros((2, 3)), None, 0.0)
        assert found.bound is None
        assert found.outside(np.full((2, 3), 1e300)) is None
    found.add(np.ones((2, 3)), None, 0.0)
    assert found.bound.tolist() == [55.0, 55.0, 55.0]


@pytest.mark.parametrize("rule", [RangeRule(), RangeRule("none")])
def test_without_a_range_all_is_inside(rule):
    found, _ = usual(rule=rule)
    assert found.bound is None
    assert found.state == FeatureRange(rule).state


@pytest.mark.parametrize("n_answers", [0, 1, 10, 25, 60])
def test_a_range_continues_from_its_state(n_answers):
    found, _ = usual(n_answers)
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(found.state))
    again = FeatureRange(CLIP, stored)
    assert again.state == found.state
    for number in range(30):
        X = np.random.default_rng(number).normal(size=(5, 3)) * 10.0**number
        assert found.add(X, None, 1e4) == again.add(X, None, 1e4)
        assert again.state == found.state
        assert np.array_equal(again.bound, found.bound)


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_clipping_and_what_is_learned_from(dtype):
    found, _ = usual()
    X = np.array([[1, 2, 3], [1e30, 0, 0], [0, -1e20, 1e10], [3, 2, 1]], dtype)
    lesson = found.applied(Lesson(X, np.arange(4), np.arange(4.0)))
    assert lesson.X.dtype == X.dtype
    assert (np.abs(lesson.X) <= found.bound * (1 + 1e-6)).all()
    assert lesson.X[[0, 3]].tolist() == X[[0, 3]].tolist()
    assert (np.sign(lesson.X) == np.sign(X)).all()
    inside = lesson.inside_range
    assert (inside.X.tolist(), inside.y.tolist(), inside.rank.tolist()) == (X[[0, 3]].tolist(), [0, 3], [0, 3])
    pairs, weight = np.array([[0, 1], [3, 0], [2, 3], [0, 3]]), np.array([1.0, 2.0, 3.0, 4.0])
    inside = found.applied(Lesson(X, np.arange(4), pairs=pairs, weight=weight)).inside_range
    assert (inside.pairs.tolist(), inside.weight.tolist()) == ([[1, 0], [0, 1]], [2.0, 4.0])


# -- learning ----------------------------------------------------------------------------------------------------------

CLEAN = ranksvm.make_ranking(n_queries=300, n_docs=10, n_features=10, random_state=0)
FEATURES = CLEAN.X.astype(np.float64)


def quality(model, value):
    """Mean NDCG@10 of clean queries before each is learned from, while one client in ten sends wild values."""
    settings = Settings([f"f{j}" for j in range(10)])
    learning = Learning({CHAMPION: clone(model)}, settings, range_rule=CLIP)
    random, scores = np.random.default_rng(1), []
    for number in range(CLEAN.queries.n_queries):
        rows = CLEAN.queries.rows(number)
        X, y = FEATURES[rows], CLEAN.y[rows]
        if value is not None and number % 10 == 3:
            wild, where = X.copy(), random.random(X.shape) < 0.3
            wild[where] = value * random.choice([-1.0, 1.0], where.sum())
            learning.apply(answer(wild, random.permutation(y), learning.position + 1), None)
        ranker = learning.models[CHAMPION]
        scores.append(ranker.predict(learning.range.clipped(X)) if number else np.zeros(len(y)))
        learning.apply(answer(X, y, learning.position + 1), None)
    return metrics.evaluate(CLEAN.y, np.concatenate(scores), qid=CLEAN.qid, metrics="ndcg@10")["ndcg@10"], learning


@pytest.mark.parametrize("name", MODELS)
def test_clean_queries_are_ranked_as_well_as_without_wild_values(name):
    clean, learning = quality(MODELS[name], None)
    assert (learning.outside, learning.skipped) == (0, 0)
    for value in WILD:
        found, learning = quality(MODELS[name], value)
        assert abs(found - clean) < 0.01, value
        assert learning.outside == 30
        assert "whose range is" in learning.reason
        assert np.abs(learning.models[CHAMPION].coef_).max() < 1e6


def test_every_learner_of_the_service_is_tested():
    assert {name.partition(",")[0] for name in MODELS} == set(ONLINE_CHOICES)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("value", WILD)
def test_models_begin_again_if_the_first_answer_was_wild(name, value):
    learning = Learning({CHAMPION: clone(MODELS[name])}, Settings([f"f{j}" for j in range(10)]), range_rule=CLIP)
    rows = [CLEAN.queries.rows(number) for number in range(30)]
    learning.apply(answer(FEATURES[rows[0]] * value, CLEAN.y[rows[0]], 1), None)
    learning.apply(answer(FEATURES[rows[1]], CLEAN.y[rows[1]], 2), None)
    # as it was before the first answer: what follows it is learned from as by a new model
    direct = clone(MODELS[name])
    for number in range(2, 30):
        learning.apply(answer(FEATURES[rows[number]], CLEAN.y[rows[number]], number + 1), None)
        direct.partial_fit(FEATURES[rows[number]], CLEAN.y[rows[number]])
    assert learning.models[CHAMPION].coef_.tobytes() == direct.coef_.tobytes()


@pytest.mark.parametrize("name", MODELS)
def test_a_step_within_the_range_is_bounded(name):
    """The bounds of docs/serving.md, by pairs or documents at the edges of the range."""
    random, n = np.random.default_rng(0), 4
    bound = np.array([1.0, 5.0, 0.1, 30.0])
    for _ in range(50):
        model = clone(MODELS[name])
        model.partial_fit(random.normal(size=(6, n)), random.integers(0, 5, 6))
        if name == "prank":
            model.levels_ = np.arange(5.0)
        before, S = model.weights_.copy(), getattr(model, "_covariance_", None)
        S = None if S is None else model.covariance_.copy()
        X = bound * random.choice([-1.0, 1.0], (2, n))
        z = X[0] - X[1]
        hinge = max(0.0, 1.0 - float(z @ before))
        X, y = (X[:1], [4]) if name == "prank" else (X, [4, 0])
        model.partial_fit(X, y)
        step = model.weights_ - before
        if name == "prank":
            assert (np.abs(step) <= 4.0 * bound * (1 + 1e-12)).all()
        elif name in ("perceptron", "committee"):
            assert (np.abs(step) <= 2.0 * bound * (1 + 1e-12)).all()
        elif not z.any():
            assert not step.any()
        elif name == "solar1":
            length = min(hinge / np.linalg.norm(z), 2.0 * model.C * hinge * np.linalg.norm(z))
            assert np.linalg.norm(step) <= length * (1 + 1e-9)
        else:
            full = np.diag(S) if S.ndim == 1 else S
            square = float(z @ full @ z)
            assert float(z @ step) <= hinge * (1 + 1e-9)
            after = np.diag(model.covariance_) if S.ndim == 1 else model.covariance_
            keeps = model.gamma / (model.gamma + square)
            eigenvalues = np.linalg.eigvalsh(after - keeps * full)
            assert eigenvalues.min() > -1e-9


def write(store, numbers, wild=()):
    """Events with feedback; those of some numbers have wild features."""
    for number in numbers:
        one = event(number, at=1000.0 * number)
        if number in wild:
            X = one.X.copy()
            X[number % 4, number % 3] = 10.0 ** (6 + 3 * number)
            one = Event(one.id, one.at, one.shown, X.tobytes())
        says = {"labels": [2, 1, 0, 0]} if number % 2 else {"clicks": ["d0", "d2"]}
        store.append([one, feedback(one.id, says, at=one.at)])


def steps(learner):
    while learner.step():
        pass


def test_any_division_of_a_log_gives_the_same_range(tmp_path):
    states = []
    for parts in ([25, 35], [1, 1, 3, 20, 5, 30]):
        store = open_store(str(tmp_path / f"{len(parts)}.db"))
        begin(store, {CHAMPION: solar(), "challenger": ranksvm.PairwisePerceptronRanker()}, SETTINGS, at=0.0)
        first = 0
        for size in parts:
            write(store, range(first, first + size), {0, 5, 6, 30, 45, 59})
            first += size
            if first == 25:
                says = msgspec.msgpack.encode({"outside": "refuse", "multiple": 20.0})
                store.append([Entry(Kind.FEATURE_RANGE, None, says, 0.0)])
            learner = Learner(store, Schedule(4, 0.0))  # a new process
            steps(learner)
            learner.close()
        states.append(store.checkpoint().state)
        found = replay(store)
        assert found.learning.to_bytes() == states[-1]
        assert len(found.compared) == len(store.checkpoints()) - 1
        assert found.learning.outside == 5  # the first one was not known to be wild
        assert found.learning.range.rule == RangeRule("refuse", 20.0)
        store.close()
    assert states[0] == states[1]


def test_a_checkpoint_of_an_older_release_has_no_range():
    state = msgspec.msgpack.decode(Learning({CHAMPION: solar()}, SETTINGS).to_bytes())
    for name in ("range_rule", "range", "beginning", "outside"):
        del state[name]
    learning = Learning.from_bytes(msgspec.msgpack.encode(state))
    assert learning.range.rule == RangeRule("unset")
    learning.apply(answer(np.full((2, 3), 1e10), [1, 0], 1), None)
    assert (learning.range.bound, learning.outside) == (None, 0)


def test_another_multiple_does_not_make_a_wild_beginning_good():
    learning = Learning({CHAMPION: solar()}, SETTINGS, range_rule=CLIP)
    learning.apply(answer(np.full((2, 3), 1e10) * [[1], [-1]], [1, 0], 1), None)
    says = msgspec.msgpack.encode({"outside": "clip", "multiple": 20.0})
    learning.apply(LogEntry(2, Entry(Kind.FEATURE_RANGE, None, says, 0.0), b"", None), None)
    learning.apply(answer(np.eye(3), [2, 1, 0], 3), None)
    assert "models began again" in learning.reason
    assert not hasattr(learning.models[CHAMPION], "weights_")


def test_what_nobody_answered_tells_no_range(tmp_path):
    learning = Learning({CHAMPION: solar()}, SETTINGS, range_rule=CLIP)
    found = answer(np.full((2, 3), 1e10), [0, 0], 1)
    entry = Entry(Kind.UNANSWERED, found.entry.event, msgspec.msgpack.encode({}), 0.0)
    learning.apply(LogEntry(1, entry, b"", found.answered), None)
    assert learning.range.bound is None


def test_an_answer_about_wild_documents_alone_is_skipped():
    learning = Learning({CHAMPION: solar()}, SETTINGS, range_rule=CLIP)
    for seq in range(1, 31):
        learning.apply(answer(np.random.default_rng(seq).normal(size=(5, 3)), [4, 3, 2, 1, 0], seq), None)
    before = learning.models[CHAMPION].coef_.copy()
    learning.apply(answer(np.full((5, 3), -1e10), [0, 1, 2, 3, 4], 31), None)
    assert (learning.skipped, learning.outside) == (1, 1)
    assert "entry 31, event e000031: document 'd0' has -1e+10 in feature 'f1'" in learning.reason
    assert (learning.models[CHAMPION].coef_ == before).all()
    assert learning.models[CHAMPION].n_queries_ == 30


def test_an_activated_model_is_what_begins_again(tmp_path):
    store = open_store(str(tmp_path / "events.db"))
    begin(store, {CHAMPION: ranksvm.SOLARRanker(), "challenger": solar()}, SETTINGS, at=0.0)
    says = msgspec.msgpack.encode({"version": 1, "model": "challenger"})
    store.append([Entry(Kind.ACTIVATION, None, says, 0.0)])
    write(store, range(4), {0})
    learner = Learner(store, Schedule(100, 0.0))
    steps(learner)
    assert "models began again" in learner.summary["reason"]
    assert learner.served.models[CHAMPION].order == 2
    assert learner.served.models[CHAMPION].n_queries_ == 2
    replay(store)
    learner.close()
    store.close()


def test_a_batch_model_is_not_fitted_to_wild_documents(tmp_path, monkeypatch):
    store = open_store(str(tmp_path / "events.db"))
    model = ranksvm.RankSVM(C=0.1).fit([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], [1, 0], qid=[1, 1])
    begin(store, {CHAMPION: model}, Settings(SETTINGS.names, refit_every=40), at=0.0)
    fitted = []
    fit = ranksvm.RankSVM.fit
    recorded = wraps(fit)(lambda self, X, *a, **k: fitted.append(X) or fit(self, X, *a, **k))
    monkeypatch.setattr(ranksvm.RankSVM, "fit", recorded)
    write(store, range(40), {0, 5, 20})
    learner = Learner(store, Schedule(100, 0.0))
    steps(learner)
    (X,) = fitted
    assert X.shape == (4 * 32 - 3, 3)  # the last fifth is not fitted to
    assert np.abs(X).max() < 10
    assert "held-out queries" in learner.summary["refits"][0]["reason"]
    learner.close()
    store.close()


def test_the_log_of_the_process_tells(tmp_path, caplog):
    store = open_store(str(tmp_path / "events.db"))
    begin(store, {CHAMPION: solar()}, SETTINGS, at=0.0)
    write(store, range(30), {20})
    learner = Learner(store, Schedule(100, 0.0))
    steps(learner)
    learner.close()
    (told,) = [one.getMessage() for one in caplog.records if "outside" in one.getMessage()]
    assert "0 entries, and parts of 1 with features outside their range" in told
    assert "entry 21, event e000020" in told
    store.close()


# -- over HTTP ---------------------------------------------------------------------------------------------------------


def settle(service, position):
    end = time.monotonic() + 30
    while service.service.learner.served.position < position:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("outside", ["clip", "refuse"])
def test_requests_outside_the_range(tmp_path, outside):
    path = str(tmp_path / "events.db")
    store = open_store(path)
    begin(store, {CHAMPION: solar()}, SETTINGS, at=0.0, range_rule=RangeRule(outside))
    write(store, range(30))
    store.close()
    service = Running(path)
    settle(service, 30)
    client = service.client()
    wild = [[1.0, 2.0, 3.0], [0.0, -1e300, 0.0], [1.0, 1.0, 1.0]]
    status, found, _ = client.post("/v1/rank", {"matrix": wild, "ids": ["a", "b", "c"]})
    assert b"ranksvm_outside 1.0" in client.get("/metrics")[1]
    if outside == "refuse":
        assert status == 422
        assert found["detail"].startswith("document 'b' has -1e+300 in feature 'f2', whose range is -")
        assert next(service.store.recent_events(1))[0] == "e000029"
    else:
        served = service.service.learner.served
        X = served.range.clipped(np.array(wild))
        assert sorted(found["scores"]) == sorted(served.models[CHAMPION].predict(X).tolist())
        assert client.feedback(found["event"], labels=[0, 1, 2])[0] == 202
        assert service.store.event(found["event"]).X.tolist() == wild  # as it was sent
        explained = client.get(f"/v1/events/{found['event']}/explain")[1]
        assert [one["score"] for one in explained["documents"]] == found["scores"]
        settle(service, 31)
        overview = client.get("/v1/models")[1]
        assert (overview["outside"], overview["skipped"]) == (1, 0)
        assert "document 'b' has -1e+300 in feature 'f2'" in overview["reason"]
    client.close()
    service.stop()


def additive():
    """An additive model whose first feature is a category: 1, 2, or, rarely, 1000."""
    random = np.random.default_rng(0)
    X = np.column_stack([random.choice([1.0, 2.0, 1000.0], 300, p=[0.6, 0.37, 0.03]), random.normal(size=(300, 2))])
    return ranksvm.AdditiveRankSVM(C=0.1, categorical=[0]).fit(X, X[:, 0] == 1000.0, qid=np.repeat(np.arange(30), 10))


def test_categories_have_no_range(tmp_path):
    store = open_store(str(tmp_path / "events.db"))
    begin(store, {CHAMPION: additive()}, SETTINGS, at=0.0)
    learner = Learner(store, Schedule(10, 0.0))
    shown = Shown(["a", "b"], [0, 1], 1, 3, "<f8")
    for number in range(30):
        X = np.array([[1000.0 if number == 28 else 2.0, 0.5, 1.0], [1.0, 1.0, 0.5]])
        one = Event(f"e{number:06d}", 1000.0, shown, X.tobytes())
        store.append([one, feedback(one.id, {"labels": [1, 0]})])
    while learner.step():
        pass
    assert learner.served.range.clipped(np.array([[1000.0, 1e9, 0.0]]))[0, 0] == 1000.0
    assert learner.served.range.clipped(np.array([[1000.0, 1e9, 0.0]]))[0, 1] < 10.0
    assert learner.summary["outside"] == 0
    learner.close()
    again = Learning.from_bytes(store.checkpoint().state)
    assert np.isinf(again.range.bound).tolist() == [True, False, False]
    assert replay(store).learning.to_bytes() == store.checkpoint().state
    store.close()


@pytest.mark.parametrize("n_answers", [10, 40])
def test_the_numbers_of_categories_tell_no_range_of_other_features(n_answers):
    found = FeatureRange(CLIP, exempt=np.array([True, False, False, False]))
    found.add(np.array([[1000.0, 0.0, 0.0, 0.0]]), None, 0.0)
    assert found.bound is None
    for number in range(n_answers):
        found.add(np.array([[1000.0, 1.0, 0.0, float(number == 5)]]), None, 0.0)
    assert (found.bound[1:] < 60.0).all()
    found.add(np.array([[1000.0, 1.0, 3.0, 1.0]]), None, 0.0)
    assert (found.bound[1:] < 60.0).all()


def test_a_feature_that_is_a_category_for_one_of_two_models_has_a_range():
    models = {CHAMPION: solar(), "challenger": additive()}
    learning = Learning(models, SETTINGS, range_rule=CLIP)
    X = np.ones((2, 3))
    learning.range.add(X, None, 1000.0)
    assert np.isfinite(learning.range.bound).all()


def test_an_activated_model_brings_its_categories(tmp_path):
    store = open_store(str(tmp_path / "events.db"))
    begin(store, {CHAMPION: solar(), "challenger": additive()}, SETTINGS, at=0.0)
    one = event(1)
    activation = msgspec.msgpack.encode({"version": 1, "model": "challenger"})
    store.append([one, feedback(one.id), Entry(Kind.ACTIVATION, None, activation, 1000.0)])
    learning = replay(store).learning
    again = Learning.from_bytes(learning.to_bytes())
    assert np.isinf(learning.range.bound).tolist() == np.isinf(again.range.bound).tolist() == [True, False, False]
    store.close()
