import numpy as np
import polars as pl
import pytest

from browser import browsing, open_page, requests
from harmonrank.reports import run_of
from harmonrank_lab.experiments.ab import analyse
from harmonrank_lab.experiments.ab_report import ab_page, ab_table


@pytest.fixture(scope="module")
def analysis():
    rng = np.random.default_rng(0)
    user = rng.integers(0, 600, 12_000)
    columns = {"user_id": user, "arm": np.array(["base", "new <b>"])[user % 2]}
    log = pl.DataFrame(columns | {"buy": rng.integers(0, 2, 12_000), "never": np.zeros(12_000)})
    crossed = log.head(1).with_columns(arm=pl.lit("base"), user_id=pl.lit(1, pl.Int64))
    return analyse(pl.concat([log, crossed]), outcomes=["buy", "never"])


def test_what_was_left_out_and_what_has_no_lift_is_said(analysis):
    text = ab_table(analysis).to_markdown()
    assert "1 users were seen in two arms" in text
    assert "| new <b> | never | 0 | 0 | – | – … – | – | – | – | unclear |" in text


def test_the_page_escapes_names_and_warns_of_what_was_left_out(analysis):
    page = ab_page(analysis, run_of("harmonrank lab ab analyse log.parquet"))
    body = page[page.index("<body>") : page.index("id=figures")]
    assert "new &lt;b&gt;" in body
    assert "<b>" not in body.replace("<b>", "", body.count("<div class=card>"))
    assert "seen in two arms" in body


def test_the_page_draws_without_an_error_or_a_request_and_fits(analysis, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(ab_page(analysis, run_of("harmonrank lab ab analyse")), encoding="utf-8")
    with browsing(tmp_path / "profile") as driver:
        for width in (1200, 390):
            open_page(driver, path, width)
            assert driver.get_log("browser") == []
            assert all(url.startswith(("file:", "data:", "blob:")) for url in requests(driver))
            assert driver.execute_script("return document.querySelectorAll('.main-svg').length")
            wide = "return document.documentElement.scrollWidth"
            assert driver.execute_script(wide) <= width
