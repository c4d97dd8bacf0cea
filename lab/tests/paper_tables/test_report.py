"""Made-again tables as text, Markdown and a page in a real browser."""

import pytest
from rich.console import Console

from browser import need_browser, open_page, requests, screenshot
from harmonrank.reports import run_of
from harmonrank_lab.paper_tables import Estimate, PaperTable, Row, Verdict
from harmonrank_lab.paper_tables.report import (
    add_results,
    reproduction_markdown,
    reproduction_page,
    reproduction_sections,
    reproduction_tables,
    write_reproduction,
)

OBJECTIVES = ("buy", "like", "follow")


def estimate(mean, reach=0.01):
    return Estimate(mean, mean - reach, mean + reach, 3)


def some_table(key="main", **changes):
    rows = (
        Row("3 objectives", "MBCE", "AUC-sum", 2.1555, estimate(2.10), estimate(0.12)),
        Row("3 objectives", "HarmonRank (paper)", "AUC-sum", 2.2191, estimate(2.2), estimate(0.02)),
        Row("3 objectives", "harmonrank (ours)", "AUC-sum", None, estimate(2.21), estimate(0.01)),
        Row("3 objectives", "best possible", "AUC-sum", None, estimate(2.22)),
    )
    verdicts = (
        Verdict("HarmonRank beats MBCE", "paper", "held", "AUC-sum", 0.0636, estimate(0.1)),
        Verdict("a gate helps", "paper", "did not hold", "AUC-sum", 0.01, estimate(-0.1)),
        Verdict("ours beats it", "ours", "cannot be told", "%", None, estimate(0.001)),
    )
    parts = {
        "title": "AUC-sum by way to fuse",
        "data": "simulated world ‘elive’ in place of the private Kuaishou-ELive, 1,000 rows",
        "settings": "tuned protocol: networks by Adam; 3 seeds",
        "command": "harmonrank lab reproduce main --quick",
        "objectives": OBJECTIVES,
        "rows": rows,
        "verdicts": verdicts,
        "notes": ("A note.",),
    }
    return PaperTable(key=key, **{**parts, **changes})


@pytest.fixture(scope="module")
def tables():
    square = [[1.0, 0.2, -0.1], [0.2, 1.0, 0.3], [-0.1, 0.3, 1.0]]
    front = {"MBCE": [[0.6, 0.7], [0.7, 0.6]], "best possible": [[0.65, 0.75], [0.75, 0.65]]}
    timed = (
        Row("batches", "MBCE", "rows/s", 27_400.0, estimate(2.2e6, 1e5)),
        Row("batches", "AUCM", "rows/s", 26_900.0, estimate(1.9e6, 1e5)),
    )
    broken = Row("3 objectives", "AUCM", "AUC-sum", 3.7412, None, None, "The loss became nan.")
    return (
        some_table(),
        some_table(settings="paper protocol: networks by SGD; 3 seeds"),
        some_table("losses", title="Losses for AUC", rows=(*some_table().rows, broken)),
        some_table("training-speed", title="Training speed", rows=timed),
        some_table("pareto", title="Trade-offs", curves={"buy – like": front}),
        some_table(
            "relations", title="Relations", matrices={"labels": square, "attention": square}
        ),
    )


def printed(tables):
    console = Console(width=80, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(reproduction_tables(tables))
    return capture.get()


def test_the_terminal_shows_both_figures_the_regret_and_a_sentence_per_claim(tables):
    text = printed(tables)
    assert max(map(len, text.splitlines())) <= 80
    assert "MBCE                2.1555  2.1000 ± 0.0100  0.1200 ± 0.0100" in text
    assert "Held: HarmonRank beats MBCE (paper +0.0636, here +0.1000 ± 0.0100)." in text
    assert "Did not hold: a gate helps (paper +0.0100, here −0.1000 ± 0.0100)." in text
    assert "AUCM: The loss became nan." in text
    assert "Claims of the paper: 6 held, 6 did not hold, 0 cannot be told." in text
    assert "27,400  2,200,000 ± 100,000" in text


def test_markdown_states_data_settings_and_command_of_each_table(tables):
    text = reproduction_markdown(tables, run_of("x"))
    assert text.count("Data: simulated world ‘elive’ in place of the private Kuaishou-ELive,") == 6
    assert "Settings: paper protocol: networks by SGD; 3 seeds." in text
    assert "Command: `harmonrank lab reproduce main --quick`." in text
    assert "| MBCE | 2.1555 | 2.1000 ± 0.0100 | 0.1200 ± 0.0100 |" in text
    assert "| AUCM | 3.7412 | failed |" in text
    assert "**AUCM: The loss became nan.**" in text
    assert (
        "- Cannot be told: ours beats it (here +0.00 ± 0.01 %). *(not a claim of the paper)*"
        in text
    )
    assert "| **all claims of the paper** | **6** | **6** | **0** |" in text
    assert "| buy | 1.000 | 0.200 | −0.100 |" in text


def test_a_table_made_again_takes_the_place_of_the_old_one_only(tables, tmp_path):
    write_reproduction(tmp_path, tables, run_of("x"), page=False)
    again = some_table(notes=("New.",))
    merged = add_results(tmp_path, [again])
    assert len(merged) == len(tables)
    assert [t.key for t in merged][:2] == ["main", "main"]
    assert sum(table == again for table in merged) == 1
    assert not (tmp_path / "report.html").exists()


def test_sections_have_names_of_their_own_and_charts(tables):
    parts = reproduction_sections(tables)
    assert [part.key for part in parts] == [
        "verdicts", "main", "main-2", "losses", "training-speed", "pareto", "relations",
    ]  # fmt: skip
    names = [plot.name for part in parts for plot in part.plots]
    assert len(names) == len(set(names)) == 7


@pytest.fixture(scope="module")
def path(tables, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(reproduction_page(tables, run_of("harmonrank lab reproduce")), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_draws_in_a_browser_without_an_error_or_a_request(
    driver, path, pytestconfig, width
):  # fmt: skip
    open_page(driver, path, width)
    assert driver.get_log("browser") == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requests(driver))
    drawn = driver.execute_script(
        "return [...document.querySelectorAll('.chart')].map(c => c.querySelectorAll("
        "'.trace, .point, .heatmaplayer image, .hm').length)"
    )
    assert len(drawn) == 7
    assert min(drawn) > 0
    widths = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert widths == [width, width]
    folder = pytestconfig.rootpath / "artefacts"
    folder.mkdir(exist_ok=True)
    screenshot(driver, folder / f"reproduction-{width}.png")


def test_every_chart_becomes_a_picture(tables, tmp_path):
    need_browser()
    folder = tmp_path / "png"
    written = write_reproduction(tmp_path, tables, run_of("x"), page=False, figures=folder)
    assert written[-1] == folder
    assert len(list(folder.glob("*.png"))) == 7
