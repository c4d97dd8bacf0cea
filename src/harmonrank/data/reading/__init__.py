"""Reading: files, folders and stores to checked rows."""

from harmonrank.data.reading.parquet import (
    PIECE_ROWS,
    ParquetWriter,
    ahead,
    count_rows,
    pieces,
    read_piece,
    writing,
)
from harmonrank.data.reading.table_files import TableFiles, reading
from harmonrank.data.reading.table_paths import file_kind, is_paths
from harmonrank.data.reading.tables import Source, check_columns, column_names, describe, open_table

__all__ = ["PIECE_ROWS", "ParquetWriter", "Source", "TableFiles", "ahead", "check_columns"]
__all__ += ["column_names", "count_rows", "describe", "file_kind", "is_paths", "open_table"]
__all__ += ["pieces", "read_piece", "reading", "writing"]
