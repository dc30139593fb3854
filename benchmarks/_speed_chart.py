"""The chart of speed in README.md, an SVG that shows every row of the first table in ``results/speed.md``."""

import math
from html import escape

from _quotes import NUMBER, rows

HEADING = "Beside the published solver"
COLUMN = "at its default"

# sizes in pixels
WIDTH, LEFT, RIGHT, TOP, STEP, BAR = 860, 445, 50, 76, 22, 12
TICKS = [1, 2, 5, 10, 20, 50]

STYLE = """\
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.note { font-size: 12px; fill: #57606a }
.card { fill: #ffffff; stroke: #d0d7de }
.grid { stroke: #d0d7de }
.bar { fill: #1f6feb }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .note { fill: #9198a1 }
  .card { fill: #0d1117; stroke: #3d444d }
  .grid { stroke: #3d444d }
  .bar { fill: #4493f8 }
}"""


def ratios(text: str) -> list[tuple[str, str]]:
    """Problems, and the published solver's time divided by ours with one thread, as the page states it."""
    return [
        (row.cells[0], NUMBER.findall(row.cells[row.columns.index(COLUMN)])[0])
        for row in rows(text)
        if row.heading.startswith(HEADING) and COLUMN in row.columns
    ]


def speed_chart(text: str) -> str:
    """The SVG, in light or dark colors according to the reader's settings.

    Parameters
    ----------
    text : str
        The page of measurements.
    """
    bars = ratios(text)
    height = TOP + STEP * len(bars) + 44
    longest = math.log(max(TICKS))
    scale = (WIDTH - LEFT - RIGHT) / longest
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' role="img" aria-labelledby="title">',
        f'<title id="title">{_title(bars)}</title>',
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        '<text class="title" x="20" y="28">Times as fast as the published solver (Lee and Lin 2014)</text>',
        '<text class="note" x="20" y="48">One thread each, at equal accuracy: where the published solver stops'
        " by default. Logarithmic scale.</text>",
    ]
    bottom = TOP + STEP * len(bars)
    for tick in TICKS:
        x = LEFT + scale * math.log(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}"/>')
        parts.append(f'<text class="note" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{tick}</text>')
    for place, (problem, ratio) in enumerate(bars):
        y = TOP + STEP * place
        length = scale * math.log(float(ratio))
        parts += [
            f'<text x="{LEFT - 10}" y="{y + 11}" text-anchor="end">{escape(problem)}</text>',
            f'<rect class="bar" x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" rx="2"/>',
            f'<text x="{LEFT + length + 6:.1f}" y="{y + 11}">{ratio}</text>',
        ]
    parts.append(
        f'<text class="note" x="20" y="{bottom + 36}">benchmarks/results/speed.md: machine, versions, command.</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _title(bars: list[tuple[str, str]]) -> str:
    values = "; ".join(f"{problem}: {ratio}" for problem, ratio in bars)
    return escape(f"Times as fast as the published solver. {values}")
