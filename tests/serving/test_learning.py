"""What is learnt depends on the log alone: not on checkpoints, restarts, or the time between ranking and feedback."""

import time

import msgspec
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import ranksvm
from ranksvm.exceptions import DataError, OptionError, StoreError
from ranksvm.serving import refits
from ranksvm.serving.click_learning import ClickLearning
from ranksvm.serving.feedback import Feedback, content_of, mismatch
from ranksvm.serving.learner import Learner, Schedule, begin
from ranksvm.serving.learning import CHAMPION, Learning, Settings
from ranksvm.serving.models import model_bytes
from ranksvm.serving.records import Entry, Event, Kind, Outcome, Shown
from ranksvm.serving.replay import replay
from ranksvm.serving.store import open_store

from .conftest import event, feedback

DATA = ranksvm.make_ranking(n_queries=40, n_docs=8, n_features=3, random_state=0)
SETTINGS = Settings([f"f{j}" for j in (1, 2, 3)])


def solar(**options):
    return ranksvm.SOLARRanker(order=2, gamma=1.0, random_state=0, **options)


def query_event(number, teams=None):
    rows = DATA.queries.rows(number)
    X = DATA.X[rows]
    shown = Shown([f"d{row}" for row in range(len(rows))], list(range(len(rows))), 1, 3, X.dtype.str, teams=teams)
    return Event(f"e{number:06d}", float(number), shown, X.tobytes()), DATA.y[rows]


def write(store, numbers, form="labels"):
    """Events of the queries, and feedback on each."""
    for number in numbers:
        one, y = query_event(number)
        says = {"labels": y.tolist()}
        if form == "clicks":
            says = {"clicks": [f"d{row}" for row in np.flatnonzero(y > 1)]}
        elif form == "preferences":
            says = {"preferences": [["d0", "d1"], ["d2", "d1"]]}
        store.append([one, feedback(one.id, says, at=float(number))])


def steps(learner):
    while learner.step():
        pass


@pytest.fixture
def lite(tmp_path):
    opened = open_store(str(tmp_path / "events.db"))
    yield opened
    opened.close()


def test_means_and_model_are_those_of_progressive_validation(store):
    begin(store, {CHAMPION: solar()}, SETTINGS, at=0.0)
    write(store, range(40))
    learner = Learner(store, Schedule(7, 0.5))
    steps(learner)
    learner.close()
    expected = ranksvm.progressive_validation(solar(), DATA, metrics="ndcg@10")
    found = Learning.from_bytes(store.checkpoint().state)
    assert found.position == 40
    assert found.measures[CHAMPION].mean == pytest.approx(expected["ndcg@10"], abs=1e-15)
    assert found.models[CHAMPION].coef_.tobytes() == expected.models[0].coef_.tobytes()


@pytest.mark.parametrize("form", ["labels", "clicks", "preferences"])
@pytest.mark.parametrize("model", [solar(), solar(average=True), ranksvm.PairwisePerceptronRanker()], ids=type)
def test_any_division_gives_the_same_bytes(lite, tmp_path, form, model):
    stores = [lite, open_store(str(tmp_path / "other.db"))]
    for store, parts in zip(stores, ([40], [3, 4, 12, 21]), strict=True):
        begin(store, {CHAMPION: ranksvm.model_files.persistence.load(_buffer(model))}, SETTINGS, at=0.0)
        first = 0
        for size in parts:
            learner = Learner(store, Schedule(5, 0.5))  # a process that is new, and is killed in the end
            write(store, range(first, first + size), form)
            learner.step()
            if size == 21:
                steps(learner)
                learner.close()
            first += size
            with store._database.writing() as cursor:
                cursor.run("DELETE FROM lease")
        learner = Learner(store, Schedule(every=1000, seconds=0.0))
        steps(learner)
    one, two = (store.checkpoint() for store in stores)
    assert one.position == two.position == 40
    assert one.state == two.state
    stores[1].close()


def _buffer(model):
    import io

    return io.BytesIO(model_bytes(model))


def test_a_replay_rebuilds_any_model(lite):
    begin(lite, {CHAMPION: solar()}, SETTINGS, at=0.0)
    write(lite, range(20))
    learner = Learner(lite, Schedule(6, 0.5))
    steps(learner)
    learner.close()
    found = replay(lite)
    assert (found.first, found.learning.position) == (1, 20)
    assert len(found.compared) == len(lite.checkpoints()) - 1
    direct = solar()
    for number in range(9):
        rows = DATA.queries.rows(number)
        direct.partial_fit(DATA.X[rows], DATA.y[rows])
    past = replay(lite, until=9).learning.models[CHAMPION]
    assert past.coef_.tobytes() == direct.coef_.tobytes()
    with pytest.raises(OptionError, match="between 0 and 20, got 21"):
        replay(lite, until=21)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET content = (SELECT content FROM entries WHERE seq = 2) WHERE seq = 5",
        "UPDATE events SET features = zeroblob(length(features)) WHERE id = 'e000004'",
        "DELETE FROM entries WHERE seq = 5",
        "DELETE FROM events WHERE id = 'e000004'",
        "UPDATE meta SET number = 7 WHERE name = 'head'",
        "UPDATE checkpoints SET state = (SELECT state FROM checkpoints WHERE version = 1) WHERE version = 2",
    ],
)
def test_an_altered_log_is_told(lite, change):
    begin(lite, {CHAMPION: solar()}, SETTINGS, at=0.0)
    write(lite, range(8))
    learner = Learner(lite, Schedule(4, 0.5))
    steps(learner)
    learner.close()
    with lite._database.writing() as cursor:
        cursor.run(change)
    with pytest.raises(StoreError):
        replay(lite)


def test_a_learner_that_was_killed_is_replaced(store, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(store._database, "now", lambda cursor: now[0])
    begin(store, {CHAMPION: solar()}, SETTINGS, at=0.0)
    one, two = Learner(store, Schedule(5, 0.5)), Learner(store, Schedule(5, 0.5))
    write(store, range(10))
    one.step(now=0.0)
    two.step(now=0.0)
    assert (one.learns, two.learns) == (True, False)
    assert two.served.position == one.served.position == 5  # it follows
    now[0] += 10.0
    while two.step(now=10.0):
        pass
    assert two.learns
    assert two.served.position == 10
    # the first was only asleep: what it learns now is thrown away
    write(store, range(10, 20))
    while two.step(now=10.5):
        pass
    while one.step(now=0.5):
        pass
    assert not one.learns
    assert one.served.version == two.served.version == store.checkpoint().version
    replay(store)


def test_the_model_that_ranks_does_not_change_while_another_one_learns(lite):
    begin(lite, {CHAMPION: solar()}, SETTINGS, at=0.0)
    learner = Learner(lite, Schedule(every=100, seconds=1e9))
    learner.step(now=0.0)
    learner._saved = 0.0
    before = learner.served
    write(lite, range(10))
    learner.step(now=0.0)
    assert learner.served is before
    assert learner._learning.position == 10
    learner.step(now=2e9)
    assert learner.served.position == 10


def test_rollback_and_challengers(lite):
    begin(lite, {CHAMPION: solar(), "challenger": ranksvm.PairwisePerceptronRanker()}, SETTINGS, at=0.0)
    write(lite, range(10))
    learner = Learner(lite, Schedule(5, 0.5))
    steps(learner)
    old = Learning.from_bytes(lite.checkpoint(2).state)
    assert set(old.measures) == {"shown", CHAMPION, "challenger"}

    def activate(version, model):
        lite.append([Entry(Kind.ACTIVATION, None, msgspec.msgpack.encode({"version": version, "model": model}), 0.0)])
        learner._saved = -1e9
        steps(learner)
        return learner.served.models[CHAMPION]

    assert activate(2, CHAMPION).coef_.tobytes() == old.models[CHAMPION].coef_.tobytes()
    assert activate(2, "challenger").coef_.tobytes() == old.models["challenger"].coef_.tobytes()
    write(lite, range(10, 20))
    steps(learner)
    learner.close()
    assert replay(lite).learning.position == 22


def test_clicks_on_interleaved_rankings_are_credited(lite):
    begin(lite, {CHAMPION: solar(), "challenger": solar()}, SETTINGS, at=0.0)
    teams = ["champion", "challenger"] * 4
    for number, clicks in enumerate((["d0"], ["d1"], ["d1", "d3"], ["d0", "d1"], [])):
        one, _ = query_event(number, teams)
        lite.append([one, feedback(one.id, {"clicks": clicks})])
    learner = Learner(lite, Schedule(1000, 0.5))
    steps(learner)
    assert learner._learning.wins.counts == {"champion": 1, "challenger": 2, "ties": 2}


def test_no_feedback_in_time_is_labels_of_zero(tmp_path, monkeypatch):
    store = open_store(str(tmp_path / "events.db"), reward_wait=60.0)
    begin(store, {CHAMPION: solar()}, SETTINGS, at=0.0)
    store.append([query_event(0)[0]])  # of 1970
    late = event(1, 8, at=time.time() + 1e6)
    store.append([late])
    learner = Learner(store, Schedule(1000, 0.5))
    steps(learner)
    steps(learner)
    assert [found.entry.kind for found in store.entries(0, 10)] == [Kind.UNANSWERED]
    assert learner._learning.measures[CHAMPION].n_queries == 1
    replay(store)
    store.close()


def test_a_learner_that_does_not_rank_makes_no_copies(lite):
    begin(lite, {CHAMPION: solar()}, SETTINGS, at=0.0)
    write(lite, range(3))
    learner = Learner(lite, Schedule(1000, 0.0), ranks=False)
    assert (learner.served.models, learner.summary) == ({}, {})
    steps(learner)
    assert (learner.served.position, learner.served.models, learner.summary) == (3, {}, {})


def test_preferences_for_a_model_of_labels_are_skipped(lite):
    begin(lite, {CHAMPION: ranksvm.PRanker(levels=[0, 1, 2, 3, 4])}, SETTINGS, at=0.0)
    write(lite, range(2))
    write(lite, range(2, 4), "preferences")
    write(lite, range(4, 5))
    learner = Learner(lite, Schedule(1000, 0.0))
    steps(learner)
    assert (learner.served.position, learner._learning.skipped) == (5, 2)
    assert "PRank learns the levels" in learner.summary["reason"]


def test_what_cannot_be_learnt_from_is_skipped_and_told(lite):
    begin(lite, {CHAMPION: ranksvm.PRanker(levels=[0, 1, 2])}, SETTINGS, at=0.0)
    one, _ = query_event(0)
    lite.append([one, feedback(one.id, {"labels": [7.0] * 8})])
    write(lite, range(1, 5))
    learner = Learner(lite, Schedule(1000, 0.5))
    steps(learner)
    assert learner._learning.skipped >= 1
    assert "entry 1" in learner.summary["reason"] or learner._learning.skipped > 1
    assert learner._learning.position == 5
    replay(lite)


def test_features_that_overflow_do_not_stop_the_learner(lite):
    begin(lite, {CHAMPION: solar()}, SETTINGS, at=0.0)
    write(lite, range(3))
    huge = np.full((4, 3), 1.7e308) * [[1.0], [-1.0], [1.0], [-1.0]]
    lite.append([Event("e9", 0.0, event(9).shown, huge.tobytes()), feedback("e9")])
    write(lite, range(4, 6))
    learner = Learner(lite, Schedule(1000, 0.5))
    steps(learner)
    assert (learner._learning.position, learner._learning.skipped) == (6, 1)
    assert np.isfinite(learner.served.models[CHAMPION].coef_).all()
    replay(lite)


def test_a_batch_model_is_fitted_again_and_replaced_if_it_is_better(lite):
    weak = ranksvm.RankSVM(C=0.1).fit([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], [1, 0], qid=[1, 1])
    weak.coef_ = -np.ones(3)
    begin(lite, {CHAMPION: weak}, Settings(SETTINGS.names, refit_every=20, refit_window=100), at=0.0)
    write(lite, range(20))
    learner = Learner(lite, Schedule(10, 0.5))
    steps(learner)
    (verdict,) = learner.summary["refits"]
    write(lite, range(20, 40), "clicks")
    steps(learner)
    learner.close()
    (second, first) = Learning.from_bytes(lite.checkpoint().state).verdicts[::-1]
    assert first == verdict
    assert "held-out queries: ndcg@10" in first["reason"] + second["reason"]
    assert first["activated"] or second["activated"]
    assert not (first["activated"] and second["activated"])
    replay(lite)


@pytest.mark.parametrize(
    ("model", "by_number"),
    [
        (ranksvm.RankSVM(C=0.1, monotone={"b": 1}), {"monotone": {1: 1}}),
        (ranksvm.RankSVM(C=0.1, monotone="increasing"), {"monotone": "increasing"}),
        (ranksvm.AdditiveRankSVM(C=0.1, categorical=np.array(["c"])), {"categorical": [2]}),
        (
            ranksvm.AdditiveRankSVM(0.1, interactions=[("a", 1), np.array(["b", "c"])]),
            {"interactions": [[0, 1], [1, 2]]},
        ),
    ],
)
def test_a_model_that_names_features_is_fitted_again(lite, model, by_number):
    frame = pd.DataFrame(DATA.X.round(1), columns=list("abc"))
    model.fit(frame, DATA.y, qid=DATA.qid)
    begin(lite, {CHAMPION: model}, Settings(list("abc"), refit_every=20), at=0.0)
    write(lite, range(20))
    learner = Learner(lite, Schedule(10, 0.5))
    steps(learner)
    (verdict,) = learner.summary["refits"]
    assert "held-out queries" in verdict["reason"]
    champion = learner.served.models[CHAMPION]
    assert {name: getattr(champion, name) for name in by_number} == by_number
    replay(lite)


@pytest.mark.parametrize("name", ["FactorizedRankSVM", "RegularizedRankSVM"])
def test_a_model_that_takes_no_pairs_is_not_fitted_to_clicks(lite, name):
    model = getattr(ranksvm, name)().fit(DATA.X, DATA.y, qid=DATA.qid)
    begin(lite, {CHAMPION: model}, Settings(SETTINGS.names, refit_every=20), at=0.0)
    write(lite, range(1), "clicks")
    write(lite, range(1, 20))
    learner = Learner(lite, Schedule(10, 0.5))
    steps(learner)
    (verdict,) = learner.summary["refits"]
    assert verdict["reason"] == f"the fit failed: {name} learns from labels only, and some of the feedback has clicks."
    assert learner.summary["skipped"] == 0
    learner.close()


def test_a_fit_looks_back_only_as_far_as_memory_allows(lite, monkeypatch):
    write(lite, range(20))
    write(lite, range(20, 40), "clicks")

    def found(until):
        return refits._lessons(lite, (0, until), {}, ClickLearning())

    every = found(40)
    assert len(every) == 40
    pairs = [refits._size(lesson)[1] for lesson in every]
    monkeypatch.setattr(refits, "_MAX_PAIRS", sum(pairs[15:]))
    assert len(found(40)) == 25
    monkeypatch.setattr(refits, "_MAX_PAIRS", 1)
    assert len(found(40)) == next(n for n in range(1, 40) if sum(pairs[-n - 1 :]) > 1)
    assert len(found(20)) == 20  # the pairs of labels alone are not listed
    monkeypatch.setattr(refits, "_MAX_BYTES", sum(lesson.X.nbytes for lesson in every[17:20]))
    assert len(found(20)) == 3


def test_a_pipeline_learns_at_its_end(lite):
    model = make_pipeline(ranksvm.QueryMinMaxScaler().fit(DATA.X, qid=DATA.qid), solar())
    begin(lite, {CHAMPION: model}, SETTINGS, at=0.0)
    write(lite, range(10))
    learner = Learner(lite, Schedule(1000, 0.5))
    steps(learner)
    assert learner._learning.skipped == 0
    assert learner._learning.measures[CHAMPION].n_queries == 10
    replay(lite)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Feedback(), "found none of them"),
        (Feedback(clicks=[], labels={"d0": 1}), "found labels and clicks"),
        (Feedback(labels={}), "labels are empty"),
        (Feedback(labels=[1.0, float("inf"), 0]), "finite"),
        (Feedback(preferences=[("d0", "d0")]), "preferred to itself"),
        (Feedback(preferences=[("d0", "d1"), ("d1", "d0"), ("d0", "d1")]), "'d0' to 'd1' occurs twice"),
    ],
)
def test_feedback_that_makes_no_sense_is_refused(given, message):
    with pytest.raises(DataError, match=message):
        content_of(given)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Feedback(clicks=["d0", "d9"]), "the event has no document 'd9'."),
        (Feedback(labels={"d1": 1.0, "": 0.0}), "the event has no document ''."),
        (Feedback(preferences=[("d0", "d1"), ("d2", "d3")]), "the event has no document 'd3'."),
        (Feedback(labels=[1, 2]), "there are 2 labels for 3 documents."),
        (Feedback(labels=[1, 2, 3]), None),
        (Feedback(clicks=[]), None),
    ],
)
def test_feedback_that_does_not_fit_its_event_is_told(given, reason):
    assert mismatch(content_of(given), ["d0", "d1", "d2"]) == reason


def test_the_same_feedback_has_the_same_bytes():
    one, two = Feedback(labels={"d0": 1, "d1": 0}), Feedback(labels={"d1": 0, "d0": 1})
    assert content_of(one) == content_of(two)


def test_no_feedback_in_time_may_be_ignored(tmp_path):
    store = open_store(str(tmp_path / "events.db"), reward_wait=60.0, unanswered="ignored")
    begin(store, {CHAMPION: solar()}, SETTINGS, at=0.0)
    store.append([query_event(0)[0]])  # of 1970
    learner = Learner(store, Schedule(1000, 0.5))
    steps(learner)
    assert store.head[0] == learner._learning.position == 0
    (receipt,) = store.append([feedback("e000000", {"labels": [0.0] * 8})])
    assert receipt.outcome is Outcome.EXPIRED
    store.close()
