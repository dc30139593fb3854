"""Put measured figures where they are quoted: the tables of README.md and benchmarks/README.md, and the chart of speed.

``python benchmarks/figures.py`` writes what the pages of ``benchmarks/results`` say now; run it after a page is
measured again. ``--check`` changes nothing and ends with status 1 where something disagrees. ``--seal`` records the
digests of all pages: a page is what its script wrote, so a page changed by hand disagrees until somebody seals it.
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
# where a table stands, between two comments, and its template
TABLES = {HERE.parent / "README.md": "alternatives", HERE / "README.md": "figures"}
CHART = RESULTS / "speed.svg"
BLOCK = re.compile(r"(<!-- begin: python benchmarks/figures.py -->\n).*?(<!-- end -->)", re.DOTALL)


def template(name: str) -> str:
    """A table whose figures are quotes."""
    return (HERE / "quoted" / f"{name}.md").read_text(encoding="utf-8")


def with_table(text: str, table: str) -> str:
    """A page with its table replaced."""
    return BLOCK.sub(lambda match: match[1] + table + match[2], text)


def expected() -> Iterator[tuple[Path, str]]:
    """Every file that quotes figures, and what should be in it."""
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
