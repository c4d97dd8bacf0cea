import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_names_every_method():
    from harmonrank.fusion import METHODS

    for name in METHODS:
        assert f"`{name}`" in README


def test_files_that_the_readme_links_to_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
