"""Stored results say what made them, and the tables of all pages are made of them."""

import json
import re
import subprocess
import sys
from importlib import import_module

import pytest

from pages import ROOT

# A time, a size or a ratio that stands in a sentence. Limits and settings are named beside.
MEASURED = re.compile(
    r"(?<![\w.,`-])[\d,]*\.?\d+ (?:ms|ns|µs|s|MB|GB|times|×|rows per second|rows/s)\b"
)
CODE = re.compile(
    r"^```.*?^```|^ {4}[^\n]*|<!-- table.*?<!-- end of table -->", re.DOTALL | re.MULTILINE
)
STATED = {
    "design.md": ["494 MB", "391 MB"],
    "export.md": ["128 MB"],
    "logs.md": ["48 MB"],
    "online.md": ["500 times"],
    "prediction.md": ["16 times"],
    "reports.md": ["5 MB"],
    "serving.md": ["16 MB"],
}
# A figure of two digits or more behind the point: an AUC, a regret, a correlation.
FIGURE = re.compile(r"(?<![\w.,])\d*\.\d{2,}")
NO_SENTENCE = re.compile(r"^\|[^\n]*|`[^`\n]*`", re.MULTILINE)
# What is chosen, not measured: settings, thresholds, versions, parts of a world or an example.
CHOSEN = {
    "default-method.md": ["1.07", ".05", "1.05", ".05"],
    "export.md": ["1.31", "1.30"],
    "network.md": [".002", ".01", ".03", ".003", ".02", ".001", ".001"],
    "online.md": [".63", ".43", ".39"],
    "per-request.md": [".0005"],
    "position.md": [".56"],
    "prediction.md": [".02"],
    "results.md": [".003"],
    "scale.md": ["0.05"],
    "streaming.md": [".002"],
    "tradeoffs.md": [".75", ".002", ".95"],
    "weights.md": [".00095", ".226"],
}
OF_WORLDS = ("worlds.md",)  # how each world was made
OWN_TABLES = ("reproduction.md", "security.md")  # written by other commands


@pytest.fixture(scope="module")
def benchmarks():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield import_module


def test_regret_within_requests_comes_first_where_it_is_stored(benchmarks, monkeypatch):
    tables = benchmarks("tables_of_regret")
    old = {"world": "elive", "rows": 9, "method": "logistic", "regret": 0.02}
    new = {**old, "world": "nested", "regret_within": 0.01}
    other = {**old, "method": "closed-form"}
    monkeypatch.setattr(tables, "read", lambda _: {"results": [old, new, other]})
    assert tables.regret_table("any", ("logistic", "closed-form")).splitlines()[2:] == [
        "| `logistic` | within requests |  | **.0100** | 1 |",
        "| `logistic` | over all rows | **.0200** | **.0200** | 1 |",
        "| `closed-form` | over all rows | **.0200** |  | 1 |",
    ]


def test_a_method_with_an_option_stands_below_the_method(benchmarks, monkeypatch):
    tables = benchmarks("tables_of_regret")
    regrets = {"logistic": 0.02, "harmonrank, all": 0.01, "harmonrank": 0.03}
    rows = [{"world": "elive", "rows": 9, "method": m, "regret": r} for m, r in regrets.items()]
    monkeypatch.setattr(tables, "read", lambda _: {"results": rows})
    shown = [line.split("`")[1] for line in tables.regret_table("any").splitlines()[2:]]
    assert shown == ["logistic", "harmonrank", "harmonrank, all"]


def test_rows_of_another_commit_are_made_again_where_that_is_asked(benchmarks, tmp_path):
    store, path = benchmarks("store"), tmp_path / "rows.json"
    old = [{"world": name, "regret": 0.5, "commit": "another"} for name in ("elive", "conflict")]
    path.write_text(json.dumps({"results": old}))
    assert store.Rows(path).has(world="elive")
    rows = store.Rows(path, again=True)
    assert not rows.has(world="elive")
    rows.add({"world": "elive", "regret": 0.25})
    assert store.Rows(path, again=True).has(world="elive")
    assert [row["regret"] for row in json.loads(path.read_text())["results"]] == [0.5, 0.25]


def test_every_table_is_that_of_a_stored_result(benchmarks):
    written = benchmarks("tables").pages()
    assert {ROOT / "README.md", ROOT / "docs" / "results.md"} < set(written)
    for page, text in written.items():
        assert text == page.read_text("utf-8"), f"{page.name}: run `python benchmarks/tables.py`"


def test_every_table_that_can_be_made_stands_on_a_page(benchmarks):
    texts = [page.read_text("utf-8") for page in benchmarks("tables").pages()]
    asked = {name for text in texts for name in re.findall(r"<!-- table ([\w-]+) -->", text)}
    assert asked == set(benchmarks("store").TABLES)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_time_or_size_stands_in_a_table_and_not_in_a_sentence(page):
    if page.name not in OWN_TABLES:
        text = CODE.sub("", page.read_text("utf-8"))
        assert MEASURED.findall(text) == STATED.get(page.name, [])


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_a_figure_that_was_measured_stands_in_a_table_and_not_in_a_sentence(page):
    if page.name not in OWN_TABLES + OF_WORLDS:
        text = NO_SENTENCE.sub("", CODE.sub("", page.read_text("utf-8")))
        assert FIGURE.findall(text) == CHOSEN.get(page.name, [])


def test_a_measured_figure_in_a_sentence_is_seen():
    assert FIGURE.findall(NO_SENTENCE.sub("", "| .12 |\nof `.34` it is .0157.")) == [".0157"]
    assert MEASURED.findall(CODE.sub("", "It took\n3.1 s.\n\n    4 s\n")) == ["3.1 s"]


def require_history():
    """Skip where git knows nothing of earlier commits: in an archive or a shallow clone."""
    command = ["git", "-C", ROOT, "rev-parse", "--is-shallow-repository"]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.stdout.strip() != "false":
        pytest.skip("not a whole clone")


def test_every_stored_result_names_a_commit_and_its_code(benchmarks):
    require_history()
    stale = benchmarks("stale")
    assert stale.unknown() == []
    missing = {path for paths in stale.SOURCES.values() for path in paths}
    assert [path for path in sorted(missing) if not (ROOT / path).exists()] == []


def test_results_whose_code_has_changed_are_listed():
    require_history()
    command = [sys.executable, ROOT / "benchmarks" / "stale.py"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.search(r"^regret +[0-9a-f]{10}  (\d+|no) files changed since$", said, re.MULTILINE)
