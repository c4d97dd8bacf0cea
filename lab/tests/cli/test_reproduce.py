import json
import subprocess
import sys

import polars as pl
import pytest

SMALL = ("--quick", "--rows", 2000, "--seeds", 2, "--epochs", 1)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def test_tables_add_up_in_a_folder_and_each_says_how_it_was_made(run, out, tmp_path):
    done = run("lab", "reproduce", "buckets", *SMALL, "-o", out, "--json", tmp_path / "n.json")
    assert done.code == 0, done
    assert max(map(len, done.out.splitlines())) <= 80
    assert "Claims of the paper: " in done.out
    # The paper's four choices and our own, of two seeds each.
    assert "[1/10] elive-5 harmonrank-paper " in done.err
    (table,) = json.loads((tmp_path / "n.json").read_text())["tables"]
    assert table["key"] == "buckets"
    assert table["command"].startswith("harmonrank lab reproduce buckets --quick --rows 2000")
    assert str(out) not in table["command"]
    done = run("lab", "reproduce", "relations", *SMALL, "-o", out, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    stored = json.loads((out / "results.json").read_text())
    assert [t["key"] for t in stored["tables"]] == ["buckets", "relations"]
    text = (out / "reproduction.md").read_text()
    assert "## Buckets per score" in text
    assert "## Relations between objectives" in text
    assert (out / "report.html").stat().st_size > 1_000_000


def test_a_killed_run_goes_on_where_it_was(run, out):
    options = ["lab", "reproduce", "relations", *map(str, SMALL), "-o", str(out)]
    with subprocess.Popen(
        [sys.executable, "-m", "harmonrank", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # An experiment is told of after its result is kept.
        told = next((line for line in process.stderr if line.startswith("[2/4]")), None)
        process.kill()
    assert told is not None, "the run ended before it could be killed"
    assert not (out / "results.json").exists()
    again = run(*options)
    assert again.code == 0, again
    assert "[2/4]" not in again.err
    assert "[4/4]" in again.err
    assert " experiments were kept from an earlier run." in again.err
    assert (out / "report.html").exists()


def test_a_folder_of_files_serves_as_data_and_must_have_labels(run, out, folder):
    options = ("lab", "reproduce", "relations", *SMALL, "--data", folder, "-o", out)
    done = run(*options)
    assert done.code == 0, done
    assert "--data" in json.loads((out / "results.json").read_text())["tables"][0]["command"]
    table = pl.read_parquet(folder / "test.parquet")
    table.drop("buy").write_parquet(folder / "test.parquet")
    done = run(*options)
    assert done.code == 2
    assert "test.parquet' has no column 'buy'." in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_the_page_shows_objectives_and_training(run, out):
    done = run("lab", "reproduce", "main", "--data", "elive", *SMALL, "-o", out, "--quiet")
    assert done.code == 0, done
    page = (out / "report.html").read_text(encoding="utf-8")
    for name in ("main-auc-AUC-of-buy", "main-training-gradient"):
        assert f'data-figure="{name}' in page, name
    assert "<dt>seed</dt><dd>0 to 1</dd>" in page


def test_the_markdown_keeps_the_head_of_a_file(run, out, tmp_path):
    page = tmp_path / "page.md"
    run("lab", "reproduce", "relations", *SMALL, "-o", out, "--markdown", page, "--quiet")
    text = page.read_text()
    assert text.startswith("# The paper, made again\n")
    page.write_text(text.replace("# The paper, made again", "# My title\n\nMy words."))
    done = run(
        "lab", "reproduce", "relations", *SMALL, "-o", out, "--markdown", page, "--format", "md"
    )
    assert page.read_text().startswith("# My title\n\nMy words.\n\n<!-- Written by")
    assert page.read_text().count("<!-- Written by") == 1
    assert done.out.strip() in page.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["loses"], "There is no table 'loses'. Did you mean 'losses'?"),
        (["main", "--data", "elife"], "There is no world or folder 'elife'. Did you mean 'elive'?"),
        (["main", "--rows", "5"], "Option 'rows' of reproduce must be a whole number from 1,000."),
        (["main", "--learning-rate", "0"], "0.0 is not in the range x>0"),
        (["main", "--protocol", "best"], "'best' is not one of"),
    ],
)
def test_a_mistake_is_told_before_any_work(run, out, options, message):
    done = run("lab", "reproduce", *options, "-o", out)
    assert done.code == 2
    assert message in done.err
    assert not (out / "results.json").exists()


def test_results_of_something_else_are_not_overwritten(run, out):
    out.mkdir()
    (out / "results.json").write_text('{"mine": 1}')
    done = run("lab", "reproduce", "relations", *SMALL, "-o", out)
    assert done.code == 2
    assert "does not hold results of `harmonrank lab reproduce`" in done.err
    assert (out / "results.json").read_text() == '{"mine": 1}'


@pytest.mark.parametrize("name", ["mine.md", "out/reproduction.md", "out/report.html"])
def test_a_page_of_something_else_is_told_before_any_work(run, out, tmp_path, name):
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_bytes(b"ten years of work \xff")
    done = run(
        "lab", "reproduce", "relations", *SMALL, "-o", out, "--markdown", tmp_path / "mine.md"
    )
    assert done.code == 2
    assert "so it is not overwritten; choose another name" in done.err
    assert mine.read_bytes() == b"ten years of work \xff"
    assert not (out / "results.json").exists()


def test_a_folder_that_cannot_be_written_is_told_first(run, tmp_path):
    (tmp_path / "file").touch()
    done = run("lab", "reproduce", "main", *SMALL, "-o", tmp_path / "file" / "out")
    assert done.code == 2
    assert "cannot be written" in done.err
    assert "[1/" not in done.err
