"""The docs are true where a test can tell: their code runs, their links lead somewhere."""

import json
import re
import shlex
import sys
import tomllib
from dataclasses import replace
from importlib import import_module
from pkgutil import resolve_name
from shutil import copytree

import click
import pytest

import harmonrank as hr
from check_method import SCHEMA, planted
from harmonrank.fusion import METHODS
from pages import PAGES, README, ROOT, TOO_LONG, Reader, blocks, commands
from tally import table_rows

TRIED = [page for page in PAGES if page.name not in TOO_LONG and blocks(page)]


@pytest.fixture(scope="module")
def reader_files(tmp_path_factory):
    """Return what the README's code makes of an empty folder."""
    folder = tmp_path_factory.mktemp("docs") / "files"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch, Reader() as reader:
        patch.chdir(folder)
        reader.try_page(README)
    return folder


@pytest.fixture
def reader_folder(reader_files, tmp_path, monkeypatch):
    """Go to a fresh copy of these files."""
    copytree(reader_files, tmp_path / "files")
    monkeypatch.chdir(tmp_path / "files")


def test_the_code_of_the_readme_runs_in_order_from_an_empty_folder(reader_files):
    made = {path.name for path in reader_files.iterdir()}
    assert made == {"log", "model", "fitted", "scored.parquet", "compare.html"}


@pytest.mark.usefixtures("reader_folder")
@pytest.mark.parametrize("page", TRIED, ids=lambda page: page.name)
def test_the_code_of_a_page_runs_in_order_after_that_of_the_readme(page):
    with Reader() as reader:
        reader.try_page(page)


@pytest.mark.slow
@pytest.mark.usefixtures("reader_folder")
@pytest.mark.parametrize(
    "page",
    [page for page in TRIED if any(block.mark == "slow" for block in blocks(page))],
    ids=lambda page: page.name,
)
def test_the_slow_code_of_a_page_runs_in_order_with_the_rest(page):
    with Reader() as reader:
        reader.try_page(page, marks=("", "slow"))


def test_few_blocks_are_left_out():
    marked = [b for page in [README, *TRIED] for b in blocks(page) if b.mark == "not run"]
    assert len(marked) <= 5


def test_settings_that_a_page_shows_can_be_read():
    shown = [block.code for page in PAGES for block in blocks(page, ["toml"])]
    assert shown
    for text in shown:
        tomllib.loads(text)


def test_what_soft_ranks_md_prints_is_true():
    from harmonrank.metrics import rank
    from harmonrank.paper.soft_rank import soft_rank

    names, (block,) = {}, blocks(ROOT / "docs" / "soft-ranks.md", ["python"])
    code = block.code
    exec(code, names)
    for function, call in ((rank, "rank(scores)"), (soft_rank, "soft_rank(scores, strength=4.0)")):
        (said,) = re.findall(re.escape(call) + r"  # ([\d., ]+)", code)
        result = eval(call, names | {function.__name__: function})
        assert result.tolist() == pytest.approx([float(x) for x in said.split(",")], abs=5e-5)


def shown_commands(page):
    """Yield every call of the program that a page shows, in a block or in its text."""
    for block in blocks(page, ["sh"]):
        yield from (words for words in commands(block.code) if words[0] == "harmonrank")
    for text in re.findall(r"`(harmonrank [a-z][^`…]+)`", page.read_text("utf-8")):
        yield shlex.split(text, comments=True)


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: page.name)
def test_every_command_of_a_page_has_its_verb_and_its_options(page):
    for _, *arguments in shown_commands(page):
        verb = import_module("harmonrank.cli.main").harmonrank
        context = click.Context(verb, **verb.context_settings)
        while isinstance(verb, click.Group) and arguments:
            name = arguments.pop(0)
            verb = verb.get_command(context, name)
            assert verb is not None, name
            context = click.Context(verb, parent=context, info_name=name)
        if not isinstance(verb, click.Group):
            verb.make_parser(context).parse_args(arguments)


def test_the_readme_links_every_page_and_names_every_package():
    text = README.read_text("utf-8")
    for page in PAGES:
        assert f"docs/{page.name}" in text, page.name
    named = text.partition("Map of the package:")[2].partition("##")[0]
    for package in (ROOT / "src" / "harmonrank").glob("*/__init__.py"):
        assert f"`{package.parent.name}`" in named, package.parent.name
    for method in METHODS:
        assert f"`{method}`" in text


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: page.name)
def test_linked_files_exist(page):
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), target


SOURCES = [
    f"/{path.relative_to(ROOT).as_posix()}"
    for folder in ("src", "lab", "tests", "examples", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
]


@pytest.mark.parametrize("page", [*PAGES, README], ids=lambda page: page.name)
def test_every_file_of_code_that_a_page_names_is_there(page):
    for name in re.findall(r"`([\w./-]+\.py)`", page.read_text("utf-8")):
        assert any(path.endswith(f"/{name}") for path in SOURCES), name


@pytest.mark.parametrize(
    ("page", "before", "file"),
    [
        ("default-method.md", "Regret after 50,000 rows:", "missing.json"),
        ("objectives.md", "Regret after 50,000 training rows:", "kinds.json"),
        ("tradeoffs.md", "(`python benchmarks/frontier.py`", "frontier.json"),
        ("position.md", "Regret after 100,000 rows shown:", "position.json"),
    ],
)
def test_regrets_of_a_table_are_in_the_stored_result(page, before, file):
    text = (ROOT / "docs" / page).read_text("utf-8")
    table = text.partition(before)[2].split("\n\n")[1]
    result = ROOT / "benchmarks" / "results" / file
    stored = list(numbers_in(json.loads(result.read_text("utf-8"))))
    figures = re.findall(r"\d*\.\d{4}", table)
    assert len(figures) > 4
    for figure in figures:
        assert any(abs(float(figure) - number) <= 0.51e-4 for number in stored), figure


def test_coverage_and_rank_correlation_are_those_of_the_stored_runs():
    text = (ROOT / "docs" / "position.md").read_text("utf-8")
    result = json.loads((ROOT / "benchmarks" / "results" / "offline.json").read_text("utf-8"))
    for one in result["coverage"]:
        parts = ("robust", "snips", "robust_lift", "snips_lift")
        least = [min(one["covered"][part].values()) for part in parts]
        row = [one["platform"], one["curve"], *map(str, least)]
        assert rf"| {' | '.join(row)} |" in text.replace("`", "")
    row = re.search(r"^\| Spearman's correlation (.*)$", text, re.MULTILINE)[1]
    figures = [float(figure) for figure in re.findall(r"\.\d+", row)]
    assert figures == [round(value, 2) for value in result["rank_correlation"]["spearman"].values()]


def test_what_was_tried_on_the_security_page_is_of_the_stored_run():
    result = json.loads((ROOT / "benchmarks" / "results" / "torture.json").read_text("utf-8"))
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    for row in table_rows(result):
        assert row in page, "run `python tests/helpers/tally.py benchmarks/results/torture.json`"


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


EQUATION = re.compile(r"^ {4}.*\((\d+)\)$", re.MULTILINE)
CITED = re.compile(r"\beqs?\. ([\d, and.eq]+?) of docs/([\w-]+\.md)")


def cited_equations():
    """Return the numbers of the equations of each page that the code cites."""
    cited = {}
    for path in (ROOT / "src").rglob("*.py"):
        text = re.sub(r"\n\s*(# )?", " ", path.read_text("utf-8"))
        for numbers, page in CITED.findall(text):
            cited.setdefault(page, set()).update(map(int, re.findall(r"\d+", numbers)))
    return cited


@pytest.mark.parametrize(
    "page",
    [
        "default-method.md",
        "kernels.md",
        "network.md",
        "objectives.md",
        "per-request.md",
        "position.md",
        "soft-ranks.md",
    ],
)
def test_equations_are_numbered_in_order_and_cited_by_the_code(page):
    numbers = [int(n) for n in EQUATION.findall((ROOT / "docs" / page).read_text("utf-8"))]
    assert numbers == list(range(1, len(numbers) + 1))
    assert cited_equations()[page] == set(numbers)


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


def walks():
    """Return the stops of a fit and of a request that the design page lists, in order."""
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    for part in text.split("stop by stop\n")[1:]:
        yield re.findall(r"^\| \d+ \| `([\w.]+)`", part.split("## ")[0], re.MULTILINE)


def stop_of(name):
    """Return what a stop names: a function, a method or a class."""
    parts = name.split(".")
    size = next(n for n, part in enumerate(parts) if part[0].isupper() or n == len(parts) - 1)
    place = import_module("harmonrank." + ".".join(parts[:size]))
    for part in parts[size:]:
        place = getattr(place, part)
    return place


def code_of(name):
    """Return the code of a stop; None of a compiled loop, which leaves no trace."""
    stop = stop_of(name)
    if hasattr(stop, "py_func"):
        return None
    return (stop.__init__ if isinstance(stop, type) else stop).__code__


def codes_called(call):
    """Return what a call gives, and the code of every function that it enters, in order."""
    entered = []
    sys.setprofile(lambda frame, event, _: event == "call" and entered.append(frame.f_code))
    try:
        return call(), entered
    finally:
        sys.setprofile(None)


def test_a_fit_and_a_request_stop_where_the_walks_say():
    fit, request = walks()
    assert 8 < len(fit) <= 25
    assert 8 < len(request) <= 12
    model, of_fit = codes_called(lambda: hr.HarmonRank().fit(planted(), SCHEMA))
    given = [[0.1, 0.2]] * 3, {"hour": 1, "age": "b"}
    _, of_request = codes_called(lambda: model.score_request(*given))
    for stops, entered in ((fit, of_fit), (request, of_request)):
        left = iter(entered)
        for stop in stops:
            code = code_of(stop)
            assert code is None or code in left, stop


def test_a_fit_of_a_log_in_the_order_of_its_times_has_the_stop_that_is_said():
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    before, after, stop = re.search(r"between (\d+) and (\d+):\s`([\w.]+)`", text).groups()
    fit, _ = walks()
    log = planted().with_row_index("shown_at")
    schema = replace(SCHEMA, time="shown_at")
    _, entered = codes_called(lambda: hr.HarmonRank().fit(log, schema))
    order = [code_of(name) for name in (fit[int(before) - 1], stop, fit[int(after) - 1])]
    positions = [entered.index(code) for code in order]
    assert positions == sorted(positions)


CHANGELOG = ROOT / "CHANGELOG.md"


def said_of_today():
    """Return the changelog without its tables of what moved and what went."""
    text = CHANGELOG.read_text("utf-8")
    return re.sub(r"^### (Moved|Removed)$.*?(?=^### |\Z)", "", text, flags=re.DOTALL | re.MULTILINE)


def test_every_name_of_python_that_the_changelog_mentions_is_there():
    names = set(re.findall(r"\bharmonrank(?:_lab)?(?:\.\w+)+", said_of_today()))
    names |= {f"harmonrank.{name}" for name in re.findall(r"\bhr\.(\w+)", said_of_today())}
    assert names
    for name in names:
        assert resolve_name(name) is not None, name


def test_every_verb_that_the_changelog_mentions_is_there():
    calls = re.findall(r"`harmonrank((?: [a-z]+)+)", said_of_today())
    assert calls
    for call in calls:
        verb = import_module("harmonrank.cli.main").harmonrank
        for name in call.split():
            if not isinstance(verb, click.Group):
                break
            verb = verb.get_command(click.Context(verb), name)
            assert verb is not None, call


def test_what_the_changelog_lists_as_moved_or_removed_is_gone():
    text = CHANGELOG.read_text("utf-8")
    assert {"### Moved", "### Removed"} <= set(text.splitlines())
    for module in re.findall(r"^\| `(harmonrank(?:\.\w+)+)`(?:,| \|)", text, re.MULTILINE):
        with pytest.raises((ImportError, AttributeError)):
            resolve_name(module)
