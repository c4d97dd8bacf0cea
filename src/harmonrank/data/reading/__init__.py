"""Reading: files, folders and stores to checked rows."""

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.data.reading.parquet import (
        PIECE_ROWS,
        ParquetWriter,
        count_rows,
        pieces,
        read_piece,
        writing,
    )
    from harmonrank.data.reading.table_paths import file_kind
    from harmonrank.data.reading.tables import (
        Source,
        check_columns,
        column_names,
        describe,
        grouped_sums,
    )

__all__ = [
    "PIECE_ROWS",
    "ParquetWriter",
    "Source",
    "check_columns",
    "column_names",
    "count_rows",
    "describe",
    "file_kind",
    "grouped_sums",
    "pieces",
    "read_piece",
    "writing",
]

_PLACES = {
    "PIECE_ROWS": "parquet",
    "ParquetWriter": "parquet",
    "Source": "tables",
    "check_columns": "tables",
    "column_names": "tables",
    "count_rows": "parquet",
    "describe": "tables",
    "file_kind": "table_paths",
    "grouped_sums": "tables",
    "pieces": "parquet",
    "read_piece": "parquet",
    "writing": "parquet",
}

__getattr__ = lazy_names(__name__, _PLACES)
