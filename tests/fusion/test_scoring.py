import gzip

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harmonrank import ClosedForm
from harmonrank.fusion import score_file, scoring
from harmonrank.support import DataError, OutputError, UsageError
from logs import small_table


@pytest.fixture
def model(table, schema):
    return ClosedForm().fit(table, schema, valid=table)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.parquet"
    small_table(1000, seed=5).write_parquet(path, row_group_size=300)
    return path


def left_behind(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("chunk", [64, 300, 100_000])
def test_pieces_of_any_size_give_the_same_rows_in_order(model, data, tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(scoring, "PIECE_ROWS", chunk)
    seen = []
    rows = score_file(
        model,
        data,
        tmp_path / "out.parquet",
        on_rows=lambda done, total: seen.append((done, total)),
    )
    scored, given = pl.read_parquet(tmp_path / "out.parquet"), pl.read_parquet(data)
    assert rows == 1000
    assert seen[-1] == (1000, 1000)
    assert scored.columns == [*given.columns, "fused"]
    assert scored.drop("fused").equals(given)
    np.testing.assert_array_equal(scored["fused"], model.score(given))


@pytest.mark.parametrize("source", ["parquet", "csv", "csv.gz", "arrow"])
@pytest.mark.parametrize("target", ["parquet", "csv", "csv.gz", "feather"])
def test_any_kind_of_table_goes_in_and_out(model, tmp_path, source, target):
    given = small_table(50, seed=2)
    path, out = tmp_path / f"in.{source}", tmp_path / f"out.{target}"
    if source == "parquet":
        given.write_parquet(path)
    elif source == "arrow":
        given.write_ipc(path)
    elif source == "csv":
        given.write_csv(path)
    else:
        path.write_bytes(gzip.compress(given.write_csv().encode()))
    score_file(model, path, out)
    read = {"parquet": pl.read_parquet, "csv": pl.read_csv, "feather": pl.read_ipc}
    if target == "csv.gz":
        scored = pl.read_csv(gzip.decompress(out.read_bytes()))
    else:
        scored = read[target](out)
    assert scored.columns[-1] == "fused"
    np.testing.assert_allclose(scored["fused"], model.score(given), rtol=1e-12)


def test_columns_that_the_model_does_not_read_pass_through_as_they_are(model, tmp_path):
    table = small_table(500).to_arrow()
    table = table.append_column(
        "category", pa.array([f"c{i % 7}" for i in range(500)]).dictionary_encode()
    )
    table = table.append_column("list", pa.array([[i] for i in range(500)], pa.list_(pa.int16())))
    table = table.append_column("day", pa.array(range(500), pa.date32()))
    table = table.replace_schema_metadata({"made": "here"})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=100)
    score_file(model, tmp_path / "in.parquet", tmp_path / "out.parquet")
    scored, given = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in ("out", "in"))
    assert scored.drop("fused").schema == given.schema
    assert scored.drop("fused").equals(given)
    assert pl.read_parquet_metadata(tmp_path / "out.parquet")["made"] == "here"
    assert pq.read_table(tmp_path / "out.parquet")["category"].to_pylist() == [
        f"c{i % 7}" for i in range(500)
    ]


def test_a_file_may_be_replaced_by_its_scored_self(model, data):
    given = pl.read_parquet(data)
    score_file(model, data, data, overwrite=True)
    assert pl.read_parquet(data).drop("fused").equals(given)


def test_other_weights_and_another_name(model, data, tmp_path):
    score_file(model, data, tmp_path / "o.parquet", column="s", weights={"buy": 4})
    expected = model.score(data, weights={"buy": 4})
    np.testing.assert_array_equal(pl.read_parquet(tmp_path / "o.parquet")["s"], expected)


def test_a_bad_row_is_counted_from_the_start_of_the_file_and_nothing_is_left(
    model, tmp_path, monkeypatch
):
    monkeypatch.setattr(scoring, "PIECE_ROWS", 100)
    frame = small_table(1000)
    frame[777, "p_like"] = 1.25
    frame.write_parquet(tmp_path / "in.parquet")
    with pytest.raises(
        DataError, match=r"'p_like' of '.*in.parquet' must lie in \[0, 1\]. Got 1.25 in row 777 "
    ):
        score_file(model, tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert left_behind(tmp_path) == ["in.parquet"]


@pytest.mark.parametrize("share", [0.0005, 0.1, 0.5, 0.9, 0.9999])
def test_a_truncated_file_leaves_nothing_behind(model, data, tmp_path, share):
    whole = data.read_bytes()
    data.write_bytes(whole[: max(1, int(share * len(whole)))])
    with pytest.raises(
        DataError, match="data.parquet' cannot be read as parquet: .*write it again"
    ):
        score_file(model, data, tmp_path / "out.parquet")
    assert left_behind(tmp_path) == ["data.parquet"]


@pytest.mark.parametrize("to", ["parquet", "csv", "arrow"])
@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_a_table_without_rows_is_scored_to_one_without_rows(model, tmp_path, kind, to):
    path, out = tmp_path / f"in.{kind}", tmp_path / f"out.{to}"
    empty = small_table().clear()
    {"parquet": empty.write_parquet, "csv": empty.write_csv, "arrow": empty.write_ipc}[kind](path)
    drifts = []
    assert score_file(model, path, out, on_drift=drifts.append) == 0
    scored = {"parquet": pl.read_parquet, "csv": pl.read_csv, "arrow": pl.read_ipc}[to](out)
    assert scored.columns == [*empty.columns, "fused"]
    assert scored.height == 0
    assert drifts == []
    if kind == to == "parquet":
        assert scored.schema == empty.with_columns(fused=pl.lit(0.0)).schema


def test_a_name_that_is_taken_is_refused(model, data, tmp_path):
    with pytest.raises(UsageError, match="has a column 'p_buy' already; choose another name"):
        score_file(model, data, tmp_path / "o.parquet", column="p_buy")
    (tmp_path / "o.parquet").touch()
    with pytest.raises(OutputError, match="exists already"):
        score_file(model, data, tmp_path / "o.parquet")


def test_an_output_of_an_unknown_kind_is_refused(model, data, tmp_path):
    with pytest.raises(DataError, match="out.xlsx' has no known ending"):
        score_file(model, data, tmp_path / "out.xlsx")


def test_fractions_are_written_without_a_dictionary_that_would_not_repeat(model, data, tmp_path):
    score_file(model, data, tmp_path / "out.parquet")
    group = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0)
    chunks = {c.path_in_schema: c for c in map(group.column, range(group.num_columns))}
    assert not chunks["p_buy"].has_dictionary_page
    assert not chunks["fused"].has_dictionary_page
    assert chunks["age"].has_dictionary_page
