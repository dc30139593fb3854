"""Draw what a linear RankSVM learns: a direction along which preferred documents come first (what_it_learns.svg).

python examples/what_it_learns.py -o examples/what_it_learns.svg
"""

import argparse
from pathlib import Path

import numpy as np

from ranksvm import RankSVM

# two features and the grade of the documents of one query
DOCUMENTS = np.array(
    [
        [0.78, 0.74, 2],
        [0.90, 0.36, 2],
        [0.52, 0.86, 2],
        [0.60, 0.50, 1],
        [0.30, 0.76, 1],
        [0.82, 0.10, 1],
        [0.40, 0.30, 0],
        [0.14, 0.52, 0],
        [0.56, 0.12, 0],
        [0.16, 0.16, 0],
    ]
)
WIDTH, HEIGHT = 800, 330
# in pixels: side, left and bottom of the square that shows the features, and the left of the ranked list
SIDE, LEFT, BOTTOM, LIST = 230, 40, 286, 505

STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.note { font-size: 12px; fill: #57606a }
.card { fill: #ffffff; stroke: #d0d7de }
.line { stroke: #8c959f; stroke-width: 1.5 }
.drop { stroke: #8c959f; stroke-dasharray: 3 3 }
.arrow { stroke: #cf222e; stroke-width: 2.5 }
.head { fill: #cf222e }
.grade2 { fill: #0a3069; stroke: #0a3069 }
.grade1 { fill: #54aeff; stroke: #0a3069 }
.grade0 { fill: #ffffff; stroke: #0a3069 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .note { fill: #9198a1 }
  .card { fill: #0d1117; stroke: #3d444d }
  .line, .drop { stroke: #656c76 }
  .arrow { stroke: #ff7b72 }
  .head { fill: #ff7b72 }
  .grade2 { fill: #a5d6ff; stroke: #a5d6ff }
  .grade1 { fill: #1f6feb; stroke: #a5d6ff }
  .grade0 { fill: #0d1117; stroke: #a5d6ff }
}"""
GRADES = {2: "relevant", 1: "partly", 0: "not relevant"}


def picture() -> str:
    """The SVG, in light or dark colors according to the reader's settings."""
    X, y = DOCUMENTS[:, :2], DOCUMENTS[:, 2].astype(int)
    ranker = RankSVM(C=10.0).fit(X, y, qid=np.zeros(len(y)))
    scores = ranker.predict(X)
    direction = ranker.coef_ / np.linalg.norm(ranker.coef_)
    return "\n".join([*_frame(), *_features(X, y, direction), *_list(y, scores), "</svg>"]) + "\n"


def _frame() -> list[str]:
    title = "A linear RankSVM learns the direction along which preferred documents come first"
    legend = []
    for place, (grade, words) in enumerate(GRADES.items()):
        y = 150 + 26 * place
        legend += [_dot(320, y - 4, grade), f'<text x="334" y="{y}">{words}</text>']
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' role="img" aria-labelledby="title">',
        f'<title id="title">{title}</title>',
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>',
        '<text class="title" x="20" y="28">Documents of a query, by their features</text>',
        f'<text class="title" x="{LIST - 20}" y="28">Ranked by score = w · x</text>',
        *legend,
        '<text class="note" x="310" y="240">w: every pair with different</text>',
        '<text class="note" x="310" y="256">grades asks for a margin</text>',
    ]


def _features(X: np.ndarray, y: np.ndarray, direction: np.ndarray) -> list[str]:
    """The square: the documents, the learned direction, and the projections of the documents onto it."""

    def at(point: np.ndarray) -> tuple[str, str]:
        return f"{LEFT + SIDE * point[0]:.1f}", f"{BOTTOM - SIDE * point[1]:.1f}"

    parts = [
        f'<line class="line" x1="{LEFT}" y1="{BOTTOM}" x2="{LEFT + SIDE}" y2="{BOTTOM}"/>',
        f'<line class="line" x1="{LEFT}" y1="{BOTTOM}" x2="{LEFT}" y2="{BOTTOM - SIDE}"/>',
        f'<text class="note" x="{LEFT + SIDE / 2}" y="{BOTTOM + 20}" text-anchor="middle">one feature</text>',
        f'<text class="note" transform="translate({LEFT - 12} {BOTTOM - SIDE / 2}) rotate(-90)" text-anchor="middle">'
        "another</text>",
    ]
    for point in X:
        (x1, y1), (x2, y2) = at(point), at((point @ direction) * direction)
        parts.append(f'<line class="drop" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')
    (x1, y1), (x2, y2) = at(np.zeros(2)), at(1.12 * direction)
    parts.append(f'<line class="arrow" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')
    across = np.array([-direction[1], direction[0]])
    corners = [1.19 * direction, 1.11 * direction + 0.03 * across, 1.11 * direction - 0.03 * across]
    parts.append(f'<polygon class="head" points="{" ".join(",".join(at(corner)) for corner in corners)}"/>')
    parts += [_dot(*at(point), grade) for point, grade in zip(X, y, strict=True)]
    return parts


def _list(y: np.ndarray, scores: np.ndarray) -> list[str]:
    """The documents from best to worst, with their scores."""
    parts = []
    for place, i in enumerate(np.argsort(-scores, kind="stable")):
        height = 60 + 26 * place
        parts += [
            f'<text class="note" x="{LIST}" y="{height}" text-anchor="end">{place + 1}</text>',
            _dot(LIST + 24, height - 4, y[i]),
            f'<text x="{LIST + 44}" y="{height}">document {i + 1}: {GRADES[y[i]]}</text>',
            f'<text x="{WIDTH - 28}" y="{height}" text-anchor="end">{scores[i]:.2f}</text>',
        ]
    return parts


def _dot(x: float | str, y: float | str, grade: int) -> str:
    return f'<circle class="grade{grade}" cx="{x}" cy="{y}" r="6.5" stroke-width="1.5"/>'


def main() -> None:
    """Write the picture, or print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    output = parser.parse_args().output
    if output is None:
        print(picture())
    else:
        output.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
