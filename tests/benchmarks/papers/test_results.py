"""Tables as Markdown and CSV."""

import csv
import io

from papers.judgment import NDCG, PERCENT
from papers.results import Compared, Grid


def test_a_grid_in_markdown_and_csv():
    grid = Grid("name", ["a", "b"], [(1, "**2**"), ("x, y", 0.5)])
    assert grid.markdown() == "| a | b |\n|---|---|\n| 1 | **2** |\n| x, y | 0.5 |"
    assert grid.csv() == 'a,b\n1,2\n"x, y",0.5\n'


def compared():
    table = Compared("name", ("data", "model"))
    table.add(("A", "m"), "MAP", NDCG, 0.41234, 0.4123)
    table.add(("A", "m"), "accuracy", PERCENT, 80.0, 82.0)
    table.add(("A", "n"), "MAP", NDCG, 0.5, spread=0.1)
    table.add(("B", "m"), "MAP", NDCG, None, 0.3)
    table.add(("B", "n"), "MAP", NDCG, 0.9, 0.3, judged=False)
    return table


def test_figures_stand_beside_the_published_ones_with_their_verdict():
    assert compared().markdown().splitlines() == [
        "| data | model | MAP | accuracy |",
        "|---|---|---|---|",
        "| A | m | 0.4123 (published 0.4123: equal) | 80.00 (published 82.00: worse) |",
        "| A | n | 0.5000 ± 0.1000 |  |",
        "| B | m | published 0.3000 |  |",
        "| B | n | 0.9000 (published 0.3000) |  |",
    ]


def test_only_pairs_of_figures_of_the_same_data_are_judged():
    assert [found.verdict for found in compared().judgments] == ["equal", "worse"]


def test_a_table_tells_whether_it_shows_deviations():
    assert compared().has_spreads
    table = Compared("name", ("data",))
    table.add(("A",), "MAP", NDCG, 0.5, 0.4)
    assert not table.has_spreads


def test_figures_can_be_printed_without_a_verdict():
    table = compared().unjudged()
    assert table.judgments == []
    assert "| A | m | 0.4123 (published 0.4123) | 80.00 (published 82.00) |" in table.markdown()
    assert [row["verdict"] for row in csv.DictReader(io.StringIO(table.csv()))] == [""] * 5


def test_the_csv_has_a_row_for_each_figure_and_all_digits():
    rows = list(csv.DictReader(io.StringIO(compared().csv())))
    assert [row["verdict"] for row in rows] == ["equal", "worse", "", "", ""]
    assert rows[0]["ours"] == "0.41234"
    assert float(rows[0]["difference"]) == 0.41234 - 0.4123 or abs(float(rows[0]["difference"]) - 4e-5) < 1e-9
    assert rows[2]["standard deviation"] == "0.1"
    assert rows[3]["ours"] == ""
