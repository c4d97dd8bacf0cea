from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from harmonrank.data import Schema, read_log
from harmonrank.data.rows.blocks import SpilledBlocks, drawn_rows
from harmonrank.data.rows.log_blocks import FileBlocks
from harmonrank.support import DataError

SCHEMA = Schema({"buy": "p_buy"}, context=["hour"], sample_weight="w")


def table(rows=1_000, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "p_buy": rng.random(rows).astype(np.float32),
            "buy": rng.integers(0, 2, rows),
            "hour": rng.integers(0, 24, rows),
            "w": rng.random(rows),
        }
    )


def parts(log):
    return log.scores, log.labels, log.sample_weight, log.context["hour"].to_numpy()


@pytest.mark.parametrize("size", [1, 130, 999, 1_000, 5_000])
def test_blocks_of_many_files_are_the_rows_of_the_table(tmp_path, size):
    whole = table()
    for number, first in enumerate([0, 0, 400, 401, 900]):  # one has no rows
        end = [0, 400, 401, 900, 1_000][number]
        whole.slice(first, end - first).write_parquet(tmp_path / f"{number}.parquet")
    blocks = FileBlocks(tmp_path, SCHEMA, size=size)
    assert (blocks.rows, len(blocks)) == (1_000, -(-1_000 // size))
    result = list(blocks.each(parts))
    expected = parts(read_log(whole, SCHEMA))
    for array, pieces in zip(expected, zip(*result, strict=True), strict=True):
        np.testing.assert_array_equal(np.concatenate(pieces), array)
    assert all(len(piece[0]) == size for piece in result[:-1])


def test_errors_name_the_row_of_the_table(tmp_path):
    path = tmp_path / "log.parquet"
    table().with_columns(
        buy=pl.when(pl.int_range(pl.len()) == 777).then(2).otherwise("buy")
    ).write_parquet(path)
    with pytest.raises(DataError, match="Got 2 in row 777 "):
        list(FileBlocks(path, SCHEMA, size=100).each(parts))


def test_what_cannot_be_read_in_blocks_is_refused_before_any_row_is_read(tmp_path):
    table(10).write_csv(tmp_path / "log.csv")
    table(10).drop("hour").write_parquet(tmp_path / "lacking.parquet")
    table(10).head(0).write_parquet(tmp_path / "empty.parquet")
    for name, sentence in (
        ("log.csv", "Only parquet is read in blocks"),
        ("lacking.parquet", "no column 'hour'"),
        ("empty.parquet", "has no rows"),
    ):
        with pytest.raises(DataError, match=sentence):
            FileBlocks(tmp_path / name, SCHEMA)


@dataclass(frozen=True)
class Some:
    number: int
    small: np.ndarray
    large: np.ndarray
    turned: np.ndarray


def doubled(block):
    return Some(block.number, 2 * block.small, 2 * block.large, 2 * block.turned)


def test_spilled_blocks_come_back_as_they_were(tmp_path):
    rng = np.random.default_rng(0)
    given = [
        Some(n, rng.random(3), rng.random((500, n)), rng.random((n + 1, 900)).astype(np.float32).T)
        for n in range(4)
    ]
    blocks = SpilledBlocks(given, tmp_path)
    for before, after in zip(
        map(doubled, given), blocks.made(doubled).each(lambda b: b), strict=True
    ):
        assert before.number == after.number
        for name in ("small", "large", "turned"):
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert not list(tmp_path.iterdir())


def test_drawn_rows_are_the_same_each_time():
    some = drawn_rows(1_000, 50)
    assert len(np.unique(some)) == 50
    np.testing.assert_array_equal(some, drawn_rows(1_000, 50))
    np.testing.assert_array_equal(drawn_rows(9, 10), np.arange(9))
