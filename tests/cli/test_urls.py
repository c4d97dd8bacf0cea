"""Verbs read tables by URL, to the numbers and the bytes of local files, and write local files."""

import json
from uuid import uuid4

import polars as pl
import pytest

import harmonrank as hr
from harmonrank.engine import LocalEngine
from harmonrank.fusion import score_files
from web_store import bucket_of


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("harmonrank.data.rows.log_blocks.BLOCK_ROWS", 150)
    monkeypatch.setattr("harmonrank.model.fit_rows.BLOCK_ROWS", 150)


@pytest.fixture
def store(folder, monkeypatch):
    """Serve the tables, and the training rows in parts as a bucket."""
    parts = folder / f"parts-{uuid4().hex}"  # Polars keeps what it knows of a bucket
    parts.mkdir()
    for number, part in enumerate(pl.read_parquet(folder / "train.parquet").iter_slices(110)):
        part.write_parquet(parts / f"{number:03d}.parquet", row_group_size=40)
    with bucket_of(parts, monkeypatch) as (_, result):
        result.parts = parts
        yield result


def weights_of(model):
    return (model / "weights.safetensors").read_bytes()


@pytest.mark.parametrize("memory", [("--memory", "1KB"), ()])
@pytest.mark.parametrize("method", ["harmonrank", "closed-form"])
def test_a_fit_by_url_is_the_fit_of_the_files(run, folder, store, memory, method):
    more = ("--schema", folder / "schema.toml", "--method", method, *memory)
    here = run(
        *("fit", "--train", folder / "train.parquet", "--valid", folder / "valid.parquet"),
        *(*more, "-o", folder / "a"),
    )
    there = run(
        *("fit", "--train", f"s3://{store.parts.name}/*.parquet"),
        *("--valid", f"{store.url}/valid.parquet", *more, "-o", folder / "b"),
    )
    assert (here.code, there.code) == (0, 0), there.err
    assert ("in blocks" in there.err) == bool(memory)
    assert weights_of(folder / "a") == weights_of(folder / "b")
    assert any(asked[2] for asked in store.asked), "by ranges"


def test_evaluate_and_compare_give_the_numbers_of_the_files(run, folder, store):
    schema = ("--schema", folder / "schema.toml", "-q", "--json", "-")
    prior = ("--method", "closed-form")
    train = folder / "train.parquet"
    assert run("fit", "--train", train, *prior, *schema[:3], "-o", folder / "m").code == 0

    def numbers(place, *memory):
        rows = ("--train", f"{place}/train.parquet", "--test", f"{place}/test.parquet")
        compared = run("compare", *rows, "--methods", "closed-form", *schema, *memory)
        measured = run("evaluate", folder / "m", f"{place}/test.parquet", *schema[2:], *memory)
        assert (compared.code, measured.code) == (0, 0), (compared, measured)
        both = [json.loads(compared.out), json.loads(measured.out)]
        for result in both[0]["methods"]:
            result.pop("fit_seconds")
        return both

    for memory in ((), ("--memory", "1KB")):
        assert numbers(store.url, *memory) == numbers(folder, *memory)


def test_score_reads_a_url_and_writes_a_file_here(run, folder, store):
    schema = ("--schema", folder / "schema.toml", "--method", "closed-form")
    model = folder / "m"
    assert run("fit", "--train", folder / "train.parquet", *schema, "-o", model).code == 0
    assert run("score", model, store.parts, "-o", folder / "here.parquet").code == 0
    done = run("score", model, f"s3://{store.parts.name}/*.parquet", "-o", folder / "there.parquet")
    assert done.code == 0, done
    assert (folder / "here.parquet").read_bytes() == (folder / "there.parquet").read_bytes()


def test_workers_score_files_of_a_store_each_to_a_file_of_its_name(folder, store):
    model = hr.ClosedForm().fit(folder / "train.parquet", hr.Schema.read(folder / "schema.toml"))
    source = f"s3://{store.parts.name}/*.parquet"
    rows = score_files(LocalEngine(), model, source, folder / "out")
    assert rows == pl.read_parquet(folder / "train.parquet").height
    names = sorted(path.name for path in store.parts.iterdir())
    assert sorted(path.name for path in (folder / "out").glob("*.parquet")) == names
    scored = pl.read_parquet(folder / "out" / "*.parquet")["fused"].to_numpy()
    assert (scored == model.score(folder / "train.parquet")).all()


def test_titles_and_errors_show_no_secret(run, folder, store):
    schema = ("--schema", folder / "schema.toml", "--method", "closed-form")
    assert run("fit", "--train", folder / "train.parquet", *schema, "-o", folder / "m").code == 0
    table = f"{store.url}/test.parquet?signature=s3cret"
    for done in (
        run("evaluate", folder / "m", table, "--report", folder / "page.html"),
        run("init", table, "-o", folder / "guess.toml"),
        run("evaluate", folder / "m", table.replace("test", "none")),
        run("score", folder / "m", table, "-o", folder / "x.parquet", "--column", "p_buy"),
    ):
        assert "s3cret" not in done.out + done.err
    for file in folder.rglob("*.*"):
        assert b"s3cret" not in file.read_bytes()
    assert (folder / "page.html").is_file()


@pytest.mark.parametrize("out", ["s3://me:w0rd@logs/x.parquet", "https://logs.example/x.parquet"])
def test_an_output_is_no_url(run, folder, out):
    schema = ("--schema", folder / "schema.toml", "--method", "closed-form")
    train = folder / "train.parquet"
    for done in (
        run("fit", "--train", train, *schema, "-o", out),
        run("init", train, "-o", out),
    ):
        assert done.code != 0
        assert "is a URL, and outputs are written to this machine" in " ".join(done.err.split())
        assert "w0rd" not in done.err
