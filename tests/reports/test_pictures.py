import pytest

from harmonrank.reports import write_pictures
from harmonrank.reports.pictures import find_browser
from harmonrank.support import DependencyError, OutputError

pytest.importorskip("plotly")


def test_without_a_browser_the_remedy_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("HARMONRANK_BROWSER", raising=False)
    with pytest.raises(DependencyError, match="Debian's package chromium"):
        find_browser()


def test_a_browser_of_ones_own_must_exist(monkeypatch):
    monkeypatch.setenv("HARMONRANK_BROWSER", "/no/such/browser")
    with pytest.raises(DependencyError, match="Got '/no/such/browser'"):
        find_browser()


def test_a_browser_that_draws_nothing_leaves_nothing(facts, monkeypatch, tmp_path):
    monkeypatch.setenv("HARMONRANK_BROWSER", "false")
    with pytest.raises(OutputError, match="did not draw the pictures: it said nothing"):
        write_pictures(facts, tmp_path / "png")
    assert list(tmp_path.iterdir()) == []
