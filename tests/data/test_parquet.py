import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from harmonrank.data.reading import ParquetWriter, count_rows, parquet, pieces, read_piece
from harmonrank.support import DataError

FRAME = pl.DataFrame({"id": range(1000), "p": np.linspace(0, 1, 1000), "text": ["a", "b"] * 500})


def written(path, sizes, **options):
    first = 0
    with ParquetWriter(path, **options) as writer:
        for size in sizes:
            writer.put(FRAME[first : first + size])
            first += size
    return path


@pytest.mark.parametrize("sizes", [[1000], [1] * 1000, [300, 0, 700], [999, 1]])
def test_pieces_of_any_size_come_out_in_order(tmp_path, sizes):
    path = written(tmp_path / "t.parquet", sizes)
    assert pl.read_parquet(path).equals(FRAME)
    for rows in (1, 64, 1000, 5000):
        read = list(pieces(path, rows))
        assert [len(piece) for piece in read[:-1]] == [rows] * (len(read) - 1)
        assert pl.concat(read).equals(FRAME)


def test_several_pieces_are_read_in_one_go_only_if_they_take_little_memory(tmp_path, monkeypatch):
    path = written(tmp_path / "t.parquet", [300, 700])
    asked, reading = [], parquet.read_piece

    def heard(path, first, rows):
        asked.append(rows)
        return reading(path, first, rows)

    monkeypatch.setattr(parquet, "read_piece", heard)
    assert pl.concat(pieces(path, 100)).equals(FRAME)
    assert max(asked) == 400
    asked.clear()
    monkeypatch.setattr(parquet, "_READ_BYTES", 100 * FRAME.estimated_size() / 1000)
    assert pl.concat(pieces(path, 100)).equals(FRAME)
    assert set(asked) == {100}


def test_the_same_pieces_give_the_same_bytes(tmp_path):
    first = written(tmp_path / "a.parquet", [400, 600]).read_bytes()
    assert written(tmp_path / "b.parquet", [400, 600]).read_bytes() == first


def test_a_piece_is_a_row_group(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    monkeypatch.setattr(parquet, "PIECE_ROWS", 250)
    about = pq.read_metadata(written(tmp_path / "t.parquet", [100] * 10))
    assert [about.row_group(i).num_rows for i in range(about.num_row_groups)] == [250] * 4


def test_rows_and_columns_of_a_piece(tmp_path):
    path = written(tmp_path / "t.parquet", [1000])
    assert count_rows(path) == 1000
    assert read_piece(path, 990, 100, ["text", "id"]).equals(FRAME[990:].select("text", "id"))


def test_metadata_is_kept(tmp_path):
    path = written(tmp_path / "t.parquet", [10], metadata={"made": "here"})
    assert pl.read_parquet_metadata(path)["made"] == "here"


def test_without_a_piece_there_is_no_file(tmp_path):
    written(tmp_path / "t.parquet", [])
    assert not (tmp_path / "t.parquet").exists()


def test_the_error_that_ends_the_pieces_is_the_one_that_is_told(tmp_path):
    def write():
        with ParquetWriter(tmp_path / "t.parquet") as writer:
            writer.put(FRAME)
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write()


@pytest.mark.parametrize("rows", [1, 1000])
def test_a_place_that_cannot_be_written_to_is_an_error_and_no_wait(tmp_path, rows):
    with pytest.raises(OSError, match="No such file"):
        written(tmp_path / "missing" / "t.parquet", [rows] * (1000 // rows))


def test_a_full_disk_is_an_error_and_no_wait(tmp_path):
    code = f"""
import resource
from pathlib import Path
import numpy as np, polars as pl
from harmonrank.data.reading.parquet import ParquetWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
frame = pl.DataFrame({{"p": np.random.default_rng(0).random(300_000)}})
with ParquetWriter(Path({str(tmp_path / "t.parquet")!r})) as writer:
    for _ in range(20):
        writer.put(frame)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "OSError" in done.stderr
    assert "File too large" in done.stderr


def test_another_type_than_the_first_piece_had_is_refused(tmp_path):
    def write():
        with ParquetWriter(tmp_path / "t.parquet") as writer:
            writer.put(FRAME)
            writer.put(FRAME.with_columns(pl.col("p").cast(pl.String)))

    with pytest.raises(OSError, match="(?i)schema|type"):
        write()


def test_a_file_that_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1 is not enough")
    for read in (count_rows, lambda path: read_piece(path, 0, 1), lambda path: next(pieces(path))):
        with pytest.raises(DataError, match=r"t.parquet' cannot be read as parquet: "):
            read(tmp_path / "t.parquet")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    code = """
import resource, sys
from contextlib import closing
from pathlib import Path
import numpy as np, polars as pl
from harmonrank.data.reading.parquet import ParquetWriter, pieces
frame = pl.DataFrame(np.random.default_rng(0).random((262_144, 8)))
made, copied = Path("made.parquet"), Path("copied.parquet")
with ParquetWriter(made) as writer:
    for _ in range(int(sys.argv[1])):
        writer.put(frame)
with closing(pieces(made)) as frames, ParquetWriter(copied) as writer:
    for piece in frames:
        writer.put(piece)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""

    def peak(count):
        command = [sys.executable, "-c", code, str(count)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return int(done.stdout)

    # 16 MB a piece, so 1.7 GB more; a busy machine may have a dozen pieces under way.
    assert peak(110) - peak(10) < 500
