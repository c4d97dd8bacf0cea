"""Tables named by URL: those of a web server and a bucket on loopback, and of this machine."""

import pickle
import subprocess
import sys
from uuid import uuid4

import polars as pl
import pytest

from harmonrank.data import open_table
from harmonrank.data.reading import TableFiles, column_names, count_rows, pieces, read_piece
from harmonrank.data.reading.stores import StoreFile
from harmonrank.support import DataError
from harmonrank.support.storage.urls import shown_url, without_secrets
from web_store import bucket_of, web_store

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
def bucket(tmp_path, monkeypatch):
    """Return the URL of a folder in a bucket, and the folder."""
    top = tmp_path / f"bucket-{uuid4().hex}"  # Polars keeps what it knows of a bucket
    in_parts(top / "log")
    with bucket_of(top, monkeypatch) as (url, _):
        yield f"{url}/log", top / "log"


@pytest.mark.parametrize(
    "source",
    [
        "{}",
        "{}/",
        "{}/*.parquet",
        "{}/part-?.parquet",
        "{0}/part-0.parquet,{0}/part-1.parquet, {0}/part-2.parquet",
    ],
)
def test_a_folder_a_glob_and_commas_are_one_table(bucket, source):
    for place in (bucket[0], bucket[1].as_uri()):
        result = source.format(place)
        assert column_names(result) == FRAME.columns
        assert open_table(result, FRAME.columns).equals(FRAME)
        assert open_table(result, ["b", "a"]).equals(FRAME.select("b", "a"))
        assert open_table(result, None, rows=6)["a"].to_list() == [0, 1, 300, 301, 600, 601]


def test_a_list_may_mix_urls_and_paths(bucket):
    mixed = [f"{bucket[0]}/part-0.parquet", bucket[1] / "part-1.parquet"]
    assert open_table(mixed, FRAME.columns).equals(FRAME[:600])


def test_rows_types_and_pieces_are_those_of_the_files(bucket):
    here, there = TableFiles.of(bucket[1]), TableFiles.of(bucket[0])
    assert there.types() == here.types()
    assert count_rows(there) == 900
    for first, rows in [(0, 100), (50, 100), (99, 2), (250, 500), (300, 5), (0, 0)]:
        for columns in (None, ["kind", "c.d"]):
            want = read_piece(here.paths[0], first, rows, columns)
            assert read_piece(there.paths[0], first, rows, columns).equals(want)
    assert pl.concat(pieces(there, 70)).equals(FRAME)


def test_a_file_travels_as_its_url(bucket):
    file = TableFiles.of(f"{bucket[0]}/part-1.parquet").paths[0]
    assert count_rows(file) == len(read_piece(file, 0, 300)) == 300
    assert len(pickle.dumps(file)) < 200  # no rows, no connection
    assert pickle.loads(pickle.dumps(file)) == StoreFile(f"{bucket[0]}/part-1.parquet")


def test_a_web_server_sends_the_row_groups_that_are_read_once(tmp_path):
    wide = pl.DataFrame({f"c{n}": pl.Series(range(60_000)).shuffle(n) for n in range(8)})
    wide.write_parquet(tmp_path / "wide.parquet", row_group_size=10_000, compression="uncompressed")
    size = (tmp_path / "wide.parquet").stat().st_size
    with web_store(tmp_path) as store:
        file = TableFiles.of(f"{store.url}/wide.parquet").paths[0]
        assert count_rows(file) == 60_000
        assert store.sent < 0.1 * size  # the footer
        store.sent = 0
        for first in range(20_000, 30_000, 1_000):  # ten blocks
            piece = read_piece(file, first, 1_000, ["c1", "c5"])
            assert piece.equals(wide[first : first + 1_000].select("c1", "c5"))
        assert store.sent < size  # two of eight columns, and the footer ten times


def test_a_web_server_lists_no_files(tmp_path):
    in_parts(tmp_path / "log")
    with web_store(tmp_path) as store:
        for source in (f"{store.url}/log/", f"{store.url}/log/*.parquet"):
            assert "a web server does not list its files" in refused(source)


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
    with pytest.raises(DataError) as result:
        open_table(source, ["a"])
    return str(result.value)


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
        assert "Range request not supported" in refused(f"{store.url}/log/part-0.parquet")


def test_what_is_no_parquet_file_is_refused(bucket):
    url, folder = bucket
    for name in ("torn", "none", "text"):
        (folder / name).mkdir()
    (folder / "torn" / "0.parquet").write_bytes(b"PAR1 and no more")
    (folder / "none" / "readme.md").write_bytes(b"nothing")
    assert "cannot be read as parquet" in refused(f"{url}/torn/0.parquet")
    assert refused(f"{url}/text/0.csv") == (
        f"Only parquet is read by URL. Got csv ('{url}/text/0.csv'); copy it to this machine."
    )
    assert "is a folder without a table" in refused(f"{url}/none")
    assert refused(f"{url}/x.parquet") == f"There is no file '{url}/x.parquet'; check its name."
    assert refused(f"{url}/*.pq") == f"There is no file like '{url}/*.pq'; check the pattern."


def test_a_store_that_is_not_known_is_refused():
    assert refused("ufo://me:w0rd@bucket/a.parquet") == (
        "'ufo://bucket/a.parquet' is of a protocol that is not known, 'ufo'; expected s3, gs, az, "
        "hf, https or file."
    )
    assert "is no file of this machine" in refused("file://logs/a.parquet")


def test_tables_load_no_package_of_stores(tmp_path):
    FRAME.write_parquet(tmp_path / "a.parquet")
    code = f"""
import sys
from harmonrank.data import open_table
open_table({str(tmp_path / "a.parquet")!r}, ["a"])
open_table({(tmp_path / "a.parquet").as_uri()!r}, ["a"])
assert not {{"fsspec", "aiohttp", "pyarrow"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
