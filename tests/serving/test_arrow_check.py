import io
import random
import struct
from contextlib import suppress

import polars as pl
import pytest

from harmonrank.serving.arrow_check import check_stream
from harmonrank.serving.http import HttpError
from harmonrank.serving.rank_table import _read
from harmonrank.support.errors import DataError

TEXTS = ["", "short", "a text that is longer than twelve bytes", "é" * 20, None]


def stream(frame, **options):
    sink = io.BytesIO()
    frame.write_ipc_stream(sink, **options)
    return sink.getvalue()


@pytest.fixture
def frame():
    return pl.DataFrame(
        {
            "p": [0.1, 0.2, 0.3, 0.4, 0.5],
            "q": pl.Series([1, 2, 3, 4, None], dtype=pl.Int16),
            "b": [True, False, None, True, True],
            "t": TEXTS,
            "n": pl.Series([None] * 5),
        }
    )


@pytest.mark.parametrize("level", [pl.CompatLevel.newest(), pl.CompatLevel.oldest()])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_plain_columns_pass_and_are_read_as_they_were(frame, level, rows):
    raw = stream(frame.head(rows), compat_level=level)
    check_stream(raw, 5)
    assert _read(raw).equals(frame.head(rows))


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_compressed_stream_is_refused_however_small(compression):
    raw = stream(pl.DataFrame({"p": [0.0] * 1_000_000}), compression=compression)
    with pytest.raises(DataError, match="compressed; send it uncompressed"):
        check_stream(raw, 10**7)


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["a", "b"], dtype=pl.Categorical),
        pl.Series([[1], [2]]),
        pl.Series([{"a": 1}, {"a": 2}]),
        pl.Series([b"a", b"b"]),
    ],
)
def test_columns_that_are_neither_numbers_nor_text_are_refused(column):
    with pytest.raises(DataError, match="The body is no Arrow IPC stream"):
        check_stream(stream(pl.DataFrame({"x": column})), 10)


def test_too_many_rows_are_refused_before_they_are_read(frame):
    with pytest.raises(HttpError, match="more rows than are scored at once"):
        check_stream(stream(frame), 4)


@pytest.mark.parametrize("raw", [b"", b"x", b"\xff" * 8, b"\xff\xff\xff\xff\xff\xff\xff\x7f"])
def test_bytes_that_are_no_stream_are_refused(raw):
    with pytest.raises(DataError, match="The body is no Arrow IPC stream"):
        check_stream(raw, 10)


def test_huge_sizes_anywhere_are_refused_or_harmless(frame):
    raw = stream(frame)
    for place in range(0, len(raw) - 8, 4):
        for size in (2**62, -1, 2**31):
            bad = bytearray(raw)
            struct.pack_into("<q", bad, place, size)
            try:
                check_stream(bytes(bad), 10)
            except (DataError, HttpError):
                continue
            with suppress(DataError):
                assert _read(bytes(bad)).height <= 10


def test_whatever_passes_is_read_or_refused_but_ends_no_process(frame):
    raws, rng = (
        [stream(frame), stream(frame, compat_level=pl.CompatLevel.oldest())],
        random.Random(0),
    )
    for _ in range(3000):
        bad = bytearray(rng.choice(raws))
        for _ in range(rng.randint(1, 6)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        try:
            check_stream(bytes(bad), 10)
            _read(bytes(bad))
        except (DataError, HttpError):
            continue
