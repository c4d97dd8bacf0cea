"""The page of a service in a real browser."""

import json

import pytest
from service import application, ask, serving

from browser import browsing, requests, screenshot, show_as
from harmonrank.registry import Guardrails, Registry
from logs import small_table


@pytest.fixture(scope="module")
def service(tmp_path_factory, default_model, models):
    place = tmp_path_factory.mktemp("page")
    rules = Guardrails(tolerance=1, calibration=None, shift=None, scale=None)
    registry = Registry.create(place / "registry", rules)
    registry.publish(models[0], small_table(), window="2026-01", note="the first")
    registry.publish(default_model, small_table(), window="2026-02")
    with serving(registry.path, "--point", "sales:buy=8,like=0.5") as service:
        yield service


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def artefacts(pytestconfig):
    folder = pytestconfig.rootpath / "artefacts"
    folder.mkdir(exist_ok=True)
    return folder


def wait_until(driver, script):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 60).until(lambda d: d.execute_script(f"return {script}"))


def opened(driver, service, width=1280, scheme="light"):
    show_as(driver, width, scheme)
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get(service.address)
    wait_until(driver, "document.documentElement.dataset.ready === 'true'")
    # Candidates whose order the weights decide: each is best for one objective.
    scores = {"p_buy": [0.9, 0.5, 0.1], "p_like": [0.1, 0.5, 0.9]}
    put(driver, json.dumps(scores))
    wait_until(driver, "document.getElementById('ranking').tBodies[0].rows.length === 3")


def put(driver, text):
    driver.execute_script(
        "const t = document.getElementById('input'); t.value = arguments[0];"
        "t.dispatchEvent(new Event('input'))",
        text,
    )


def order(driver):
    return driver.execute_script("return document.getElementById('ranking').dataset.order")


def slide(driver, name, value):
    driver.execute_script(
        "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
        "s.dispatchEvent(new Event('input'))",
        f"weight-{name}",
        value,
    )


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")], ids=str
)
def test_the_page_fits_and_asks_nobody_else(driver, service, artefacts, width, scheme):
    opened(driver, service, width, scheme)
    widths = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert widths == [width, width]
    # The shares are what the playground is for: all of each bar must be seen.
    ends = driver.execute_script(
        "return [...document.querySelectorAll('#ranking .bar')].map(b =>"
        " b.getBoundingClientRect().right <= b.closest('.scroll').getBoundingClientRect().right)"
    )
    assert ends == [True] * 3
    shown = driver.execute_script(
        "return [...document.getElementById('versions').tBodies[0].rows].map(r =>"
        " r.getBoundingClientRect().height > 20 && getComputedStyle(r).visibility === 'visible')"
    )
    assert shown == [True] * 2
    assert driver.get_log("browser") == []
    hosts = {url for url in requests(driver) if not url.startswith((service.address, "data:"))}
    assert hosts == set()
    screenshot(driver, artefacts / f"service-{width}-{scheme}.png")


def test_a_slider_moves_and_the_order_changes_with_the_shares(driver, service):
    opened(driver, service)
    slide(driver, "like", 0)
    wait_until(driver, "document.getElementById('ranking').dataset.order.startsWith('1')")
    assert order(driver) == "1 2 3"
    shares = "document.querySelector('#ranking .bar').getAttribute('aria-label')"
    assert driver.execute_script(f"return {shares}") == "buy 100 %, like 0 %"
    slide(driver, "like", 10)
    slide(driver, "buy", 0)
    wait_until(driver, "document.getElementById('ranking').dataset.order.startsWith('3')")
    assert order(driver) == "3 2 1"
    assert driver.get_log("browser") == []


def test_who_rose_and_who_fell_is_told_from_the_weights_as_fitted(driver, service):
    opened(driver, service)
    moves = (
        "[...document.getElementById('ranking').tBodies[0].rows].map(r =>"
        " r.cells[1].querySelector('.up, .down')?.ariaLabel ?? 'stays')"
    )
    assert driver.execute_script(f"return {moves}") == ["stays"] * 3
    before = order(driver).split()
    slide(driver, "buy", 0 if before[0] == "1" else 10)
    slide(driver, "like", 10 if before[0] == "1" else 0)
    wait_until(driver, f"document.getElementById('ranking').dataset.order !== '{' '.join(before)}'")
    after = order(driver).split()
    gained = [before.index(name) - place for place, name in enumerate(after)]
    told = driver.execute_script(f"return {moves}")
    for places, words in zip(gained, told, strict=True):
        assert words.startswith(f"up {places}" if places > 0 else "down" if places else "stays")
    assert "3 stand elsewhere" in driver.find_element("id", "order").text or 0 in gained


def test_a_slider_is_moved_by_keys_and_an_operating_point_by_its_button(driver, service):
    from selenium.webdriver.common.keys import Keys

    opened(driver, service)
    slider = driver.find_element("id", "weight-like")
    slider.send_keys(Keys.HOME)
    wait_until(driver, "document.getElementById('value-like').textContent === '0'")
    wait_until(driver, "document.getElementById('ranking').dataset.order === '1 2 3'")
    button = driver.find_element("xpath", "//button[text()='sales']")
    button.send_keys(Keys.ENTER)
    wait_until(driver, "document.getElementById('value-buy').textContent === '8'")


def test_bad_candidates_get_a_readable_message(driver, service):
    opened(driver, service)
    message = "document.getElementById('message').textContent"
    for text, words in (
        ("{", "not JSON"),
        ("[1]", "must be an object"),
        ('{"p_buy": [0.1]}', "'p_like' is missing"),
        ('{"p_buy": [2], "p_like": [0.1]}', "must lie in [0, 1]"),
    ):
        put(driver, text)
        wait_until(driver, f"{message}.includes({json.dumps(words)})")
        assert driver.find_element("id", "message").is_displayed()
    put(driver, '{"p_buy": [0.2], "p_like": [0.1]}')
    wait_until(driver, "document.getElementById('message').hidden")


def test_every_control_and_every_table_is_reached_by_the_tab_key(driver, service):
    from selenium.webdriver.common.keys import Keys

    opened(driver, service)
    driver.execute_script("document.activeElement.blur()")
    seen = []
    for _ in range(14):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        seen.append(
            driver.execute_script(
                "const e = document.activeElement; return e.id || e.ariaLabel || e.textContent"
            )
        )
    wanted = ["weight-buy", "weight-like", "as fitted", "sales", "context-hour", "context-age"]
    wanted += ["input", "rank", "generate", "Ranking", "Objectives", "Versions"]
    assert seen[: len(wanted)] == wanted


def test_the_page_shows_model_versions_and_context(driver, service):
    opened(driver, service)
    text = driver.find_element("tag name", "body").text
    assert "harmonrank, version 2" in text
    rows = driver.execute_script(
        "return [...document.getElementById('versions').tBodies[0].rows].map(r => r.innerText)"
    )
    assert [row.split()[:2] for row in rows] == [["2", "current"], ["1", "accepted"]]
    options = driver.execute_script(
        "return [...document.getElementById('context-age').options].map(o => o.text)"
    )
    assert options == ["unknown", "old", "young"]
    driver.execute_script(
        "const s = document.getElementById('context-age'); s.value = '1';"
        "s.dispatchEvent(new Event('change'))"
    )
    assert driver.get_log("browser") == []


def test_facts_are_those_of_the_model(app, default_model):
    status, facts = ask(app, "GET", "/v1/model")
    assert status == 200
    assert facts["reweightable"]
    assert [o["name"] for o in facts["objectives"]] == ["buy", "like"]
    assert facts["objectives"][0]["scale"] == "probability"
    assert facts["objectives"][0]["effective_weight"] == default_model.effective_weights["buy"]
    assert facts["context"][1] == {"name": "age", "kind": "text", "values": ["old", "young"]}
    assert facts["points"] == {"sales": {"buy": 3.0, "like": 0.5}}
    assert facts["history"] == []
    status, now = ask(app, "GET", "/v1/status")
    assert (status, now["drift"], now["requests"]) == (200, None, 0)


def test_the_page_itself_needs_no_key_but_its_facts_do(default_model, tmp_path):
    default_model.save(tmp_path / "m")
    app = application(tmp_path / "m", tmp_path / "s", key="secret")
    for path in ("/", "/page.js", "/page.css"):
        assert ask(app, "GET", path)[0] == 200
    for path in ("/v1/model", "/v1/status"):
        assert ask(app, "GET", path)[0] == 401
