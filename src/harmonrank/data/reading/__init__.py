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
    from harmonrank.data.reading.table_files import TableFiles, reading
    from harmonrank.data.reading.table_paths import file_kind, is_paths
    from harmonrank.data.reading.tables import (
        Source,
        check_columns,
        column_names,
        describe,
        open_table,
    )

__all__ = [
    "PIECE_ROWS",
    "ParquetWriter",
    "Source",
    "TableFiles",
    "check_columns",
    "column_names",
    "count_rows",
    "describe",
    "file_kind",
    "is_paths",
    "open_table",
    "pieces",
    "read_piece",
    "reading",
    "writing",
]

_PLACES = {
    "PIECE_ROWS": "parquet",
    "ParquetWriter": "parquet",
    "Source": "tables",
    "TableFiles": "table_files",
    "check_columns": "tables",
    "column_names": "tables",
    "count_rows": "parquet",
    "describe": "tables",
    "file_kind": "table_paths",
    "is_paths": "table_paths",
    "open_table": "tables",
    "pieces": "parquet",
    "read_piece": "parquet",
    "reading": "table_files",
    "writing": "parquet",
}

__getattr__ = lazy_names(__name__, _PLACES)
