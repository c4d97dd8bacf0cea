"""Tables named by URL: those of a web server on loopback, of memory and of this machine."""

import pickle
import subprocess
import sys
from uuid import uuid4

import polars as pl
import pytest

from harmonrank.data import open_table
from harmonrank.data.reading.parquet import count_rows, pieces, read_piece
from harmonrank.data.reading.stores import StoreFile
from harmonrank.data.reading.table_files import TableFiles
from harmonrank.data.reading.tables import column_names, first_rows, grouped_sums
from harmonrank.support.errors import DataError, DependencyError
from harmonrank.support.storage.urls import shown_url, without_secrets
from web_store import web_store

FRAME = pl.DataFrame(
    {
        "a": range(900),
        "b": [x / 8 if x % 7 else None for x in range(900)],
        "c.d": [str(x % 5) for x in range(900)],
    },
    schema_overrides={"a": pl.Int32()},
).with_columns(pl.col("c.d").cast(pl.Categorical()).alias("kind"))
PARTS = 3


def in_parts(folder):
    folder.mkdir(parents=True)
    for part in range(PARTS):
        FRAME.slice(part * 300, 300).write_parquet(
            folder / f"part-{part}.parquet", row_group_size=100
        )
    (folder / "_SUCCESS").touch()
    (folder / "notes.txt").write_text("no table", encoding="utf-8")


@pytest.fixture
def memory(tmp_path):
    """Return the URL of a folder in fsspec's file system in memory."""
    import fsspec

    in_parts(tmp_path / "log")
    name = f"logs-{uuid4().hex}/log"
    system = fsspec.filesystem("memory")
    for file in (tmp_path / "log").iterdir():
        system.pipe_file(f"/{name}/{file.name}", file.read_bytes())
    system.pipe_file(f"/{name}/_temporary/0.parquet", b"not yet complete")
    yield f"memory://{name}"
    system.rm(f"/{name.partition('/')[0]}", recursive=True)


@pytest.mark.parametrize(
    "source",
    [
        "{}",
        "{}/",
        "{}/*.parquet",
        "{}/part-?.parquet",
        "{}*",
        "{0}/part-0.parquet,{0}/part-1.parquet, {0}/part-2.parquet",
    ],
)
def test_a_folder_a_glob_and_commas_are_one_table(memory, tmp_path, source):
    for place in (memory, (tmp_path / "log").as_uri()):
        found = source.format(place)
        assert column_names(found) == FRAME.columns
        assert open_table(found, FRAME.columns).equals(FRAME)
        assert open_table(found, ["b", "a"]).equals(FRAME.select("b", "a"))
        assert first_rows(found, 6)["a"].to_list() == [0, 1, 300, 301, 600, 601]


def test_a_list_may_mix_urls_and_paths(memory, tmp_path):
    mixed = [f"{memory}/part-0.parquet", tmp_path / "log" / "part-1.parquet"]
    assert open_table(mixed, FRAME.columns).equals(FRAME[:600])


def test_rows_types_and_pieces_are_those_of_the_files(memory, tmp_path):
    here, there = TableFiles.of(tmp_path / "log"), TableFiles.of(memory)
    assert there.types() == here.types()
    assert there.bytes == here.bytes
    assert count_rows(there) == 900
    for first, rows in [(0, 100), (50, 100), (99, 2), (250, 500), (300, 5), (0, 0)]:
        for columns in (None, ["kind", "c.d"]):
            want = read_piece(here.paths[0], first, rows, columns)
            assert read_piece(there.paths[0], first, rows, columns).equals(want)
    assert pl.concat(pieces(there, 70)).equals(FRAME)


def test_sums_by_group_are_those_of_the_files(memory, tmp_path):
    def sums(source):
        found = grouped_sums(
            source,
            ["c.d", "a"],
            lambda rows: rows.filter(pl.col("a") > 9).group_by("c.d").agg(pl.col("a").sum()),
            ["c.d"],
        )
        return found.sort("c.d")

    assert sums(memory).equals(sums(tmp_path / "log"))


def test_a_file_travels_as_its_url(memory):
    file = TableFiles.of(f"{memory}/part-1.parquet").paths[0]
    assert file.rows == 300
    assert memory.encode() in pickle.dumps(file)
    assert len(pickle.dumps(file)) < 200  # no footer, no connection
    assert pickle.loads(pickle.dumps(file)) == StoreFile(f"{memory}/part-1.parquet")


def test_a_web_server_sends_the_row_groups_that_are_read_once(tmp_path):
    wide = pl.DataFrame({f"c{n}": pl.Series(range(60_000)).shuffle(n) for n in range(8)})
    wide.write_parquet(tmp_path / "wide.parquet", row_group_size=10_000, compression="uncompressed")
    size = (tmp_path / "wide.parquet").stat().st_size
    with web_store(tmp_path) as store:
        file = TableFiles.of(f"{store.url}/wide.parquet").paths[0]
        assert (file.rows, len(file.types)) == (60_000, 8)
        assert store.sent < 0.05 * size  # the footer
        store.sent = 0
        for first in range(20_000, 30_000, 1_000):  # ten blocks, one row group
            piece = read_piece(file, first, 1_000, ["c1", "c5"])
            assert piece.equals(wide[first : first + 1_000].select("c1", "c5"))
        assert store.sent < size / 6 / 4 * 1.1


def test_a_web_server_that_lists_its_files_is_a_folder(tmp_path):
    in_parts(tmp_path / "log")
    with web_store(tmp_path) as store:
        for source in (f"{store.url}/log/", f"{store.url}/log/*.parquet"):
            assert open_table(source, FRAME.columns).equals(FRAME)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://key:se/c=r+et@logs/2026/a.parquet", "s3://logs/2026/a.parquet"),
        ("s3://logs/user@home/part-?.parquet", "s3://logs/user@home/part-?.parquet"),
        ("https://token@host:8000/a.parquet#part=2", "https://host:8000/a.parquet"),
        ("http://host:8000/a@b/c.parquet?sas", "http://host:8000/a@b/c.parquet"),
        ("az://logs/a.parquet?sv=1&sig=abc", "az://logs/a.parquet"),
    ],
)
def test_what_is_shown_of_a_url_is_no_secret(url, shown):
    assert shown_url(url) == shown
    assert without_secrets(f"--train={url}") == f"--train={shown}"


def refused(source):
    with pytest.raises(DataError) as found:
        open_table(source, ["a"])
    return str(found.value)


def test_what_is_not_there_or_not_allowed_is_said_without_secrets(tmp_path):
    in_parts(tmp_path / "log")
    with web_store(tmp_path, query="signature=s3cret") as store:
        host = store.url.removeprefix("http://")
        url = f"{store.url}/log/part-0.parquet"
        signed = f"{url}?signature=s3cret"
        assert open_table(signed, ["a"]).equals(FRAME[:300].select("a"))
        assert refused(f"http://me:w0rd@{host}/log/part-0.parquet?signature=wr0ng") == (
            f"'{url}' may not be read: its store refuses permission; check the credentials that "
            "it finds in the environment or in its own files."
        )
        lost = refused(f"{store.url}/log/none.parquet?signature=s3cret")
        assert lost == f"There is no file '{store.url}/log/none.parquet'; check its name."
        with pytest.raises(DataError, match="^'http://[^?]*part-0.parquet' has no column 'x'"):
            open_table(signed, ["x"])
    gone = refused(f"http://me:w0rd@{host}/log/part-0.parquet?signature=s3cret")
    assert gone.startswith(f"'{url}' cannot be read as parquet: ")
    assert not any(secret in gone for secret in ("w0rd", "s3cret", "me:"))


def test_a_web_server_without_ranges_is_refused(tmp_path):
    in_parts(tmp_path / "log")
    with web_store(tmp_path, ranges=False) as store:
        assert "range requests" in refused(f"{store.url}/log/part-0.parquet")


def test_what_is_no_parquet_file_is_refused(memory, tmp_path):
    import fsspec

    system, folder = fsspec.filesystem("memory"), memory.removeprefix("memory:/")
    system.pipe_file(f"{folder}/torn/0.parquet", b"PAR1 and no more")
    system.pipe_file(f"{folder}/empty/0.parquet", b"")
    system.pipe_file(f"{folder}/text/0.csv", b"a\n1\n")
    system.pipe_file(f"{folder}/none/readme.md", b"nothing")
    assert "cannot be read as parquet" in refused(f"{memory}/torn")
    assert refused(f"{memory}/empty").endswith("is empty (0 bytes); expected a parquet table.")
    assert refused(f"{memory}/text") == (
        f"Only parquet is read by URL. Got csv ('{memory}/text/0.csv'); copy it to this machine."
    )
    assert "is a folder without a table" in refused(f"{memory}/none")
    assert refused(f"{memory}/nowhere") == (f"There is no file '{memory}/nowhere'; check its name.")
    assert refused(f"{memory}/*.pq") == f"There is no file like '{memory}/*.pq'; check the pattern."


def test_a_store_that_is_not_known_is_refused():
    assert refused("ufo://me:w0rd@bucket/a.parquet") == (
        "'ufo://bucket/a.parquet' is of a protocol that is not known, 'ufo'; expected one of "
        "fsspec, such as s3, gs, az, https or file."
    )
    assert "joins several stores" in refused("simplecache::s3://me:w0rd@bucket/a.parquet")
    assert "is no file of this machine" in refused("file://logs/a.parquet")


def test_a_package_that_is_missing_is_named(monkeypatch):
    import fsspec

    def missing(protocol):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with pytest.raises(DependencyError) as found:
        open_table("s3://bucket/a.parquet", ["a"])
    assert str(found.value) == (
        "'s3://bucket/a.parquet' needs a package of its protocol: Install s3fs to access S3."
    )
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(DependencyError, match=r"pip install 'harmonrank\[stores\]'"):
        open_table("s3://bucket/a.parquet", ["a"])


def test_local_tables_load_no_package_of_stores(tmp_path):
    FRAME.write_parquet(tmp_path / "a.parquet")
    code = f"""
import sys
from harmonrank.data import open_table
open_table({str(tmp_path / "a.parquet")!r}, ["a"])
open_table({(tmp_path / "a.parquet").as_uri()!r}, ["a"])
assert not {{"fsspec", "aiohttp", "pyarrow"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
