"""Every item runs on tiny data, and without any says what to get."""

import re
from dataclasses import replace

import pytest

from papers.data_sets import DATA_SETS, Sources
from papers.items import Context, Settings
from papers.pages import markdown, run_item, write, write_summary
from papers.papers import PAPERS, paper
from papers.results import Compared, Grid, Picture
from ranksvm.exceptions import OptionError

ITEMS = [(name, item.name) for name in PAPERS for item in paper(name).items]
# The items that judge a figure on data of which a part is the paper's.
JUDGED = {
    *(("lee-lin-2014", name) for name in ("data", "quality", "stopping", "pointwise", "adjacent")),
    ("kuo-lee-lin-2014", "data"),
    *(("xu-2019", name) for name in ("table-1", "figure-2", "quality", "table-7")),
    *(("wang-2015", name) for name in ("online", "batch")),
    *(("jin-lin-2014", name) for name in ("data", "times", "accuracy")),
}


@pytest.mark.parametrize(("name", "item"), ITEMS)
def test_an_item_runs_and_writes_what_it_names(name, item, context, tmp_path):
    pytest.importorskip("matplotlib")
    of_paper = paper(name)
    as_run: list = []

    def run(context):
        as_run.extend(of_paper.item(item).run(context))
        return as_run

    outcome = run_item(of_paper, replace(of_paper.item(item), run=run), context)
    assert outcome.parts
    tables = [part for part in outcome.parts if isinstance(part, Compared | Grid)]
    assert tables
    assert len({part.name for part in tables}) == len(tables), "two tables would share a file"
    judged = [part for part in as_run if isinstance(part, Compared) and part.judgments]
    assert bool(judged) == ((name, item) in JUDGED)
    assert not outcome.judgments, "quick figures are not judged"
    for part in tables:
        if isinstance(part, Grid):
            assert {len(row) for row in part.rows} == {len(part.header)}
    written = write(outcome, "python benchmarks/reproduce.py", tmp_path)
    assert all(path.is_file() and path.stat().st_size > 0 for path in written)
    page = (tmp_path / name / f"{item}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {outcome.item.title}\n\n{PAPERS[name]}.\n")
    assert "Command: `python benchmarks/reproduce.py`" in page
    assert "Made with `--quick`" in page
    assert ("± is the standard deviation over folds or orders." in page) == ("±" in page)
    for picture in re.findall(r"\]\((.+?\.png)\)", page):
        assert (tmp_path / name / picture).read_bytes().startswith(b"\x89PNG")
    n_pictures = sum(isinstance(part, Picture) for part in outcome.parts)
    assert len(written) == 1 + len(tables) + n_pictures
    assert outcome.item.draws == (n_pictures > 0)
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize(("name", "item"), [key for key in ITEMS if paper(key[0]).item(key[1]).data])
def test_without_data_an_item_says_what_to_get(name, item, tmp_path):
    of_paper = paper(name)
    outcome = run_item(of_paper, of_paper.item(item), Context(Sources(tmp_path), Settings(quick=True)))
    assert not outcome.parts
    assert outcome.verdict == "data missing"
    page = markdown(outcome, "python benchmarks/reproduce.py")
    assert "## Missing data" in page
    for needed in of_paper.item(item).data:
        if needed != "MQ2007-partial":
            assert f"DIR/{needed}/Fold1/train.txt" in page


def test_every_data_set_of_an_item_is_described():
    for name, item in ITEMS:
        assert set(paper(name).item(item).data) <= set(DATA_SETS)


@pytest.mark.parametrize("name", PAPERS)
def test_names_of_a_paper_are_distinct_and_found(name):
    of_paper = paper(name)
    names = [each for item in of_paper.items for each in (item.name, *item.also)]
    assert len(set(names)) == len(names)
    for item in of_paper.items:
        for each in (item.name, *item.also):
            assert of_paper.item(each.upper()) is item
    with pytest.raises(OptionError, match=rf"{name} has no item 'table-99'; its items are "):
        of_paper.item("table-99")


def test_a_summary_keeps_the_verdicts_of_earlier_pages(context, tmp_path):
    of_paper = paper("lee-lin-2014")
    first = run_item(of_paper, of_paper.item("data"), context)
    write(first, "python benchmarks/reproduce.py", tmp_path)
    path = write_summary(of_paper, [first], tmp_path)
    before = path.read_text(encoding="utf-8")
    assert f"| [data](data.md) | Table 2: the data sets | {first.verdict} |" in before
    assert "| quality | Tables 3 and 5: C, pairwise accuracy and mean NDCG of RankSVM | not run |" in before
    write_summary(of_paper, [], tmp_path)
    assert path.read_text(encoding="utf-8") == before
