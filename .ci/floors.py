"""Draw the packages of ranksvm by layer, from the import contract and the import graph, as SVG.

python .ci/floors.py docs/_static/floors.svg

The layers come from the import contract in pyproject.toml. An arrow points from a package to one that it imports. An
arrow is left out if other arrows lead to the same package: the drawing is the transitive reduction.
"""

import re
import sys
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
# The column of each package, from left to right; layers are rows. With these columns, no arrow crosses a box.
COLUMNS = {
    "cli": 2.0,
    "serving": 1.0,
    "report": 3.0,
    "clicks": 1.0,
    "plotting": 2.0,
    "dask": 4.0,
    "analysis": 2.0,
    "estimators": 2.0,
    "fits": 2.0,
    "objectives": 3.0,
    "exporting": 4.0,
    "terms": 1.5,
    "kernels": 2.5,
    "model_selection": 0.0,
    "additive": 3.7,
    "losses": 2.5,
    "metrics": 0.0,
    "datasets": 1.0,
    "data": 2.0,
    "solvers": 3.5,
    "device": 2.0,
    "model_files": 0.8,
    "_util": 2.0,
    "_compiled": 1.5,
    "exceptions": 2.5,
}
COLUMN, ROW, BOX_WIDTH, BOX_HEIGHT, MARGIN = 150, 56, 124, 28, 76
INK, BLUE, PALE, BAND = "#1c2733", "#3b6ea5", "#eef3fb", "#f6f8fa"


def layers() -> list[list[str]]:
    """The packages of each layer of the import contract, from the highest to the lowest."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(each for each in settings["tool"]["importlinter"]["contracts"] if each["type"] == "layers")
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def imports() -> dict[str, set[str]]:
    """For each package, or module at the root, the others that it imports from, without `ranksvm` itself."""
    # grimp cannot read the package through the import hook of an editable install
    sys.meta_path[:] = [each for each in sys.meta_path if type(each).__name__ != "MesonpyMetaFinder"]
    sys.path.insert(0, str(ROOT / "src"))
    graph = grimp.build_graph("ranksvm", cache_dir=None)
    packages = graph.find_children("ranksvm")
    found: dict[str, set[str]] = {package.partition(".")[2]: set() for package in packages}
    for importer in packages:
        for imported in packages - {importer}:
            if graph.direct_import_exists(importer=importer, imported=imported, as_packages=True):
                found[importer.partition(".")[2]].add(imported.partition(".")[2])
    return found


def reduced(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows that are not implied by a longer path of arrows."""

    def reached(package: str) -> set[str]:
        return graph[package].union(*map(reached, graph[package]))

    return sorted(
        (package, below)
        for package, belows in graph.items()
        for below in belows
        if not any(below in reached(other) for other in belows - {below})
    )


def drawing() -> str:
    """The drawing, as SVG text."""
    rows = layers()
    places = {
        package: (MARGIN + COLUMN * COLUMNS[package], MARGIN / 2 + ROW * row)
        for row, packages in enumerate(rows)
        for package in packages
    }
    arrows = [arrow for arrow in reduced(imports()) if "__main__" not in arrow]
    width, height = 2 * MARGIN + COLUMN * max(COLUMNS.values()), MARGIN + ROW * (len(rows) - 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" font-family="system-ui, sans-serif" font-size="14" fill="{INK}">',
        "<title>The packages of ranksvm by layer: each imports only from layers below its own.</title>",
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{BLUE}"/></marker></defs>',
        f'<rect width="{width:g}" height="{height:g}" rx="10" fill="#ffffff"/>',
    ]
    for row in range(0, len(rows), 2):
        top = MARGIN / 2 + ROW * row - ROW / 2
        lines.append(f'<rect x="8" y="{top:g}" width="{width - 16:g}" height="{ROW}" rx="6" fill="{BAND}"/>')
    for package, below in arrows:
        (x, y), (to_x, to_y) = places[package], places[below]
        # shift the ends of arrows, so that arrows at the same box do not overlap
        aside = max(-BOX_WIDTH / 3, min(BOX_WIDTH / 3, (to_x - x) / 4))
        line = f"M{x + aside:g} {y + BOX_HEIGHT / 2:g} L{to_x - aside:g} {to_y - BOX_HEIGHT / 2:g}"
        lines.append(
            f'<path d="{line}" stroke="{BLUE}" stroke-width="1.5" marker-end="url(#head)">'
            f"<title>{package} imports {below}</title></path>"
        )
    for package, (x, y) in places.items():
        lines.append(
            f'<rect x="{x - BOX_WIDTH / 2:g}" y="{y - BOX_HEIGHT / 2:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" '
            f'rx="6" fill="{PALE}" stroke="{BLUE}" stroke-width="1.5"/>'
        )
        lines.append(f'<text x="{x:g}" y="{y + 5:g}" text-anchor="middle">{package}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawing(), encoding="utf-8")
