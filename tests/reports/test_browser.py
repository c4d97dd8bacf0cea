"""The page in a real browser: Debian's Chromium, driven by its own driver."""

import json
import os
import shutil
from base64 import b64decode
from urllib.parse import urlsplit

import pytest

from harmonrank.reports import write_html, write_pictures

FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--hide-scrollbars",
]
IN_CI = os.environ.get("CI") == "true"


def need_browser():
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing:
        reason = f"{' and '.join(missing)} not found; `make browser` installs Debian's packages."
        pytest.fail(reason) if IN_CI else pytest.skip(reason)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    need_browser()
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    browser = webdriver.Chrome(options=options, service=service)
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def path(facts, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(facts, path)
    return path


@pytest.fixture
def artefacts(pytestconfig):
    folder = pytestconfig.rootpath / "artefacts"
    folder.mkdir(exist_ok=True)
    return folder


def open_page(driver, path, width, scheme="light"):
    """Open the page as a screen of some width and wait until all charts are drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get_log("browser")
    driver.get_log("performance")
    driver.get(path.as_uri())
    ready = "return document.documentElement.dataset.ready === 'true'"
    WebDriverWait(driver, 120).until(lambda d: d.execute_script(ready))


def screenshot(driver, file):
    height = driver.execute_script("return document.documentElement.scrollHeight")
    width = driver.execute_script("return innerWidth")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
    file.write_bytes(b64decode(picture))
    assert file.stat().st_size > 50_000


def requests(driver):
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")], ids=str
)
def test_the_page_draws_without_an_error_or_a_request_and_fits(
    driver, path, artefacts, facts, width, scheme
):
    open_page(driver, path, width, scheme)
    assert driver.get_log("browser") == []
    schemes = {urlsplit(url).scheme for url in requests(driver)}
    assert schemes <= {"file", "data", "blob"}
    drawn = driver.execute_script(
        "return [...document.querySelectorAll('.chart')].map(c => c.querySelectorAll("
        "'.trace, .point, .heatmaplayer image, .hm').length)"
    )
    assert len(drawn) > 25
    assert min(drawn) > 0
    widths = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert widths == [width, width]
    beyond = driver.execute_script(
        "return [...document.querySelectorAll('.plot, .card, .scroll, p, h1, h2, pre')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth).length"
    )
    assert beyond == 0
    screenshot(driver, artefacts / f"report-{width}-{scheme}.png")


def column(driver, number):
    return driver.execute_script(
        f"return [...document.querySelectorAll('#leaderboard table tbody')[0].rows]"
        f".map(r => r.cells[{number}].textContent)"
    )


def test_a_click_on_a_head_sorts_and_another_turns_round(driver, path):
    open_page(driver, path, 1280)
    head = "#leaderboard thead th:nth-child({}) button"
    buy = 6
    before = column(driver, buy - 1)
    driver.find_element("css selector", head.format(buy)).click()
    assert column(driver, buy - 1) == sorted(before, key=float, reverse=True)
    driver.find_element("css selector", head.format(buy)).click()
    assert column(driver, buy - 1) == sorted(before, key=float)
    driver.find_element("css selector", head.format(1)).click()
    assert column(driver, 0) == sorted(column(driver, 0))
    cell = driver.find_element("css selector", "#leaderboard thead th:nth-child(1)")
    assert cell.get_attribute("aria-sort") == "ascending"


def test_a_click_on_the_legend_hides_a_method_in_every_panel(driver, path):
    open_page(driver, path, 1280)
    count = (
        "return [...document.querySelectorAll('#responses .chart')].map(c => "
        "c._fullData.filter(t => t.visible === true).length)"
    )
    assert driver.execute_script(count) == [3] * 5
    chip = driver.find_element("css selector", "#responses .legend button")
    driver.execute_script("arguments[0].click()", chip)
    assert driver.execute_script(count) == [2] * 5
    assert chip.get_attribute("aria-pressed") == "false"


def test_a_change_of_the_colour_scheme_redraws_the_charts(driver, path):
    open_page(driver, path, 1280)
    colour = "return document.querySelector('.chart').layout.font.color"
    light = driver.execute_script(colour)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 60).until(lambda d: d.execute_script(colour) != light)
    assert driver.get_log("browser") == []


def test_where_no_script_runs_the_numbers_stand_in_for_the_charts(driver, path):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(path.as_uri())
        tables = driver.find_elements("css selector", "details[open] table")
        assert len(tables) > 25
        assert not driver.find_element("css selector", ".plots").is_displayed()
        assert "need JavaScript" in driver.find_element("css selector", "noscript").text
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_every_chart_becomes_a_picture(facts, tmp_path):
    need_browser()
    names = write_pictures(facts, tmp_path / "png")
    assert len(names) > 25
    for name in names:
        assert (tmp_path / "png" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    titles = json.loads((tmp_path / "png" / "figures.json").read_text(encoding="utf-8"))
    assert list(titles) == names
