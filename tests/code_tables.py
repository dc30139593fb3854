"""Read the tables of the documentation that show code of another tool beside code for ranksvm."""

import ast
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
ROW = re.compile(r"\| ([^|]+) \| `(.+)` \| `(.+)` \|.*\|")


def rows(page):
    """For each table row of a page of docs/: section, name, code of the other tool and code for ranksvm."""
    section = None
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        if cells := ROW.fullmatch(line):
            yield section, *cells.groups()


def run(code, names):
    """Run code and return the value of its last expression, or None if it ends with a statement."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "row", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "row", "eval"), names)
