"""The rule by which figures are judged, on figures whose verdict is plain."""

import pytest

from papers.judgment import COUNT, NDCG, PERCENT, Judgment, Measure, in_words, rule


@pytest.mark.parametrize(
    ("ours", "published", "measure", "verdict"),
    [
        (0.45712, 0.4571, NDCG, "equal"),
        (0.45715, 0.4571, NDCG, "equal"),
        (0.4572, 0.4571, NDCG, "close"),
        (0.4671, 0.4571, NDCG, "close"),
        (0.4672, 0.4571, NDCG, "better"),
        (0.4471, 0.4571, NDCG, "close"),
        (0.4470, 0.4571, NDCG, "worse"),
        (82.7049, 82.70, PERCENT, "equal"),
        (82.71, 82.70, PERCENT, "close"),
        (82.90, 82.70, PERCENT, "close"),
        (82.91, 82.70, PERCENT, "better"),
        (82.49, 82.70, PERCENT, "worse"),
        (52_325, 52_325, COUNT, "equal"),
        (52_324, 52_325, COUNT, "different"),
        (30.615, 30.6, Measure(1, 0.0, 0), "equal"),
        # less is better
        (1.0, 2.0, Measure(1, 0.1, -1), "better"),
        (2.0, 1.0, Measure(1, 0.1, -1), "worse"),
    ],
)
def test_verdicts(ours, published, measure, verdict):
    assert Judgment(ours, published, measure).verdict == verdict


def test_two_standard_errors_are_close_and_never_make_a_rule_stricter():
    assert Judgment(0.50, 0.46, NDCG, 0.02).verdict == "close"
    assert Judgment(0.51, 0.46, NDCG, 0.02).verdict == "better"
    assert Judgment(0.41, 0.46, NDCG, 0.02).verdict == "worse"
    assert Judgment(0.465, 0.46, NDCG, 0.0001).verdict == "close"


def test_the_verdicts_are_counted_in_one_order():
    found = [Judgment(0.3, 0.4, NDCG), Judgment(0.4, 0.4, NDCG), Judgment(0.3, 0.4, NDCG)]
    assert in_words(found) == "3 published figures: 1 equal, 2 worse"
    assert in_words([]) == "no published figure judged"


def test_the_rule_names_its_tolerances():
    for number in (NDCG.tolerance, PERCENT.tolerance):
        assert f"{number:g}" in rule()
