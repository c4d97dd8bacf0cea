import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_names_every_method():
    from harmonrank.methods import METHODS

    for name in METHODS:
        assert f"`{name}`" in README


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_stated_figures_are_those_of_stored_results(page):
    path = ROOT / "benchmarks" / "results_page.py"
    spec = importlib.util.spec_from_file_location("results_page", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (ROOT / page).read_text(encoding="utf-8")
    assert module.pages()[ROOT / page] == text, "run `python benchmarks/results_page.py`"


def test_files_that_the_readme_links_to_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
