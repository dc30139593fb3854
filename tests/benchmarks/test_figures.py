"""Every figure that is quoted is the one measured: no digit can drift, neither here nor there."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import _quotes as quotes
import figures

ROOT = Path(__file__).parents[2]


def other_digit(text, place):
    """The text with another digit at a place."""
    return f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}"


def templates():
    return [figures.template(name) for name in ("figures", "alternatives", "sentences")]


def test_tables_and_chart_agree_with_the_pages(capsys):
    assert figures.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("path", ["README.md", "benchmarks/README.md", "benchmarks/results/speed.svg"])
def test_every_digit_of_a_table_or_the_chart_is_checked(path):
    path = ROOT / path
    text = path.read_text(encoding="utf-8")
    if path == figures.CHART:
        places = [match.start() for match in re.finditer(r"\d", text)]
        expected = figures.speed_chart(figures.page_text("speed"))
        disagrees = expected.__ne__
    else:
        block = figures.BLOCK.search(text)
        places = [match.start() for match in re.finditer(r"\d", text) if block.start() < match.start() < block.end()]
        table = figures.rendered(figures.template(figures.TABLES[path]))

        def disagrees(changed):
            return figures.with_table(changed, table) != changed

    assert len(places) > 30
    assert not disagrees(text)
    # the digits of the comments around a table are none of it
    assert [place for place in places if not disagrees(other_digit(text, place))] == []


def test_every_quoted_digit_of_a_page_is_checked():
    """Another last digit where a figure was measured: the text that quotes it disagrees."""
    unnoticed, n_quotes = [], 0
    for template in templates():
        for match in quotes.QUOTE.finditer(template):
            if match["rounding"]:  # what is rounded away need not show
                continue
            page = quotes.page_text(match["page"])
            start, end = quotes.located(page, match["place"])
            place = max(place for place in range(start, end) if page[place].isdigit())
            texts = {match["page"]: other_digit(page, place)}
            n_quotes += 1
            try:
                if quotes.rendered(match[0], texts) == quotes.rendered(match[0]):
                    unnoticed.append(match[0])
            except quotes.QuoteError:  # noticed: a row went by this digit, too
                pass
    assert n_quotes > 100
    assert unnoticed == []


def test_every_page_is_what_its_script_wrote():
    sealed = figures.DIGESTS.read_text(encoding="ascii").splitlines()
    changed = [line.split()[1] for line in set(sealed) ^ set(figures.digests().splitlines())]
    assert not changed, f"changed by hand: {sorted(set(changed))}; if meant, run python benchmarks/figures.py --seal"


def test_sentences_of_the_documentation_quote_what_was_measured():
    pages = " ".join(" ".join(path.read_text(encoding="utf-8").split()) for path in sorted(ROOT.glob("docs/**/*.md")))
    for sentence in figures.template("sentences").splitlines():
        assert quotes.rendered(sentence) in pages


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("First > a > two", "2.5"),
        ("First > a > two #2", "3"),
        ("First > one==b > two", "1,000"),
        ("First > b & y > two", "1,000"),
        ("least First > z > two", "4e-3"),
        ("most First > z > two", "7"),
        ("/found (\\d+) times/", "12"),
    ],
)
def test_places(place, expected):
    page = (
        "# First part\nfound 12 times\n| one | two | three |\n|---|---|---|\n"
        "| **a** | 2.5 / 3 | x |\n| b | 1,000 | y |\n| c | 7 | z |\n| d | -4e-3 | z |\n\n"
        "| one | two |\n|---|---|\n| a | 9 |\n# Second\n| one | two |\n|---|---|\n| a | 8 |\n"
    )
    start, end = quotes.located(page, place)
    assert page[start:end] == expected
    assert quotes.rendered("{p: First > b > two |.1f}", {"p": page}) == "1000.0"


@pytest.mark.parametrize("place", ["First > z > two", "First > e > two", "Third > a > two", "/\\d/"])
def test_places_that_are_none_or_several(place):
    page = "# First\n| one | two | three |\n|---|---|---|\n| a | 2 | z |\n| b | 1 | z |\n"
    with pytest.raises(quotes.QuoteError):
        quotes.located(page, place)


def test_a_page_is_sealed_when_it_is_written(tmp_path, monkeypatch):
    import _digests

    monkeypatch.setattr(_digests, "RESULTS", tmp_path)
    monkeypatch.setattr(_digests, "DIGESTS", tmp_path / "digests.txt")
    first, second = tmp_path / "a.md", tmp_path / "b.md"
    first.write_text("1")
    second.write_text("2")
    _digests.DIGESTS.write_text(_digests.digests())
    before = _digests.DIGESTS.read_text()
    first.write_text("3")
    second.write_text("4")
    _digests.seal(second)
    _digests.seal(ROOT / "README.md")
    old_first, old_second = before.splitlines()
    new_first, new_second = _digests.DIGESTS.read_text().splitlines()
    assert new_first == old_first
    assert new_second != old_second
    assert new_second in _digests.digests()


@pytest.mark.parametrize("path", ["benchmarks/results/speed.svg", "examples/what_it_learns.svg"])
def test_pictures_are_readable_in_light_and_dark(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).get("viewBox")
    assert "@media (prefers-color-scheme: dark)" in text
    # a background of its own: the page may be darker than the system's preference
    assert 'class="card"' in text
