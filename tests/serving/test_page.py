"""The page of a service in headless Chromium: every control, no message in the console, nothing fetched elsewhere."""

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
        said = {"clicks": [best]} if number % 2 else {"labels": {best: 1, str((int(best) + 1) % 6): 0}}
        assert client.feedback(ranking["event"], **said)[0] == 202
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
    assert "learned from40" in facts
    assert page.locator("#event-rows tr").count() == 10
    assert "<script>document" in page.locator("#event-rows").text_content()
    for table, curve in (("#means", "#curve"), ("#estimates", "#click-curve")):
        assert page.locator(f"{table} td:first-child").all_text_contents() == ["shown", "champion", "challenger"]
        assert page.locator(f"{curve} path").count() == 6
        texts = page.locator(f"{curve} text").all_text_contents()
        assert {"0", "5", "10", "15"} <= set(texts)  # the first point of a curve is after 16 queries
        assert {"ndcg@10", "queries"} <= set(texts) or {"dcg@10", "rankings"} <= set(texts)
    assert page.locator("#by-clicks h2").text_content() == "DCG@10 by clicks, corrected for position"
    assert page.locator("#by-labels h2").text_content() == "NDCG@10 by labels"
    assert "Propensities: 1 / rank^1.00" in page.locator("#propensities").text_content()
    assert not page.locator("#no-feedback").is_visible()
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
    assert page.locator("#weight-rows .signs svg").count() == 1


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
    colours = page.evaluate(
        "() => ['body', 'dt', 'figcaption', 'thead th'].map(name => { const found = document.querySelector(name);"
        " const under = name === 'dt' ? found.parentElement : name === 'thead th' ? found : document.body;"
        " return [getComputedStyle(found).color, getComputedStyle(under).backgroundColor]; })"
    )
    for text, under in colours:
        assert contrast(text, under) >= 4.5, (text, under)
    page.context.close()


def contrast(one, other):
    """Ratio of luminances, as WCAG defines it."""

    def luminance(colour):
        values = np.array([float(part) for part in colour[4:-1].split(",")][:3]) / 255
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
