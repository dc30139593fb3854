"""Interleaved lists, credits against enumeration, and the sequential test with its intervals."""

import itertools

import numpy as np
import pytest

from ranksvm import RankingData, make_ranking
from ranksvm.clicks import ClickLog, compare_credits, interleave, interleaving_credits
from ranksvm.clicks.interleaving import win_interval
from ranksvm.exceptions import DataError, OptionError

METHODS = ["team_draft", "balanced", "probabilistic"]
A, B = ["x", "y", "z", "w"], ["y", "v", "x", "u"]


@pytest.mark.parametrize("method", METHODS)
def test_lists(method):
    rng = np.random.default_rng(0)
    for length in (1, 3, 10):
        for _ in range(30):
            mixed = interleave(A, B, method=method, length=length, random_state=rng)
            assert len(mixed.documents) == len(set(mixed.documents)) == min(length, 6)
            assert set(mixed.documents) <= {*A, *B}
            for document, team, a, b in zip(mixed.documents, mixed.team, mixed.rank_a, mixed.rank_b, strict=True):
                assert document in (A if team == "A" else B)
                assert a == (A.index(document) + 1 if document in A else np.inf)
                assert b == (B.index(document) + 1 if document in B else np.inf)


def test_team_draft_takes_turns():
    rng = np.random.default_rng(0)
    firsts = []
    for _ in range(300):
        mixed = interleave(list(range(6)), [5, 4, 3, 2, 1, 0], length=6, random_state=rng)
        teams = np.array(mixed.team).reshape(3, 2)
        assert (teams[:, 0] != teams[:, 1]).all()  # each pair of places has one document of either team
        firsts.append(mixed.team[0])
    assert 110 < firsts.count("A") < 190


def test_team_draft_goes_on_when_one_ranking_is_exhausted():
    mixed = interleave(["a"], ["b", "c", "d"], length=9, random_state=0)
    assert sorted(mixed.documents) == ["a", "b", "c", "d"]
    assert mixed.team.count("B") == 3


def test_balanced_lists():
    """The first k_a of A and k_b of B, with k_a - k_b of 0 or 1, are the list."""
    expected = {("x", "y", "v", "z", "w", "u"), ("y", "x", "v", "z", "u", "w")}
    found = {tuple(interleave(A, B, method="balanced", random_state=seed).documents) for seed in range(20)}
    assert found == expected


def test_the_first_place_of_probabilistic_lists():
    rng = np.random.default_rng(0)
    n = 4_000
    firsts = [interleave(A, B, method="probabilistic", length=1, random_state=rng).documents[0] for _ in range(n)]
    softmax = np.arange(1, 5.0) ** -3 / (np.arange(1, 5.0) ** -3).sum()
    for document in "xyzwvu":
        expected = sum(0.5 * softmax[one.index(document)] for one in (A, B) if document in one)
        assert abs(firsts.count(document) / n - expected) < 4 * np.sqrt(expected / n)


def test_balanced_credit():
    mixed = next(
        one for seed in range(9) if (one := interleave(A, B, method="balanced", random_state=seed)).documents[0] == "x"
    )
    assert mixed.documents == ["x", "y", "v", "z", "w", "u"]
    # the lowest click is z, third in A: A's first three hold x, z; B's first three x
    assert mixed.credit([1, 0, 0, 1, 0, 0]) == 1
    # y is first in B, second in A
    assert mixed.credit([0, 1, 0, 0, 0, 0]) == -1
    assert mixed.credit([0] * 6) == 0
    # v is second in B; x, y, v: two in A's first two, y, v in B's
    assert mixed.credit([1, 1, 1, 0, 0, 0]) == 0


def test_probabilistic_credit_is_the_mean_over_all_teams():
    """Enumeration of the assignments that could have led to the list, with their probabilities."""
    for seed in range(12):
        mixed = interleave(A, B, method="probabilistic", length=4, random_state=seed)
        clicked = np.random.default_rng(seed).random(4) < 0.5
        total = weighted = 0.0
        for teams in itertools.product("AB", repeat=4):
            chance, left = 1.0, {"A": list(A), "B": list(B)}
            for team, document in zip(teams, mixed.documents, strict=True):
                ranking = {"A": A, "B": B}[team]
                weights = {one: (ranking.index(one) + 1.0) ** -3 for one in left[team]}
                chance *= 0.5 * weights.get(document, 0.0) / sum(weights.values())
                left = {name: [one for one in rest if one != document] for name, rest in left.items()}
            outcome = np.sign(sum((1 if team == "A" else -1) * c for team, c in zip(teams, clicked, strict=True)))
            total, weighted = total + chance, weighted + chance * outcome
        assert mixed.credit(clicked) == pytest.approx(weighted / total)


@pytest.mark.parametrize("method", METHODS)
def test_credits_over_a_log(method):
    data = make_ranking(n_queries=8, n_docs=6, n_features=2, random_state=0)
    data = RankingData(data.X, data.y, data.qid)
    scores = data.X[:, 0].astype(float), data.X[:, 1].astype(float)
    rng, lists, expected = np.random.default_rng(0), [], []
    for _ in range(60):
        rows = np.flatnonzero(data.qid == rng.choice(data.queries.ids))
        a, b = (rows[np.argsort(-one[rows], kind="stable")].tolist() for one in scores)
        mixed = interleave(a, b, method=method, length=4, random_state=rng)
        clicked = rng.random(4) < 0.4
        expected.append(mixed.credit(clicked))
        lists += zip([data.qid[rows[0]]] * 4, mixed.documents, range(1, 5), clicked, mixed.team, strict=True)
    query, document, rank, clicked, team = zip(*lists, strict=True)
    log = ClickLog(query, document, rank, clicked, ranker=team)
    found = interleaving_credits(log, method, data=data, scores=scores)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_credits_of_some_impressions_ignore_the_rankers_of_others():
    rankers = ["production", "production", "A", "B", "B", "A"]
    log = ClickLog(["q"] * 6, [1, 2] * 3, [1, 2] * 3, [0, 1, 1, 0, 1, 0], ranker=rankers)
    interleaved = log.impressions(np.array([False, True, True]))
    assert interleaving_credits(interleaved).tolist() == [1.0, -1.0]
    with pytest.raises(DataError, match="a document has the team 'production'"):
        interleaving_credits(log)


def test_the_better_ranker_wins():
    data = make_ranking(n_queries=20, n_docs=8, n_features=2, random_state=0)
    rng = np.random.default_rng(0)
    for method in METHODS:
        credits = []
        for _ in range(400):
            rows = np.flatnonzero(data.qid == rng.choice(data.queries.ids))
            good, bad = rows[np.argsort(-data.y[rows])].tolist(), rng.permutation(rows).tolist()
            mixed = interleave(good, bad, method=method, length=5, random_state=rng)
            chance = (0.1 + 0.2 * data.y[mixed.documents]) / np.arange(1, 6)
            credits.append(mixed.credit(rng.random(5) < chance))
        test = compare_credits(credits)
        assert test.mean > 0
        assert test.p_value < 0.05


def test_equal_rankers_rarely_differ():
    """The sequential test looks after every impression, and errs in 5 % of the experiments at most."""
    rng = np.random.default_rng(0)
    tests = [compare_credits(rng.choice([-1.0, 0.0, 1.0], 2_000)) for _ in range(300)]
    decided = sum(test.decided_at is not None for test in tests)
    assert decided <= 0.05 * 300
    fixed = sum(test.p_value < 0.05 for test in tests)
    assert 3 <= fixed <= 30
    assert all(test.sequence[0] <= 0 <= test.sequence[1] for test in tests)


def test_a_large_difference_is_decided_early():
    credits = np.where(np.random.default_rng(0).random(5_000) < 0.6, 1.0, -1.0)
    test = compare_credits(credits)
    assert test.decided_at < 1_500
    assert test.anytime_p_value < 1e-6
    assert test.sequence[0] > 0
    assert test.sequence[0] <= test.interval[0] <= test.mean <= test.interval[1] <= test.sequence[1]
    assert test.wins_a + test.wins_b == test.n_impressions == 5_000
    assert "decided_at" in test.to_csv().splitlines()[0]
    # what came later does not change what was decided
    assert compare_credits(credits[: test.decided_at]).decided_at == test.decided_at


def test_what_is_refused():
    with pytest.raises(OptionError, match="method must be one of"):
        interleave(A, B, method="multileave")
    with pytest.raises(DataError, match="ranking B has document 'y' twice"):
        interleave(A, ["y", "y"])
    with pytest.raises(DataError, match="both rankings are empty"):
        interleave([], [])
    mixed = interleave(A, B, length=3, random_state=0)
    with pytest.raises(DataError, match="clicked has 2 entries for 3 documents"):
        mixed.credit([1, 0])
    with pytest.raises(DataError, match=r"credits is 2\.0 in row 1"):
        compare_credits([0.0, 2.0])
    with pytest.raises(DataError, match="at least one"):
        compare_credits([])
    log = ClickLog(["q", "q"], [0, 1], [1, 2], [0, 1], ranker=["A", "C"])
    with pytest.raises(DataError, match="a document has the team 'C'"):
        interleaving_credits(log)
    with pytest.raises(DataError, match="the log has no ranker"):
        interleaving_credits(ClickLog(["q"], [0], [1], [1]))
    with pytest.raises(OptionError, match="needs both rankings"):
        interleaving_credits(log, "balanced")


def test_an_interval_solves_its_equation():
    from scipy.special import betaln

    low, high = win_interval(30, 10, 0.9)
    for p in (low, high):
        ratio = betaln(30.5, 10.5) - betaln(0.5, 0.5) - 30 * np.log(p) - 10 * np.log1p(-p)
        assert ratio == pytest.approx(np.log(10), abs=1e-6)
    assert low < 0.75 < high
    assert win_interval(0, 0) == (0.0, 1.0)
    assert win_interval(0, 5)[0] == 0.0
    assert win_interval(5, 0)[1] == 1.0


def test_an_interval_covers_at_all_times_at_once():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(200):
        won = np.cumsum(rng.random(300) < 0.5)
        checks = [win_interval(int(w), n + 1 - int(w)) for n, w in enumerate(won) if n % 10 == 9]
        missed += any(not low <= 0.5 <= high for low, high in checks)
    assert missed <= 0.05 * 200 + 5
