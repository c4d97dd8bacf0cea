"""A folder, a glob or a list of files is one table."""

import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import open_table, read_log
from harmonrank.data.reading import TableFiles, column_names, count_rows, pieces
from harmonrank.fusion import score_file
from harmonrank.support import DataError
from logs import small_table

FRAME = pl.DataFrame({"a": range(9), "b": [x / 8 for x in range(9)], "c": list("abcdefghi")})
WRITE = {"parquet": "write_parquet", "csv": "write_csv", "arrow": "write_ipc"}


def in_parts(folder, kind="parquet", frame=FRAME, parts=3):
    """Write a table in parts, of which the first is the last to be written."""
    folder.mkdir(exist_ok=True)
    size = -(-frame.height // parts)
    for part in reversed(range(parts)):
        path = folder / f"part-{part}.{kind}"
        getattr(frame.slice(part * size, size), WRITE[kind])(path)
    return folder


@pytest.mark.parametrize("kind", WRITE)
def test_a_folder_a_glob_a_list_and_commas_are_one_table_sorted_by_name(tmp_path, kind):
    folder = in_parts(tmp_path / "log", kind)
    names = [folder / f"part-{n}.{kind}" for n in range(3)]
    sources = [
        folder,
        str(folder),
        folder / f"*.{kind}",
        str(tmp_path / "l*"),
        names,
        ",".join(map(str, names)),
    ]
    for source in sources:
        assert column_names(source) == ["a", "b", "c"]
        assert open_table(source, ["c", "a", "b"]).select("a", "b", "c").equals(FRAME), source


def test_a_list_keeps_its_order_and_a_folder_is_read_to_any_depth(tmp_path):
    folder = in_parts(tmp_path / "log")
    backwards = [folder / f"part-{n}.parquet" for n in (2, 1, 0)]
    assert open_table(backwards, ["a"])["a"].to_list() == [6, 7, 8, 3, 4, 5, 0, 1, 2]
    deep = tmp_path / "deep"
    for day in ("2026-11-01", "2026-11-02"):
        (deep / day).mkdir(parents=True)
        FRAME.write_parquet(deep / day / "part.parquet")
    assert open_table(deep, ["a"]).height == 18


def test_hidden_files_those_being_written_and_others_are_left_out(tmp_path):
    folder = in_parts(tmp_path / "log")
    for name in ("_SUCCESS", ".part-9.parquet", "_part-9.parquet", "schema.toml", "notes.txt"):
        (folder / name).write_text("not a table")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part.parquet").write_text("half a table")
    for source in (folder, folder / "*.parquet"):
        assert open_table(source, ["a", "b", "c"]).equals(FRAME)


# The oldest Polars refuses to read such a csv.
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_star_in_the_name_of_a_file_that_is_there_is_no_pattern(tmp_path, kind):
    for name, frame in (("a*", FRAME[:1]), ("a[b]", FRAME[:2]), ("ab", FRAME)):
        getattr(frame, WRITE[kind])(tmp_path / f"{name}.{kind}")
    assert open_table(tmp_path / f"a*.{kind}", ["a"]).height == 1
    assert open_table(tmp_path / f"a[b].{kind}", ["a"]).height == 2


def test_a_part_with_other_columns_is_named_with_the_column(tmp_path):
    folder = in_parts(tmp_path / "log")
    FRAME.rename({"b": "bb"}).write_parquet(folder / "part-1.parquet")
    with pytest.raises(
        DataError,
        match=r"^Part '.*part-1.parquet' has no column 'b', which '.*part-0.parquet' has; all "
        r"parts of a table must have the same columns. Did you mean 'bb'\?$",
    ):
        open_table(folder, ["a"])
    FRAME.with_columns(d=1).write_parquet(folder / "part-1.parquet")
    with pytest.raises(DataError, match=r"part-1.parquet' has a column 'd', which '.*part-0"):
        open_table(folder, ["a"])


@pytest.mark.parametrize("kind", WRITE)
def test_parts_may_differ_in_the_width_of_numbers_but_not_in_kind(tmp_path, kind):
    folder = in_parts(tmp_path / "log", kind)
    second = folder / f"part-1.{kind}"
    getattr(FRAME[:1].with_columns(a=0.5, c=None).select("c", "b", "a"), WRITE[kind])(second)
    result = open_table(folder, ["a", "c"])
    assert result["a"].to_list() == [0, 1, 2, 0.5, 6, 7, 8]
    assert result["c"].to_list() == ["a", "b", "c", None, "g", "h", "i"]
    getattr(FRAME[:1].with_columns(a=pl.lit("x")), WRITE[kind])(second)
    with pytest.raises(DataError, match=r"part-1.* has type String in column 'a', and the parts"):
        open_table(folder, ["a"])
    assert open_table(folder, ["c"]).height == 7


def test_mixed_kinds_an_empty_folder_and_an_idle_pattern_are_refused(tmp_path):
    folder = in_parts(tmp_path / "log")
    FRAME.write_csv(folder / "part-3.csv")
    with pytest.raises(
        DataError, match=r"must be of one kind. Got parquet .* and csv .*part-3.csv"
    ):
        open_table(folder, ["a"])
    assert open_table(folder / "*.parquet", ["a"]).height == 9
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty' is a folder without a table"):
        open_table(tmp_path / "empty", ["a"])
    with pytest.raises(DataError, match=r"There is no file like '.*no-\*.parquet'"):
        open_table(tmp_path / "no-*.parquet", ["a"])
    with pytest.raises(DataError, match=r"part-0.parquet' is named twice"):
        open_table([folder / "part-0.parquet", folder / "part-0.parquet"], ["a"])
    with pytest.raises(DataError, match=r"There is no file '.*no.parquet'"):
        open_table(tmp_path / "no.parquet", ["a"])
    with pytest.raises(DataError, match="must be a path or a polars"):
        open_table([], ["a"])


def test_pieces_of_many_files_are_their_rows_in_order_and_of_one_type(tmp_path):
    folder = in_parts(tmp_path / "log")
    FRAME[3:6].with_columns(pl.col("a") / 1).select("b", "a", "c").write_parquet(
        folder / "part-1.parquet"
    )
    files = TableFiles.of(folder)
    assert count_rows(files) == 9
    frames = list(pieces(files, 2))
    assert [piece.height for piece in frames] == [2, 1] * 3
    assert pl.concat(frames).equals(FRAME.cast({"a": pl.Float64}))


def test_a_log_in_parts_fits_and_scores_as_one_file_does(tmp_path, schema):
    table = small_table()
    table.write_parquet(tmp_path / "one.parquet")
    folder = in_parts(tmp_path / "log", frame=table, parts=4)
    assert read_log(folder, schema).fingerprint() == read_log(table, schema).fingerprint()
    model = hr.ClosedForm().fit([folder], schema)
    assert (model.score(folder) == model.score(tmp_path / "one.parquet")).all()
    for source, name in ((folder, "a"), (tmp_path / "one.parquet", "b")):
        assert score_file(model, source, tmp_path / f"{name}.parquet") == 600
    scored = [pl.read_parquet(tmp_path / f"{name}.parquet") for name in "ab"]
    assert scored[0].equals(scored[1])
    assert model.evaluate(folder).auc_sum == model.evaluate(table).auc_sum
    assert model.rank(folder, 2).equals(model.rank(table, 2))
