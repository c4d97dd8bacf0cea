import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_names_every_method():
    from harmonrank.fusion import METHODS

    for name in METHODS:
        assert f"`{name}`" in README


@pytest.fixture(scope="module")
def results_page():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield import_module("results_page")


def test_stated_figures_are_those_of_stored_results(results_page):
    written = results_page.pages()
    assert {
        ROOT / "README.md",
        ROOT / "docs" / "results.md",
        ROOT / "docs" / "prediction.md",
    } < set(written)
    for page, text in written.items():
        assert text == page.read_text("utf-8"), (
            f"{page.name}: run `python benchmarks/results_page.py`"
        )


# Limits and settings, what a slow test measures, and durations of its own that security.md tells.
NOT_STORED = {
    "design.md": ["494 MB", "391 MB", "47 MB", "178 MB", "111 MB", "61 MB", "12 MB"],
    "export.md": ["64 MB"],
    "logs.md": ["48 MB"],
    "online.md": ["500 times"],
    "prediction.md": ["16 times"],
    "reports.md": ["5 MB"],
    "serving.md": ["16 MB"],
}


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_time_or_size_in_a_sentence_is_computed_from_stored_results(results_page, page):
    from prose import unclaimed

    if page.name not in ("reproduction.md", "results.md", "security.md"):
        assert unclaimed(page) == NOT_STORED.get(page.name, []), "declare it in benchmarks/prose.py"


def test_a_figure_that_was_not_measured_is_seen(results_page):
    from prose import filled

    assert filled("It took\n3.1 s.", "It took {} s", ["2.9"]) == "It took\n2.9 s."
    with pytest.raises(ValueError, match="found 0 times"):
        filled("It took long.", "It took {} s", ["2.9"])


def test_files_that_the_readme_links_to_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
