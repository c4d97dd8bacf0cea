import gzip

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from harmonrank.data import open_table
from harmonrank.data.reading import column_names
from harmonrank.support import DataError

FRAME = pl.DataFrame({"a": [0.5, 0.25, 1.0], "b": [1, 0, 1], "c": ["x", None, "z"]})


def written(folder, kind):
    path = folder / f"table.{kind}"
    if kind in ("parquet", "pq"):
        FRAME.write_parquet(path)
    elif kind == "csv":
        FRAME.write_csv(path)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(FRAME.write_csv().encode()))
    else:
        FRAME.write_ipc(path)
    return path


KINDS = ["parquet", "pq", "csv", "csv.gz", "arrow", "feather", "ipc"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_same_table(tmp_path, kind):
    path = written(tmp_path, kind)
    assert column_names(path) == ["a", "b", "c"]
    assert open_table(path, ["c", "a", "b"]).select("a", "b", "c").equals(FRAME)
    assert open_table(str(path), ["b"]).columns == ["b"]


@pytest.mark.parametrize(
    "convert",
    [
        lambda f: f,
        lambda f: f.lazy(),
        lambda f: f.to_pandas(),
        lambda f: f.to_arrow(),
        lambda f: f.to_arrow().to_batches()[0],
    ],
    ids=["polars", "lazy", "pandas", "pyarrow", "record batch"],
)
def test_every_kind_of_frame_gives_the_same_table(convert):
    assert open_table(convert(FRAME), ["a", "b", "c"]).equals(FRAME)


def test_a_subclass_of_a_pandas_frame_is_a_pandas_frame():
    class Frame(pd.DataFrame):
        pass

    assert open_table(Frame({"a": [1]}), ["a"])["a"].to_list() == [1]


def test_pandas_columns_may_be_named_by_numbers_and_any_index_is_ignored():
    frame = pd.DataFrame([[1, 2], [3, 4]], index=[7, 7])
    assert open_table(frame, ["1"])["1"].to_list() == [2, 4]


def test_all_rows_of_a_csv_decide_the_type_of_a_column(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("a\n" + "0\n" * 150_000 + "0.5\n")
    assert open_table(path, ["a"])["a"][-1] == 0.5


def test_an_unnamed_column_keeps_its_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,,b\n1,2,3\n")
    frame = open_table(path, column_names(path))
    assert frame.columns == ["a", "", "b"]
    assert open_table(frame, ["b", ""]).rows() == [(3, 2)]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    assert column_names(path) == ["a", "b"]
    assert open_table(path, ["a"])["a"].to_list() == [1]


def test_a_missing_column_is_answered_with_the_nearest_name(tmp_path):
    frame = FRAME.rename({"a": "p_buy"})
    with pytest.raises(DataError, match="The table has no column 'p_bui'. Did you mean 'p_buy'?"):
        open_table(frame, ["p_bui"])
    path = tmp_path / "t.parquet"
    frame.write_parquet(path)
    with pytest.raises(DataError, match=r"t.parquet' has no column 'zzz'. Known: p_buy, b, c"):
        open_table(path, ["zzz"])


def test_an_unknown_ending_lists_the_known_ones(tmp_path):
    with pytest.raises(DataError, match=r"has no known ending; expected one of .parquet, .pq"):
        open_table(tmp_path / "t.xlsx", ["a"])


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_file_is_called_empty(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    path.touch()
    with pytest.raises(DataError, match=r"is empty \(0 bytes\); expected a \w+ table"):
        open_table(path, ["a"])


def test_a_table_without_rows_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n")
    with pytest.raises(DataError, match="t.csv' has no rows; expected at least one"):
        open_table(path, ["a"])
    with pytest.raises(DataError, match="The table has no rows"):
        open_table(FRAME.clear(), ["a"])


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv.gz"])
@pytest.mark.parametrize("share", [0.001, 0.3, 0.7, 0.999])
def test_a_truncated_file_is_refused_wherever_it_was_cut(tmp_path, kind, share):
    path = written(tmp_path, kind)
    whole = path.read_bytes()
    path.write_bytes(whole[: max(1, int(len(whole) * share))])
    with pytest.raises(DataError, match="cannot be read as .* so write it again"):
        open_table(path, ["a"])


def test_bytes_of_another_kind_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,\xff\xfe\x00\n")
    with pytest.raises(DataError, match="cannot be read as csv"):
        open_table(path, ["a", "b"])
    path = tmp_path / "t.csv.gz"
    path.write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\xff" * 50)
    with pytest.raises(DataError, match="cannot be read as csv"):
        open_table(path, ["a"])


def test_two_columns_of_one_name_are_refused_where_they_are_wanted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,a\n1,2,3\n")
    with pytest.raises(DataError, match="t.csv' has 2 columns named 'a'; expected one"):
        open_table(path, ["a"])
    assert open_table(path, ["b"])["b"].to_list() == [2]
    pandas = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])
    with pytest.raises(DataError, match="The table has 2 columns named 'a'"):
        open_table(pandas, ["a"])
    arrow = pa.table([[1], [2], [3]], names=["a", "b", "a"])
    with pytest.raises(DataError, match="The table has 2 columns named 'a'"):
        open_table(arrow, ["a"])


@pytest.mark.parametrize("source", [{"a": [1]}, 3, None, pd.Series([1.0]), pa.array([1])])
def test_what_is_no_table_is_refused(source):
    with pytest.raises(
        DataError, match=r"must be a path or a polars, pandas or pyarrow table. Got"
    ):
        open_table(source, ["a"])
