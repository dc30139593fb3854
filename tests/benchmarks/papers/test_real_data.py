"""Figures on the real data: those that are exact, and verdicts that do not hang on the last digit."""

import pytest

from papers.data_sets import Sources
from papers.items import Context, Settings
from papers.papers import paper
from papers.results import Compared


@pytest.fixture
def entries(shared_data):
    """Figures of an item: labels and name of the figure -> the figure."""

    def run(name, item):
        # the item itself: `run_item` takes the verdicts from quick figures
        parts = paper(name).item(item).run(Context(Sources(shared_data), Settings(quick=True)))
        tables = [part for part in parts if isinstance(part, Compared)]
        return {(*entry.labels, entry.name): entry for table in tables for entry in table.entries}

    return run


def test_the_counts_of_mq2008_are_the_printed_ones(entries):
    found = entries("lee-lin-2014", "data")
    assert {found["MQ2008", what].verdict for what in ("rows", "queries", "pairs")} == {"equal"}


def test_the_published_accuracy_of_mq2008(entries):
    found = entries("lee-lin-2014", "quality")
    optimum = found["MQ2008", "optimum", "2^7", "pairwise accuracy, %"]
    assert optimum.ours == pytest.approx(82.7101, abs=2e-3)
    assert optimum.verdict == "close"
    stopped = found["MQ2008", "published rule", "2^7", "pairwise accuracy, %"]
    assert stopped.verdict in {"equal", "close"}


def test_the_accuracy_of_the_gpu_paper_is_that_of_training_data(entries):
    found = entries("jin-lin-2014", "accuracy")
    assert found["MQ2008", "of the training part, %"].verdict == "equal"
    assert found["MQ2008", "of the test part, %"].ours > 82.5


def test_table_1_of_the_low_rank_paper(entries):
    found = entries("xu-2019", "table-1")
    per_document = "pairs per document, mean of the queries"
    assert found["OHSUMED", per_document].ours == pytest.approx(30.615, abs=1e-3)
    assert found["MQ2008", per_document].ours == pytest.approx(2.485, abs=1e-3)
    for name in ("OHSUMED", "MQ2008"):
        assert {found[name, what].verdict for what in ("documents", "queries", "pairs")} == {"equal"}


def test_the_printed_ranks_of_table_6_are_twice_the_smaller_side(entries):
    found = entries("xu-2019", "table-6")
    plain = [(key, entry) for key, entry in found.items() if key[-1] == "plain"]
    assert len(plain) == 3
    for (_, _, _, side, twice, _), entry in plain:
        assert entry.published == float(twice) == 2 * float(side)
        assert entry.ours <= float(side)
