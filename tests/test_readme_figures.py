"""Every figure that the README quotes stands in the page of measurements that it names."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# a row of the table of figures: what | figures, each in bold | [page](benchmarks/results/page.md)
ROW = re.compile(
    r"^\| (?P<what>.+?) \| (?P<figures>.+?) \| \[.+?\]\((?P<page>benchmarks/results/[\w/-]+\.md)\) \|$", re.M
)
ROWS = [match.groupdict() for match in ROW.finditer((ROOT / "README.md").read_text(encoding="utf-8"))]


def test_there_are_figures():
    assert len(ROWS) >= 8


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["what"][:40])
def test_figures_are_those_measured(row):
    page = (ROOT / row["page"]).read_text(encoding="utf-8")
    figures = re.findall(r"\*\*(.+?)\*\*", row["figures"])
    assert figures
    for figure in figures:
        assert figure in page, f"{figure} is not in {row['page']}: measure again or correct the README"
