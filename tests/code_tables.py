"""Tables of the documentation that have a line of another tool beside ours."""

import ast
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
ROW = re.compile(r"\| ([^|]+) \| `(.+)` \| `(.+)` \|.*\|")


def rows(page):
    """Section, name, their line and our line of each row of the tables of a page of docs/."""
    section = None
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        if cells := ROW.fullmatch(line):
            yield section, *cells.groups()


def run(code, names):
    """The value of the last expression of some code; None if it ends with a statement."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "row", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "row", "eval"), names)
