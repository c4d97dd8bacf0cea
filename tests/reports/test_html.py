import json
import re
import sys
from dataclasses import replace

import pytest

from harmonrank.evaluation import Entry
from harmonrank.reports import html_page, write_html
from harmonrank.reports.html import plotly_script
from harmonrank.support import DependencyError

pytest.importorskip("plotly")


@pytest.fixture(scope="module")
def page(facts):
    return html_page(facts)


def without_plotly(page):
    return page.replace(plotly_script(), "")


def test_the_page_refers_to_nothing_outside_itself(page):
    own = without_plotly(page)
    assert len(own) < len(page) - 1_000_000
    assert "http:" not in own
    assert "https:" not in own
    assert not re.findall(r"<(?:link|img|iframe)\b|\bsrc=|@import|url\(", own)
    assert all(href.startswith("#") for href in re.findall(r'href="([^"]*)"', own))
    assert "default-src 'none'" in own


def test_plotly_is_inlined_once(page):
    assert page.count(plotly_script()[:200]) == 1


def test_every_chart_has_a_place_and_its_numbers(page):
    own = without_plotly(page)
    figures = json.loads(
        re.search(r"<script type=.application/json. id=figures>(.*?)</script>", own)[1]
    )
    places = re.findall(r'data-figure="([^"]*)"', own)
    assert sorted(places) == sorted(figures)
    assert own.count("<details class=numbers open>") >= 8
    assert own.count("<h3>") == len(places)


def test_command_seed_and_versions_are_told_and_escaped(page, facts):
    assert "harmonrank compare --methods &#39;a,b&#39; &lt;x&gt;" in page
    assert "<dt>seed</dt><dd>7</dd>" in page
    assert facts.run.versions["torch"] in page


def test_words_from_the_data_cannot_become_markup(facts):
    warned = replace(facts.data, warnings=("<script>alert(1)</script>",))
    looked_at = replace(facts, title="</title><b>", focus="<b>'\"focus", data=warned)
    page = without_plotly(html_page(looked_at))
    assert "<script>alert" not in page
    assert "</title><b>" not in page
    assert "The same by context: &lt;b&gt;&#39;&#34;focus" in page
    assert "<b>'" not in page


def test_if_every_method_failed_there_is_still_a_page(facts):
    board = replace(facts.board, entries=(Entry("aucm", 0.1, error="oh no"),))
    bare = replace(
        facts, board=board, methods={}, upstream=(), context_pulls={}, frontier=None, focus=None
    )
    assert "aucm failed: oh no" in html_page(bare)


def test_the_file_holds_the_page_and_replaces_an_older_one(facts, page, tmp_path):
    (tmp_path / "r.html").write_text("<!doctype html>old")
    write_html(facts, tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == page
    assert len(list(tmp_path.iterdir())) == 1


def test_without_plotly_the_extra_is_named(facts, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(DependencyError, match=r"pip install 'harmonrank\[report\]'"):
        html_page(facts)
