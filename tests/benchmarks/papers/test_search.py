"""The random search goes on where it stopped, and its choices are those of validation data."""

import pytest

from papers.data_sets import Sources
from papers.xu_2019.models import MODELS, Range
from papers.xu_2019.search import Search
from ranksvm.exceptions import RankSVMError


def search_of(tiny, cache=None, **options):
    return Search(Sources(tiny).parts, n_candidates=2, cache=cache, **options)


def test_a_search_goes_on_where_it_stopped(tiny, tmp_path):
    cache = tmp_path / "fits.jsonl"
    stopped = search_of(tiny, cache, limit=-1.0)
    tasks = stopped.tasks("MQ2008", [1, 2], ["plain", "hinge"])
    with pytest.raises(RankSVMError, match="8 fits are left: run the same command again"):
        stopped.complete(tasks)
    said = []
    search_of(tiny, cache, say=said.append).complete(tasks)
    assert len(said) == 8
    assert said[-1].endswith("0 fits left")
    lines = cache.read_text(encoding="utf-8").splitlines(keepends=True)
    assert len(lines) == 8
    # as a run leaves it that was ended while it wrote: that fit alone is done again
    cache.write_text("".join([*lines[:-1], lines[-1][: len(lines[-1]) // 2]]), encoding="utf-8")
    said.clear()
    search_of(tiny, cache, say=said.append).complete(tasks)
    assert len(said) == 1
    assert len(cache.read_text(encoding="utf-8").splitlines()) == 8


def test_fits_in_other_processes_are_those_in_this_one(tiny):
    tasks = search_of(tiny).tasks("OHSUMED", [1], ["plain"])
    here, there = search_of(tiny), search_of(tiny, n_processes=2)
    here.complete(tasks)
    there.complete(tasks)
    for task in tasks:
        assert here.cache[task].vali == there.cache[task].vali
        assert here.cache[task].test == there.cache[task].test


def test_the_candidate_that_is_best_on_the_validation_part_is_chosen(tiny):
    search = search_of(tiny)
    tasks = search.tasks("MQ2008", [1], ["plain"])
    search.complete(tasks)
    chosen = search.chosen("MQ2008", 1, "plain")
    assert search.cache[chosen].vali["map"] == max(search.cache[task].vali["map"] for task in tasks)


def test_a_larger_budget_begins_with_the_candidates_of_a_smaller_one():
    for model in MODELS.values():
        assert model.candidates(5, seed=1)[:2] == model.candidates(2, seed=1)
        assert model.candidates(2, seed=1) != model.candidates(2, seed=2)
        for candidate in model.candidates(20, seed=3):
            assert all(model.ranges[name].low <= value <= model.ranges[name].high for name, value in candidate.items())


def test_integers_are_drawn_with_both_ends():
    import numpy as np

    rng = np.random.default_rng(0)
    assert {Range(1, 3, log=False, integer=True).draw(rng) for _ in range(100)} == {1, 2, 3}
