"""The page of a report in headless Chromium: nothing fails, nothing is fetched; sorting, searching, keyboard, print."""

import numpy as np
import pytest

import ranksvm
from ranksvm.report import make_report

TABLE = "#queries table"


@pytest.fixture
def page(browser, report, tmp_path):
    """The opened page; its messages and requests are collected, and must be none in the end."""
    path = tmp_path / "report.html"
    report.save(path)
    context = browser.new_context(viewport={"width": 800, "height": 900}, offline=True)
    opened = context.new_page()
    seen = []
    opened.on("console", lambda message: seen.append(f"console: {message.text}"))
    opened.on("pageerror", lambda error: seen.append(f"error: {error}"))
    opened.on("request", lambda request: seen.append(f"request: {request.url}"))
    opened.goto(path.as_uri())
    yield opened
    context.close()
    assert seen == [f"request: {path.as_uri()}"]


def column(page, number):
    """The texts of a column of the table of queries, of rows that are shown."""
    rows = page.locator(f"{TABLE} tbody tr:not([hidden])")
    return [text.strip() for text in rows.locator(f"td:nth-child({number})").all_text_contents()]


def test_markup_in_names_is_text(page):
    assert page.title().startswith("<script>document.title='broken'</script>")
    assert page.locator("script").count() == 1
    assert page.locator("h1").text_content().endswith("\"'&$title")
    figure = page.locator("#weights svg").text_content()
    assert "<script>doc" in figure
    assert "\"'&$f0" in figure


def test_numbers_are_sorted_as_numbers(page):
    head = page.locator(f"{TABLE} thead th").nth(1)
    before = column(page, 2)
    for order, reverse in (("descending", True), ("ascending", False)):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == order
        assert column(page, 2) == sorted(before, key=float, reverse=reverse)
    # sorting by another column is shown there only
    page.locator(f"{TABLE} thead th button").nth(0).click()
    assert head.get_attribute("aria-sort") is None


def test_text_is_sorted_with_its_numbers_in_order(page, parts):
    page.locator(f"{TABLE} thead th button").nth(0).click()
    numbers = [int(name.rsplit("q", 1)[1]) for name in column(page, 1)]
    assert numbers == sorted(int(query.rsplit("q", 1)[1]) for query in parts[1].queries.keys)


def test_queries_are_searched_and_chosen_by_sign(page):
    page.get_by_label("Search queries").fill("Q2")  # whatever the case
    found = column(page, 1)
    assert {name.rsplit("q", 1)[1][0] for name in found} == {"2"}
    assert page.locator("#queries output").text_content() == f"{len(found)} of 20 queries"
    page.get_by_label("Search queries").fill("no such query")
    assert column(page, 1) == []
    page.get_by_label("Search queries").fill("")
    signs = page.locator(f"{TABLE} thead th").all_text_contents()
    place = next(i for i, name in enumerate(signs, 1) if name.startswith("against"))
    counts = []
    for word, wanted in (("better", lambda x: x > 0), ("worse", lambda x: x < 0), ("the same", lambda x: x == 0)):
        page.locator("#queries select").select_option(word)
        values = [float(text) for text in column(page, place)]
        assert all(map(wanted, values))
        counts.append(len(values))
    assert sum(counts) == 20


def test_features_are_searched(page):
    page.get_by_label("Search features").fill("f3")
    assert page.locator("#weights tbody tr:not([hidden])").count() == 1


def test_the_keyboard_is_enough(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Enter")
    button = page.locator(f"{TABLE} thead th button").nth(2)
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator(f"{TABLE} thead th").nth(2).get_attribute("aria-sort") == "descending"
    summary = page.locator("#worst summary").first
    summary.focus()
    page.keyboard.press("Space")
    assert page.locator("#worst details").first.get_attribute("open") is not None
    # tables wider than the screen are scrolled by the keyboard, so they can have the focus
    for wide in page.locator(".wide").all():
        assert wide.get_attribute("tabindex") == "0"


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_no_page_is_wider_than_the_screen(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    # letters of figures stay readable: at least 9 pixels high
    scale = page.evaluate(
        "Math.min(...Array.from(document.querySelectorAll('figure svg'), svg => svg.getBoundingClientRect().width "
        "/ svg.viewBox.baseVal.width))"
    )
    assert 10 * scale >= 9


def test_print_opens_what_is_closed(page, tmp_path):
    closed = page.locator("details:not([open])").count()
    assert closed == 10
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == closed
    page.emulate_media(media="print")
    assert not page.locator(".controls").first.is_visible()
    assert not page.locator("nav").is_visible()
    head = page.locator(f"{TABLE} thead th").nth(0)
    assert not head.locator("button").is_visible()
    assert head.evaluate("head => getComputedStyle(head, '::before').content") == '"query"'
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_paper_cuts_no_table(browser, parts, tmp_path):
    """Paper cannot be scrolled: the table of queries has a value and a difference for each of six baselines."""
    test = parts[1]
    scores = {f"baseline-{place}.rsvm": test.X @ np.roll([1.0, 0.5, 0.0, -0.5], place) for place in range(6)}
    plain = ranksvm.RankingData(test.X, test.y, test.queries.numbers())
    model = ranksvm.RankSVM(C=0.1).fit(plain.X, plain.y, qid=plain.qid)
    make_report(model, plain, baselines=scores).save(tmp_path / "report.html")
    a4_within_margins = 718  # pixels: 210 mm less 1 cm on both sides
    context = browser.new_context(viewport={"width": a4_within_margins, "height": 900})
    opened = context.new_page()
    opened.goto((tmp_path / "report.html").as_uri())
    opened.emulate_media(media="print")
    assert opened.locator(f"{TABLE} thead th").count() == 1 + 7 + 6 + 2
    assert opened.evaluate(
        "Math.max(...Array.from(document.querySelectorAll('table'), table => table.offsetWidth))"
    ) <= (a4_within_margins)
    context.close()


def test_a_long_name_leaves_room_for_the_numbers_beside_it(browser, parts, tmp_path):
    test = parts[1]
    named = ranksvm.RankingData(test.X, test.y, test.queries.numbers(), feature_names=["x" * 120, "b", "c", "d"])
    model = ranksvm.RankSVM(C=0.1).fit(named.X, named.y, qid=named.qid)
    make_report(model, named, train=named).save(tmp_path / "report.html")
    context = browser.new_context(viewport={"width": 1024, "height": 900})
    opened = context.new_page()
    opened.goto((tmp_path / "report.html").as_uri())
    wide = opened.locator("#weights .grid .wide")
    assert wide.evaluate("wide => wide.scrollWidth <= wide.clientWidth")
    context.close()


def test_without_scripts_everything_is_there(browser, report, tmp_path):
    report.save(tmp_path / "report.html")
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto((tmp_path / "report.html").as_uri())
    assert opened.locator(f"{TABLE} tbody tr").count() == 20
    assert opened.locator("button, input, select").count() == 0
    context.close()
