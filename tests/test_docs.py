"""The docs are true where a test can tell: their code runs, their links lead somewhere."""

import json
import re
import shlex
from importlib import import_module
from pathlib import Path
from shutil import copytree

import click
import pytest

from logs import SCHEMA_TOML, small_table

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n)?```python\n(.*?)```", re.DOTALL)


def blocks(page):
    """Return the Python code of a page that runs here, in order."""
    return [code for left_out, code in BLOCK.findall(page.read_text("utf-8")) if not left_out]


@pytest.fixture(scope="module")
def reader_files(tmp_path_factory):
    """Return a folder with the reader's own log, as the pages name it, and an imported one."""
    from harmonrank.data.log_worlds import KuaiRandWorld
    from harmonrank.data.logs import find_kuairand, import_log
    from harmonrank.evaluation.log_simulation import simulate_log

    folder = tmp_path_factory.mktemp("docs") / "files"
    simulate_log(KuaiRandWorld(50, 30), 600, folder / "raw")
    import_log(find_kuairand(folder / "raw"), folder / "log")
    for seed, name in enumerate(("train", "test")):
        small_table(seed=seed).write_parquet(folder / f"{name}.parquet")
    (folder / "schema.toml").write_text(SCHEMA_TOML, encoding="utf-8")
    return folder


@pytest.fixture
def reader_folder(reader_files, tmp_path, monkeypatch):
    """Go to a fresh copy of these files."""
    copytree(reader_files, tmp_path / "files")
    monkeypatch.chdir(tmp_path / "files")


@pytest.mark.usefixtures("reader_folder")
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda page: page.name)
def test_the_code_of_a_page_runs_in_order(page):
    names = {"__name__": page.stem}
    for code in blocks(page):
        exec(compile(code, page.name, "exec"), names)


def test_few_blocks_are_left_out():
    texts = [page.read_text("utf-8") for page in PAGES]
    assert sum(text.count("<!-- not run: ") for text in texts) <= 2


def test_what_soft_ranks_md_prints_is_true():
    from harmonrank.ranking import rank, soft_rank

    names, (code,) = {}, blocks(ROOT / "docs" / "soft-ranks.md")
    exec(code, names)
    for function, call in ((rank, "rank(scores)"), (soft_rank, "soft_rank(scores, strength=4.0)")):
        (said,) = re.findall(re.escape(call) + r"  # ([\d., ]+)", code)
        found = eval(call, names | {function.__name__: function})
        assert found.tolist() == pytest.approx([float(x) for x in said.split(",")], abs=5e-5)


def commands(page):
    """Yield every call of the program that a page shows, in a block or in its text."""
    text = page.read_text("utf-8")
    for code in re.findall(r"^```(?:sh|bash)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        lines = code.replace("\\\n", " ").splitlines()
        yield from (line.strip() for line in lines if line.strip().startswith("harmonrank "))
    yield from re.findall(r"`(harmonrank [a-z][^`…]+)`", text)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_command_of_a_page_has_its_verb_and_its_options(page):
    for command in commands(page):
        verb = import_module("harmonrank.cli.main").harmonrank
        context = click.Context(verb, **verb.context_settings)
        arguments = shlex.split(command, comments=True)[1:]
        while isinstance(verb, click.Group) and arguments:
            name = arguments.pop(0)
            verb = verb.get_command(context, name)
            assert verb is not None, command
            context = click.Context(verb, parent=context, info_name=name)
        if not isinstance(verb, click.Group):
            verb.make_parser(context).parse_args(arguments)


def test_the_readme_links_every_page_and_names_every_package():
    text = (ROOT / "README.md").read_text("utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert f"docs/{page.name}" in text, page.name
    named = text.partition("Map of the package:")[2].partition("##")[0]
    for package in (ROOT / "src" / "harmonrank").glob("*/__init__.py"):
        assert f"`{package.parent.name}`" in named, package.parent.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_linked_files_exist(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    ("page", "after", "file"),
    [
        ("network.md", "Exact regret on validation rows:", "tuning.json"),
        ("network.md", "([schedule.json]", "schedule.json"),
        ("online.md", "exact lift % |", "online-elive.json"),
        ("prediction.md", "AUC on the test rows:", "prediction.json"),
        ("serving.md", "in milliseconds per request:", "serving_stack.json"),
    ],
)
def test_figures_of_a_table_are_in_the_stored_result(page, after, file):
    text = (ROOT / "docs" / page).read_text("utf-8")
    rows = text.partition(after)[2].lstrip("\n").split("\n\n")
    table = next(part for part in rows if part.lstrip().startswith("|"))
    stored = list(numbers_in(json.loads((ROOT / "benchmarks" / "results" / file).read_text())))
    figures = re.findall(r"[-+]?\d*\.\d{2,}", table)
    assert len(figures) > 4
    for figure in figures:
        near = 0.51 * 10.0 ** -len(figure.partition(".")[2])
        assert any(abs(float(figure) - number) <= near for number in stored), figure


def numbers_in(part):
    """Yield every number of a JSON document, and the mean of numbers that stand together."""
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, list):
        if part and all(isinstance(one, float) for one in part):
            yield sum(part) / len(part)
        for one in part:
            yield from numbers_in(one)
    elif isinstance(part, (int, float)):
        yield part


def test_the_design_page_names_every_package_and_every_layer_in_order():
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    listed = re.search(r"```\n(cli\n.*?)```", text, re.DOTALL)[1].split("\n")
    config = (ROOT / "pyproject.toml").read_text("utf-8")
    layers = re.search(r"^layers = \[(.*?)\]", config, re.DOTALL | re.MULTILINE)[1]
    assert [line for line in listed if line] == re.findall(r'"(.*?)"', layers)
    named = " ".join(re.findall(r"^\| (`.*?) \|", text, re.MULTILINE))
    for line in listed:
        for name in filter(None, line.split(" | ")):
            assert f"`{name}`" in named, name
