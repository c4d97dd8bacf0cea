"""The page in a real browser: Debian's Chromium, driven by its own driver."""

import json
from base64 import b64decode

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from browser import need_browser, open_page, screenshot, show_as
from harmonrank.evaluation import Baseline
from harmonrank.reports import write_html, write_pictures
from harmonrank.reports.sections import sections


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


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_draws_without_an_error_or_a_request_and_fits(driver, seen, path, width, scheme):
    assert seen(path, width, scheme) > 25
    beyond = driver.execute_script(
        "return [...document.querySelectorAll('.plot, .card, .scroll, p, h1, h2, pre')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth).length"
    )
    assert beyond == 0


NAMES = (
    "o<b>{} %{{x}} $a$",
    "is_effective_view_of_at_least_thirty_seconds_{}",
    "like & share '{}'",
)


def odd_page(objectives, path):
    """Write the page of a comparison whose names are long, or look like markup."""
    rng = np.random.default_rng(objectives)
    names = [NAMES[m % 3].format(m) for m in range(objectives)]
    scores = rng.beta(2, 5, (800, objectives))
    labels = (rng.random(scores.shape) < scores).astype(np.uint8)
    columns = {name: labels[:, m] for m, name in enumerate(names)}
    columns |= {f"p {name}": scores[:, m] for m, name in enumerate(names)}
    table = pl.DataFrame(columns | {"<i>": rng.choice(["%{y}", "b&b"], 800)})
    schema = hr.Schema({name: f"p {name}" for name in names}, context=["<i>"])
    # The same ranking, so that a tie is marked far to the right of a wide table.
    today = Baseline(f"p {names[0]}", hr.ClosedForm().fit(table, schema).score(table))
    result = hr.compare(table, schema, ["closed-form"], test=table, baseline=today)
    result.report(path, title="Odd </title> names")
    return result.board


@pytest.mark.parametrize("objectives", [2, pytest.param(7, marks=pytest.mark.slow), 20])
def test_few_or_many_objectives_with_odd_names_fit_every_screen(driver, seen, tmp_path, objectives):
    path = tmp_path / "odd.html"
    board = odd_page(objectives, path)
    for width, scheme in ((1280, "light"), (390, "dark")):
        seen(path, width, scheme)
    assert driver.find_element("css selector", ".verdict").text == board.verdict.sentence
    first = driver.find_element("css selector", "#leaderboard .chart")
    assert first.get_attribute("data-figure") == "difference"
    heads = driver.find_elements("css selector", "#leaderboard thead th[title]")
    assert {head.get_attribute("title") for head in heads} == {
        name for name in board.objectives if len(name) > 28 and " " not in name
    }


def column(driver, number):
    return driver.execute_script(
        f"return [...document.querySelectorAll('#leaderboard table tbody')[0].rows]"
        f".map(r => r.cells[{number}].textContent)"
    )


def test_a_click_on_a_head_sorts_and_another_turns_round(driver, path):
    open_page(driver, path, 1280)
    head = "#leaderboard thead th:nth-child({}) button"
    buy = 5
    # The ceiling has no AUC per objective; what is not known comes last.
    before = [text for text in column(driver, buy - 1) if text]
    driver.find_element("css selector", head.format(buy)).click()
    assert column(driver, buy - 1) == [*sorted(before, key=float, reverse=True), ""]
    driver.find_element("css selector", head.format(buy)).click()
    assert column(driver, buy - 1) == [*sorted(before, key=float), ""]
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


@pytest.fixture
def no_script(driver):
    """Let the driver look at pages whose own scripts do not run."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    yield driver
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width", [1280, 390])
def test_where_no_script_runs_the_numbers_of_every_chart_are_shown(
    no_script, path, artefacts, facts, width
):
    show_as(no_script, width)
    no_script.get(path.as_uri())
    assert "Without JavaScript" in no_script.find_element("css selector", "noscript").text
    assert not any(c.is_displayed() for c in no_script.find_elements("css selector", ".plot"))
    tables = no_script.find_elements("css selector", ".numbers table")
    assert len(tables) == sum(len(part.plots) for part in sections(facts)) > 25
    assert all(table.is_displayed() for table in tables)
    screenshot(no_script, artefacts / f"report-{width}-no-script.png")


def test_paper_shows_charts_in_light_colours_and_their_numbers(driver, path, artefacts):
    open_page(driver, path, 1280, "dark")
    numbers = "return [...document.querySelectorAll('.numbers')].every(d => d.open)"
    assert not driver.execute_script(numbers)
    media = {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    drawn = (
        "const all = [...document.querySelectorAll('.chart')];"
        "return all.every(c => c.layout.font.color === '#4a5465' && c._fullLayout.width <= 660)"
    )
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 60).until(lambda d: d.execute_script(drawn))
    assert driver.execute_script(numbers)
    assert not driver.find_element("css selector", "nav").is_displayed()
    paper = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    (artefacts / "report.pdf").write_bytes(b64decode(paper))
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    WebDriverWait(driver, 60).until(lambda d: not d.execute_script(numbers))
    assert driver.get_log("browser") == []


def test_every_chart_becomes_a_picture(facts, tmp_path):
    need_browser()
    names = write_pictures(facts, tmp_path / "png")
    assert len(names) > 25
    for name in names:
        assert (tmp_path / "png" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    titles = json.loads((tmp_path / "png" / "figures.json").read_text(encoding="utf-8"))
    assert list(titles) == names
