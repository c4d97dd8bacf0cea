import importlib.util
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    fences = re.findall(r"^```(\w*)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in fences if name == language]


def commands():
    """Return the lines of shell blocks that call our program, and what is run before them."""
    (simulate,) = re.findall(r"`harmonrank (simulate [^`]+)`", README)
    lines = "\n".join(blocks("")).replace("\\\n", " ").splitlines()
    ours = [line.split("#")[0] for line in lines if line.startswith("harmonrank ")]
    return [simulate, *(line.removeprefix("harmonrank ") for line in ours)]


def test_every_command_and_the_example_run_in_order_from_an_empty_folder(
    run, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    simulate, *rest = commands()
    assert len(rest) == 3
    assert run(*shlex.split(simulate)).code == 0
    (code,) = blocks("python")
    exec(compile(code, "README.md", "exec"), {})
    assert "AUC" in capsys.readouterr().out
    for line in rest:
        done = run(*shlex.split(line))
        assert done.code == 0, done.err
    assert Path("scored.parquet").exists()
    assert Path("compare.html").exists()


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
