"""Learning from clicks: pairs and weights of each rule, estimates by clicks, and propensities in the log."""

import functools

import msgspec
import numpy as np
import pytest

import ranksvm
from _click_passes import InStep, by_clicks, by_labels, tutorial_data
from ranksvm import metrics
from ranksvm.clicks import ClickLog, PositionBias, attractiveness
from ranksvm.data.clicks import pairs_from_clicks
from ranksvm.exceptions import DataError, OptionError, StoreError
from ranksvm.serving.click_learning import ClickLearning, DriftDetector, bias_settings, curve, fair_pairs
from ranksvm.serving.clicks import estimated
from ranksvm.serving.learner import Learner, Schedule, begin
from ranksvm.serving.learning import CHAMPION, Learning, Settings
from ranksvm.serving.measures import ClickEstimate, click_value
from ranksvm.serving.policies import fair_pairs as fair_pairs_order, greedy
from ranksvm.serving.records import Entry, Kind
from ranksvm.serving.replay import replay
from ranksvm.serving.store import open_store

SHOWN = ClickLearning("shown", **curve("power"))


def some_lists(n_lists=40, n_documents=9):
    """Ranks, clicks and scores of random lists."""
    rng = np.random.default_rng(0)
    for _ in range(n_lists):
        yield rng.permutation(n_documents), rng.random(n_documents) < 0.3, rng.integers(0, 5, n_documents).astype(float)


# -- pairs and weights -------------------------------------------------------------------------------------------------


def test_a_click_counts_over_every_document_without_one_by_its_propensity():
    for rank, clicked, _ in some_lists():
        pairs, weight = SHOWN.pairs(rank, clicked, None)
        expected = {
            (i, j): 1.0 / 20 * min(rank[i] + 1.0, 20.0)
            for i in np.flatnonzero(clicked)
            for j in np.flatnonzero(~clicked)
        }
        assert dict(zip(map(tuple, pairs.tolist()), weight.tolist(), strict=True)) == pytest.approx(expected)


def test_weights_are_clipped():
    rank, clicked = np.arange(100), np.arange(100) == 99
    pairs, weight = SHOWN.pairs(rank, clicked, None)
    assert len(pairs) == 99
    assert (weight == 1.0).all()
    assert SHOWN.propensities(rank).min() == 0.05


@pytest.mark.parametrize("rule", ["shown_all", "skip_above", "last_click_skip_above"])
def test_the_other_rules_are_those_of_the_library(rule):
    learning = ClickLearning(rule, **curve("power"))
    for rank, clicked, _ in some_lists():
        pairs, weight = learning.pairs(rank, clicked, None)
        assert np.array_equal(pairs, pairs_from_clicks(None, rank, clicked, rule=rule))
        if rule == "shown_all":
            assert weight == pytest.approx((rank[pairs[:, 0]] + 1.0) / 20)
        else:
            assert weight is None


def test_fair_pairs_prefer_the_lower_neighbor_if_it_alone_was_clicked_on():
    for rank, clicked, _ in some_lists():
        for first in (0, 1):
            order = np.argsort(rank)
            expected = [
                [order[k + 1], order[k]]
                for k in range(first, len(order) - 1, 2)
                if clicked[order[k + 1]] and not clicked[order[k]]
            ]
            assert fair_pairs(rank, clicked, first).tolist() == expected
    assert fair_pairs(rank, clicked, None).shape == (0, 2)


def test_neighbors_are_exchanged_with_equal_chances():
    random, scores = np.random.default_rng(0), np.array([3.0, 2.0, 1.0, 0.5, 0.1])
    above = np.zeros((5, 5))
    for _ in range(4_000):
        choice = fair_pairs_order(scores, random)
        best = greedy(scores).order
        assert np.array_equal(choice.order, best[choice.base_rank])
        for k in range(choice.first_pair, 4, 2):
            above[tuple(choice.order[k : k + 2])] += 1
    for document in range(4):
        upper, lower = above[document, document + 1], above[document + 1, document]
        assert upper + lower == pytest.approx(2_000, abs=150)
        assert upper == pytest.approx(lower, abs=150)
    assert len(fair_pairs_order(np.array([1.0]), random).order) == 1


# -- propensities ------------------------------------------------------------------------------------------------------


def test_given_propensities():
    learning = ClickLearning().changed(bias_settings(PositionBias([1.0, 0.5, 0.01])))
    assert learning.propensities(np.arange(5)).tolist() == [1.0, 0.5, 0.05, 0.05, 0.05]
    assert learning.described()["source"] == "given"
    with pytest.raises(OptionError, match="without --trust"):
        bias_settings(PositionBias([1.0, 0.5], offset=[0.0, 0.1]))
    with pytest.raises(DataError, match=r"rank 2 is not known.*--ranks 1.*--curve power"):
        bias_settings(PositionBias([1.0, np.nan]))


def test_estimates_become_rarer():
    at, learning = [0], ClickLearning(**curve("estimated"))
    for _ in range(20):
        at.append(learning.next_estimate(at[-1]))
    assert at[1:4] == [250, 375, 562]
    assert max(np.diff(at)) <= 10_000


# -- estimates ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cutoff", [None, 3])
def test_the_value_of_a_ranking_is_the_estimate_of_the_library(cutoff):
    name = "dcg" if cutoff is None else f"dcg@{cutoff}"
    for rank, clicked, scores in some_lists():
        by_rank = np.argsort(rank)
        log = ClickLog([0] * 9, np.arange(9)[by_rank], np.arange(1, 10), clicked[by_rank])
        data = ranksvm.RankingData(np.zeros((9, 1)), np.zeros(9), [0] * 9)
        expected = metrics.estimate(log, scores, name, PositionBias.power(9).clipped(0.05), data=data)[name]
        assert click_value(cutoff, scores, clicked, SHOWN.propensities(rank)) == pytest.approx(expected)


def test_an_estimate_continues_from_its_state():
    whole, parts, values = ClickEstimate(3), ClickEstimate(3), []
    for number, (rank, clicked, scores) in enumerate(some_lists(100)):
        propensity = SHOWN.propensities(rank)
        whole.add(scores, clicked, propensity)
        parts.add(scores, clicked, propensity)
        values.append(click_value(3, scores, clicked, propensity))
        if number % 7 == 0:
            parts = ClickEstimate(3, msgspec.msgpack.decode(msgspec.msgpack.encode(parts.state)))
    assert parts.state == whole.state
    found = whole.summary()
    half = 1.96 * np.std(values, ddof=1) / 10
    assert (found["rankings"], found["mean"]) == (100, pytest.approx(np.mean(values)))
    assert (found["high"] - found["low"]) / 2 == pytest.approx(half, rel=1e-3)
    n, mean, _ = found["history"][-1]
    assert (n, mean) == (96, pytest.approx(np.mean(values[:96])))


def test_a_history_of_estimates_has_bounded_memory():
    estimate = ClickEstimate(None)
    for _ in range(16 * 800):
        estimate.add(np.array([2.0, 1.0]), np.array([True, False]), np.ones(2))
    history = estimate.summary()["history"]
    assert 200 <= len(history) <= 400
    assert history[-1][1:] == (1.0, 0.0)


# -- the log of a service ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("explore", ["none", "fair-pairs"])
def test_propensities_are_estimated_and_a_replay_has_the_same_bits(tmp_path, explore):
    data = ranksvm.make_ranking(n_queries=20, n_docs=10, n_features=3, random_state=0)
    gain = attractiveness(data, 0.0)
    start = ClickLearning("shown", **curve("estimated"))
    restless = ranksvm.SOLARRanker(C=10.0, random_state=0)  # documents change their ranks again and again
    users = InStep(tmp_path / "events.db", restless, 3, start, explore)
    for _ in range(60):
        for number, (_, rows) in enumerate(data.queries):
            users.ask(data.X[rows], gain[rows], str(number))
    found = users.learning.click_learning
    assert found.source == "estimated"
    assert found.note is None
    assert found.rankings >= 800
    assert found.eta == pytest.approx(1.0, abs=0.25)
    kinds = [entry.entry.kind for entry in users.store.entries(0, 10_000)]
    assert kinds.count(Kind.CLICK_LEARNING) == 4  # after 250, 375, 562 and 843 rankings
    users.close()
    store = open_store(str(tmp_path / "events.db"))
    again = replay(store).learning
    assert again.to_bytes() == store.checkpoint().state
    assert again.click_learning == found
    store.close()


def test_without_repeated_queries_there_is_a_note(tmp_path):
    users = InStep(
        tmp_path / "events.db", ranksvm.SOLARRanker(random_state=0), 3, ClickLearning("shown", **curve("estimated"))
    )
    random = np.random.default_rng(0)
    for number in range(251):
        users.ask(random.normal(size=(5, 3)), np.array([0.9, 0, 0, 0, 0]), str(number))
    found = users.learning.click_learning
    assert (found.eta, found.rankings) == (1.0, 0)
    assert found.note == "no document of a named query was shown at two ranks, and clicked on."
    assert estimated(users.store) == {"note": found.note}
    users.close()


def test_an_old_store_learns_as_it_did_until_it_is_told(tmp_path):
    """Checkpoints of the first stores say nothing of clicks."""
    store = open_store(str(tmp_path / "events.db"))
    begin(store, {CHAMPION: ranksvm.SOLARRanker(random_state=0)}, Settings(["f1", "f2", "f3"]), at=0.0)
    state = msgspec.msgpack.decode(store.checkpoint().state)
    old = {name: value for name, value in state.items() if name not in ("click_learning", "estimates", "estimate_at")}
    with store._database.writing() as cursor:
        cursor.run("UPDATE checkpoints SET state = ?", msgspec.msgpack.encode(old))
    learning = Learning.from_bytes(store.checkpoint().state)
    assert (learning.click_learning.rule, learning.click_learning.source) == ("skip_above", "none")
    assert not learning.needs_estimate
    says = msgspec.msgpack.encode({"rule": "shown", **curve("estimated")})
    store.append([Entry(Kind.CLICK_LEARNING, None, says, 0.0)])
    learner = Learner(store, Schedule(1, 0.0))
    learner.step()
    assert learner._learning.click_learning == ClickLearning("shown", **curve("estimated"))
    learner.close()
    assert replay(store).learning.click_learning.rule == "shown"
    store.close()


# -- serving from clicks converges -------------------------------------------------------------------------------------


def shares_of_labels(folder, users, explore="none", rule="shown", drift=None):
    """NDCG@10 by labels after each of eight passes, as a share of what labels give without drift."""
    learning = ClickLearning(rule, **curve("estimated" if rule == "shown" else "power"), follow_drift=rule == "shown")
    return by_clicks(folder, 2, tutorial_data(0), users, learning, explore=explore, drift=drift) / of_labels()


@functools.cache
def of_labels():
    return by_labels(2, tutorial_data(0))


@pytest.mark.parametrize("users", ["position", "trust", "cascade"])
def test_serving_from_clicks_converges(tmp_path, users):
    shares = shares_of_labels(tmp_path, users)
    assert shares[-1] >= 0.97
    assert (shares[3:] >= 0.93).all()


@pytest.mark.slow
def test_serving_converges_by_fair_pairs(tmp_path):
    assert shares_of_labels(tmp_path, "position", "fair-pairs", "fair_pairs")[-1] >= 0.95


@pytest.mark.slow
def test_the_rule_of_before_does_not_converge(tmp_path):
    assert (shares_of_labels(tmp_path, "position", rule="skip_above")[3:] < 0.93).sum() >= 3


def test_sudden_drift_is_followed_within_a_pass(tmp_path):
    """The mean of the seeds of benchmarks/serving_clicks.py."""
    learning, shares = ClickLearning("shown", **curve("estimated"), follow_drift=True), []
    for seed in range(5):
        data = tutorial_data(seed)
        ndcg = by_clicks(tmp_path, 2, data, "position", learning, seed=seed, drift=4)
        shares.append(ndcg[4] / by_labels(2, data)[4])
    assert np.mean(shares) >= 0.93


@pytest.mark.parametrize("users", ["position", "trust", "cascade"])
def test_a_pass_after_sudden_drift_a_service_ranks_about_as_well_as_a_new_one(tmp_path, users):
    shares = shares_of_labels(tmp_path, users, drift=4)
    assert shares[3] >= 0.93
    assert shares[4] >= shares[0] - 0.03


# -- drift -------------------------------------------------------------------------------------------------------------


def lists_of_clicks(random, rates, n):
    return (random.random(len(rates)) < rates for _ in range(n))


def noticed(detector, lists, propensity, first=0):
    """Rankings at which drift was noticed, and the last rankings before it began."""
    found = [(number, detector.add(number, clicked, propensity)) for number, clicked in enumerate(lists, first)]
    return [(number, since) for number, since in found if since is not None]


def test_a_drop_to_the_rates_of_a_random_order_is_noticed():
    random, detector = np.random.default_rng(0), DriftDetector()
    propensity = 1.0 / np.arange(1.0, 11.0)
    sorted_, mixed = propensity * np.linspace(0.8, 0.05, 10), propensity * np.full(10, 0.425)
    assert noticed(detector, lists_of_clicks(random, sorted_, 5_000), propensity) == []
    detector = DriftDetector(msgspec.msgpack.decode(msgspec.msgpack.encode(detector.state)))
    ((at, since),) = noticed(detector, lists_of_clicks(random, mixed, 300), propensity, first=5_000)
    assert 5_000 < at < 5_150
    assert 4_980 < since < 5_100
    # the order tells nothing from the beginning: there is nothing to lose
    detector = DriftDetector()
    assert noticed(detector, lists_of_clicks(random, mixed, 5_000), propensity) == []


def test_what_is_learned_again_after_drift_may_lie_before_a_checkpoint(tmp_path, monkeypatch):
    start = ClickLearning("shown", **curve("power"), follow_drift=True)
    users = InStep(tmp_path / "events.db", ranksvm.SOLARRanker(2, random_state=0), 3, start)
    answers = iter([None] * 39 + [25])  # drift at entry 40, since entry 25
    monkeypatch.setattr(DriftDetector, "add", lambda *_: next(answers, None))
    some_rankings(users, 35)
    checkpoint = users.learning.to_bytes()
    some_rankings(users, 25)
    whole = users.learning
    assert whole.drifts == [40]
    again = Learning.from_bytes(checkpoint)
    answers = iter([None] * 4 + [25])
    while found := users.store.entries(again.position, 1):
        again.apply(found[0], users.store)
    assert again.to_bytes() == whole.to_bytes()
    assert whole.settings.looks_back >= 40 - 25
    # an error of the store changes nothing
    answers = iter([None] * 4 + [25, 25])
    again, reading = Learning.from_bytes(checkpoint), users.store.entries
    for seq in range(36, 41):
        (found,) = reading(seq - 1, 1)
        before = again.to_bytes()
        if seq == 40:
            monkeypatch.setattr(users.store, "entries", failing)
            with pytest.raises(StoreError, match="disk I/O error"):
                again.apply(found, users.store)
            assert again.to_bytes() == before
            monkeypatch.setattr(users.store, "entries", reading)
        again.apply(found, users.store)
    assert again.drifts == [40]
    users.close()


def failing(*_, **__):
    raise StoreError("disk I/O error")


def test_models_that_cannot_forget_learn_from_no_entry_twice(tmp_path, monkeypatch):
    start = ClickLearning("shown", **curve("power"), follow_drift=True)
    states = []
    for number, drift in enumerate((None, 5)):
        users = InStep(tmp_path / f"{number}.db", ranksvm.PairwisePerceptronRanker(random_state=0), 3, start)
        answers = iter([None] * 19 + [drift])
        monkeypatch.setattr(DriftDetector, "add", lambda *_, answers=answers: next(answers, None))
        some_rankings(users, 20)
        states.append(users.learning.models[CHAMPION].coef_)
        users.close()
    np.testing.assert_array_equal(*states)


def test_a_detector_of_the_first_stores_goes_on():
    shown, clicks = [150.0, 150.0], [80.0, 30.0]
    detector = DriftDetector({"sums": [2.0, 1.0], "shown": shown, "clicks": clicks})
    assert detector.add(1, np.array([True, False]), np.array([1.0, 0.5])) is None
    assert detector.state["shown"] == [151.0, 151.0]


def test_lists_may_be_of_any_length():
    random, detector = np.random.default_rng(0), DriftDetector()
    for _ in range(300):
        size = int(random.integers(1, 80))
        assert detector.add(0, random.random(size) < 0.1, 1.0 / np.arange(1.0, size + 1.0)) is None
    assert len(detector.state["shown"]) == 50
    assert detector.state["shown"][0] == 300


# -- estimates beside kills, choices and errors ------------------------------------------------------------------------


def some_rankings(users, n=260):
    data = ranksvm.make_ranking(n_queries=10, n_docs=6, n_features=3, random_state=0)
    gain = attractiveness(data, 0.0)
    for number in range(n):
        rows = data.queries.rows(number % 10)
        users.ask(data.X[rows], gain[rows], str(number % 10))


def test_an_estimate_that_fails_does_not_stop_learning(tmp_path, monkeypatch):
    def fails(store):
        raise MemoryError

    monkeypatch.setattr("ranksvm.serving.learner.estimated", fails)
    start = ClickLearning("shown", **curve("estimated"))
    users = InStep(tmp_path / "events.db", ranksvm.SOLARRanker(random_state=0), 3, start)
    some_rankings(users)
    assert users.learning.position == 261
    assert users.learning.click_learning.note == "the estimate failed: MemoryError."
    users.close()


def test_a_choice_overtakes_an_estimate(tmp_path):
    store = open_store(str(tmp_path / "events.db"))
    start = ClickLearning("shown", **curve("estimated"))
    begin(store, {CHAMPION: ranksvm.SOLARRanker(random_state=0)}, Settings(["f1"]), at=0.0, click_learning=start)
    for says in (curve("power", 0.5), {"eta": 1.7, "rankings": 300, "note": None}):
        store.append([Entry(Kind.CLICK_LEARNING, None, msgspec.msgpack.encode(says), 0.0)])
    learner = Learner(store, Schedule(1, 0.0))
    assert [seq for seq, _ in store.pending(Kind.CLICK_LEARNING, 0)] == [1, 2]
    while learner.step():
        pass
    assert learner._learning.click_learning == ClickLearning("shown", **curve("power", 0.5))
    assert learner._estimated == 2  # after a restart no other estimate is made before these have their turn
    learner.close()
    store.close()


def test_too_few_exchanges_give_way_to_other_rankings(tmp_path):
    start = ClickLearning("shown", **curve("power"))
    users = InStep(tmp_path / "events.db", ranksvm.SOLARRanker(C=10.0, random_state=0), 3, start, "fair-pairs")
    some_rankings(users, 5)
    users._explore = "none"
    some_rankings(users, 400)
    assert estimated(users.store)["rankings"] == 405
    users.close()
