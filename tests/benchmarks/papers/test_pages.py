"""The pages of results that are committed are those of the items there are."""

import csv
import pathlib
import re

import pytest

from papers.judgment import rule
from papers.papers import PAPERS, paper

RESULTS = pathlib.Path(__file__).parents[3] / "benchmarks" / "results" / "reproduce"
ITEMS = [(name, item.name) for name in PAPERS for item in paper(name).items]


@pytest.mark.parametrize(("name", "item"), ITEMS)
def test_every_item_has_a_page_of_a_full_run(name, item):
    page = (RESULTS / name / f"{item}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {paper(name).item(item).title}\n\n{PAPERS[name]}.\n")
    assert f"Command: `python benchmarks/reproduce.py {name} " in page
    assert "--quick" not in page
    assert "data missing" not in page
    if "A figure is *equal*" in page:
        assert rule() in page
    for picture in re.findall(r"\]\((.+?\.png)\)", page):
        assert (RESULTS / name / picture).is_file()


@pytest.mark.parametrize("name", PAPERS)
def test_the_summary_has_the_verdicts_of_the_pages(name):
    summary = (RESULTS / name / "README.md").read_text(encoding="utf-8")
    for item in paper(name).items:
        page = (RESULTS / name / f"{item.name}.md").read_text(encoding="utf-8")
        verdicts = re.findall(r"^(\d+ published figures?: .+?)\. A figure is", page, re.M)
        assert (
            f"| [{item.name}]({item.name}.md) | {item.title} | {(verdicts or ['no published figure judged'])[0]} |"
            in summary
        )


def test_verdicts_of_the_tables_are_counted_on_the_pages():
    for name, item in ITEMS:
        page = (RESULTS / name / f"{item}.md").read_text(encoding="utf-8")
        verdicts = []
        for path in sorted((RESULTS / name).glob(f"{item}-*.csv")):
            with open(path, newline="", encoding="utf-8") as file:
                verdicts += [row["verdict"] for row in csv.DictReader(file) if row.get("verdict")]
        if verdicts:
            assert f"{len(verdicts)} published figure{'s' if len(verdicts) > 1 else ''}: " in page


def test_no_file_is_of_an_item_that_is_gone():
    known = {name: {item.name for item in paper(name).items} for name in PAPERS}
    for path in RESULTS.rglob("*.*"):
        if path.name != "README.md":
            name = path.parent.name
            assert any(path.stem == item or path.stem.startswith(f"{item}-") for item in known[name]), path
