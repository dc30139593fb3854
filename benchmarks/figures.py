"""Update quoted figures: the tables of README.md and benchmarks/README.md, and the chart of speed.

``python benchmarks/figures.py`` writes the current figures of the pages in ``benchmarks/results``; run it after a page
was measured again. ``--check`` changes nothing, and exits with status 1 if something disagrees. The digests of pages
show whether a page was changed by hand after its script wrote it; ``--seal`` records the digests of all pages as they
are now.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from _digests import DIGESTS, digests
from _quotes import RESULTS, page_text, rendered
from _speed_chart import speed_chart

HERE = Path(__file__).parent
# files with a table between two comments, and the templates of these tables
TABLES = {HERE.parent / "README.md": "alternatives", HERE / "README.md": "figures"}
CHART = RESULTS / "speed.svg"
BLOCK = re.compile(r"(<!-- begin: python benchmarks/figures.py -->\n).*?(<!-- end -->)", re.DOTALL)


def template(name: str) -> str:
    """The template of a table, in which quotes stand for figures."""
    return (HERE / "quoted" / f"{name}.md").read_text(encoding="utf-8")


def with_table(text: str, table: str) -> str:
    """The text of a page with its table replaced."""
    return BLOCK.sub(lambda match: match[1] + table + match[2], text)


def expected() -> Iterator[tuple[Path, str]]:
    """Every file that quotes figures, and its correct content."""
    for path, name in TABLES.items():
        yield path, with_table(path.read_text(encoding="utf-8"), rendered(template(name)))
    yield CHART, speed_chart(page_text("speed"))


def main(argv: Sequence[str] | None = None) -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true")
    action.add_argument("--seal", action="store_true")
    options = parser.parse_args(argv)
    files = dict(expected())
    if options.seal or options.check:
        files[DIGESTS] = digests()
    wrong = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in wrong:
        if options.check:
            print(
                f"{path.relative_to(HERE.parent)} is not what benchmarks/results say: run python benchmarks/figures.py"
            )
        else:
            path.write_text(files[path], encoding="utf-8")
            print(f"wrote {path.relative_to(HERE.parent)}")
    return int(options.check and bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
