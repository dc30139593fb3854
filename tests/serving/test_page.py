"""The page of a service in headless Chromium: every control, no message in the console, nothing fetched elsewhere."""

import re
import time

import numpy as np
import pytest

import ranksvm
from ranksvm.serving.access import add_key
from ranksvm.serving.learner import Schedule

from .http_service import Running

pytest.importorskip("starlette", reason="starlette is not installed: no service is tested")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: no service is tested")

MARKUP = "<script>document.title='broken'</script>\"'&"
NAMES = [f"{MARKUP}price", "age", "stock"]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A service with two models, some rankings and feedback."""
    models = {
        "champion": ranksvm.SOLARRanker(order=2, gamma=1.0, random_state=0),
        "challenger": ranksvm.PairwisePerceptronRanker(random_state=0),
    }
    path = str(tmp_path_factory.mktemp("page") / "events.db")
    service = Running(path, models, names=NAMES, schedule=Schedule(10, 0.05), explore="team-draft")
    client, rng = service.client(), np.random.default_rng(0)
    for number in range(40):
        X = rng.normal(size=(6, 3))
        ranking = client.rank(X.tolist(), f"{MARKUP}q{number}")
        best = str(int(np.argmax(X @ [1.0, -1.0, 0.5])))
        assert client.feedback(ranking["event"], clicks=[best])[0] == 202
    end = time.monotonic() + 20
    while client.get("/v1/models")[1]["position"] < 40:
        assert time.monotonic() < end
        time.sleep(0.01)
    client.close()
    yield service
    service.stop()


def opened(browser, running, seen, **options):
    context = browser.new_context(**{"viewport": {"width": 900, "height": 900}} | options)
    page = context.new_page()
    page.on("console", lambda message: seen.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.append(f"error: {error}"))
    page.on("request", lambda request: seen.append(request.url) if f":{running.port}/" not in request.url else None)
    page.goto(f"http://127.0.0.1:{running.port}/")
    return page


@pytest.fixture
def page(browser, running):
    """The page, when it has shown what the service says."""
    seen = []
    page = opened(browser, running, seen)
    page.get_by_text("Up to date").wait_for()
    yield page
    page.context.close()
    assert [one for one in seen if not one.startswith("data:")] == []


def test_everything_is_shown_and_markup_is_text(page):
    assert page.title() == "ranksvm service"
    facts = page.locator("#facts").text_content()
    assert "SOLARRanker" in facts
    assert "entries learned40" in facts
    assert page.locator("#event-rows tr").count() == 10
    assert "<script>document" in page.locator("#event-rows").text_content()
    assert "Interleaved rankings: the champion won" in page.locator("#experiment").text_content()


def test_an_explanation_is_opened_and_closed_by_the_keyboard(page):
    button = page.locator("#event-rows button").first
    button.focus()
    page.keyboard.press("Enter")
    page.locator("#explained-rows tr").first.wait_for()
    assert page.evaluate("document.activeElement.id") == "explanation"
    assert page.locator("#explained-rows tr").count() == 6
    assert page.locator("#explained-rows td:nth-child(1)").all_text_contents() == ["1", "2", "3", "4", "5", "6"]
    page.locator("#close").focus()
    page.keyboard.press("Space")
    assert not page.locator("#explanation").is_visible()


def test_features_are_searched(page):
    page.get_by_label("Search features").fill("AGE")
    assert page.locator("#weight-rows tr").count() == 1
    assert page.locator("#found").text_content() == "1 of 3 features"
    assert page.locator("#weight-rows .bar").count() == 1


QUALITY = {
    "measures": {
        "shown": {"queries": 900, "mean": 0.61, "history": [[300, 0.5, 0.06], [600, 0.58, 0.04], [900, 0.61, 0.03]]}
    },
    "clicks": {
        "metric": "dcg@10",
        "rule": "fair-pairs",
        "propensities": {"source": "estimated", "rankings": 20_000, "values": [1.0, 0.52, 0.31], "note": "too few."},
        "drifts": [1234, 567],
        "estimates": {
            "shown": {
                "rankings": 1500,
                "clicks": 700,
                "mean": 1.2,
                "low": 1.1,
                "high": 1.3,
                "history": [[500, 1.0, 0.4], [1500, 1.2, 0.1]],
            },
            "champion": {
                "rankings": 1500,
                "clicks": 700,
                "mean": 1.5,
                "low": 1.3,
                "high": 1.7,
                "history": [[500, 1.4, 0.5], [1500, 1.5, 0.2]],
            },
        },
    },
}
NOTHING = {"measures": {}, "clicks": QUALITY["clicks"] | {"estimates": {}}}


@pytest.fixture
def with_quality(browser, running):
    """A function that opens the page of a service that has measured what is given."""
    contexts = []

    def opened_with(width=900, **quality):
        def answer(route):
            real = route.fetch()
            route.fulfill(response=real, json=real.json() | quality)

        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.route("**/v1/models", answer)
        page.goto(f"http://127.0.0.1:{running.port}/")
        page.get_by_text("Up to date").wait_for()
        return page

    yield opened_with
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_labels_and_clicks_have_charts_of_their_own(with_quality, width):
    page = with_quality(width, **QUALITY)
    assert page.locator("#quality ~ div h3").all_text_contents() == [
        "NDCG@10 by labels",
        "DCG@10 by clicks, corrected for position",
    ]
    assert page.locator("#labels-rows td").all_text_contents() == ["shown", "900", "0.6100", "± 0.0300"]
    assert page.locator("#clicks-rows tr").nth(1).locator("td").all_text_contents() == [
        "champion",
        "1,500",
        "700",
        "1.5000",
        "1.300 to 1.700",
    ]
    assert (
        "estimated from 20,000 lists: 1.00, 0.52, 0.31 for ranks 1 to 3" in page.locator("#propensities").text_content()
    )
    text = page.locator("#propensities").text_content()
    assert "There is no newer estimate: too few." in text
    assert 'by the rule "fair-pairs"' in text
    assert "At entry 1,234 and 567 of the log, users clicked as if the order had no information" in text
    assert page.locator("#clicks-curve path").count() == 4
    labels = page.locator("#labels-curve text").all_text_contents()
    assert labels[0] == "mean NDCG@10"
    assert {"0.60", "0", "queries with labels", "shown"} <= set(labels)
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize(("given", "visible"), [("measures", "#labels"), ("clicks", "#clicks"), (None, "#unmeasured")])
def test_only_what_was_measured_is_shown(with_quality, given, visible):
    page = with_quality(**NOTHING | ({given: QUALITY[given]} if given else {}))
    for place in ("#labels", "#clicks", "#unmeasured"):
        assert page.locator(place).is_visible() == (place == visible)


def test_before_any_win_there_is_no_share_of_wins(with_quality):
    draft = {"champion": 0, "challenger": 0, "ties": 2, "share": None, "interval": [0.0, 1.0], "better": None}
    for given, said in ((draft, False), (draft | {"challenger": 1, "share": 1.0}, True)):
        text = with_quality(team_draft=given).locator("#experiment").text_content()
        assert "2 were ties." in text
        assert (
            "The challenger's share of the wins is 1.000, 95 % interval 0.000 to 1.000, at any time." in text
        ) == said
        assert ("Neither is better so far." in text) == said


def test_times_of_earlier_days_have_a_date(with_quality):
    at = time.time()
    versions = [{"version": 2, "at": at, "position": 9, "kept": False}]
    versions.append({"version": 1, "at": at - 40 * 86400, "position": 0, "kept": True})
    today, earlier = with_quality(versions=versions).locator("#version-rows td:nth-child(2)").all_text_contents()
    assert re.fullmatch(r"\d\d:\d\d:\d\d", today)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", earlier)


def test_a_number_stays_behind_a_name_that_is_written_from_right_to_left(page):
    document = {"rank": 1, "id": "a", "score": 1.0, "contributions": {"נסבה": 0.5, "عمر": -0.25}}
    answer = {"query": "نسبة 3", "version": 1, "mean_score": 0.5, "documents": [document]}
    page.route("**/explain", lambda route: route.fulfill(json=answer))
    page.locator("#event-rows button").first.click()
    page.locator("#explained-rows tr").first.wait_for()
    cell = page.locator("#explained-rows td.long")
    assert cell.text_content() == "\u2068נסבה\u2069 +0.5000, \u2068عمر\u2069 −0.2500"
    assert page.locator("#explained").text_content() == "Why \u2068نسبة 3\u2069 was ranked so"


def test_a_long_name_leaves_room_for_the_numbers_beside_it(with_quality):
    weights = [{"feature": "x" * 120, "weight": 1.0, "moved": 0.5, "since": 1}]
    wide = with_quality(weights=weights).locator("#weights ~ .wide")
    assert wide.evaluate("wide => wide.scrollWidth <= wide.clientWidth")


def test_weights_are_shown_by_sign(page):
    for one in page.locator("#weight-rows tr").all():
        weight = one.locator("td").nth(1).text_content()
        assert one.locator(".bar span").get_attribute("class") == ("negative" if weight.startswith("−") else "positive")
        track, part = one.locator(".bar").bounding_box(), one.locator(".bar span").bounding_box()
        middle = track["x"] + track["width"] / 2
        edge = part["x"] + part["width"] if weight.startswith("−") else part["x"]
        assert edge == pytest.approx(middle, abs=1)
    largest = float(page.locator("#weight-rows tr").first.locator("td").nth(1).text_content()[1:])
    assert float(page.locator("#most").text_content()) == pytest.approx(largest, rel=0.05)
    assert page.locator("#least").text_content()[1:] == page.locator("#most").text_content()[1:]


def test_pause_stops_the_requests(page):
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Paused").wait_for()
    assert page.locator("#pause").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Up to date").wait_for()


def test_a_roll_back_is_asked_for_first(page, running):
    before = running.store.head[0]
    page.get_by_role("button", name="Roll back to version 1", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    assert running.store.head[0] == before
    page.get_by_role("button", name="Roll back to version 1", exact=True).click()
    page.locator("dialog").get_by_role("button", name="Roll back").click()
    page.get_by_text(f"as number {before + 1} of the log").wait_for()
    assert running.store.head[0] == before + 1


@pytest.mark.parametrize("width", [360, 900, 1400])
def test_the_page_is_not_wider_than_the_screen(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.locator("#event-rows button").first.click()
    page.locator("#explained-rows tr").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for wide in page.locator(".wide").all():
        assert wide.get_attribute("tabindex") == "0"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_schemes(browser, running, scheme):
    page = opened(browser, running, [], color_scheme=scheme)
    page.get_by_text("Up to date").wait_for()
    colors = page.evaluate(
        "() => ['body', 'dt', 'figcaption', 'thead th'].map(name => { const found = document.querySelector(name);"
        " const under = name === 'dt' ? found.parentElement : name === 'thead th' ? found : document.body;"
        " return [getComputedStyle(found).color, getComputedStyle(under).backgroundColor]; })"
    )
    for text, under in colors:
        assert contrast(text, under) >= 4.5, (text, under)
    page.context.close()


def contrast(one, other):
    """Ratio of luminances, as WCAG defines it."""

    def luminance(color):
        values = np.array([float(part) for part in color[4:-1].split(",")][:3]) / 255
        linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_a_key_is_asked_for(browser, tmp_path):
    service = Running(str(tmp_path / "events.db"), ranksvm.SOLARRanker(order=2, random_state=0))
    key = add_key(service.store, "page", ["read", "admin"])
    service.service.keys.reload()
    page = opened(browser, service, [])
    page.get_by_text("No answer: an API key is needed").wait_for()
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Use this key").click()
    page.get_by_text("Up to date").wait_for()
    assert not page.locator("#key-form").is_visible()
    page.context.close()
    service.stop()
