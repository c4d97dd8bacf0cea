"""One table for people, written for a terminal, as Markdown and as HTML."""

from harmonrank.table._table import Cell, Column, Style, Table, table_of

__all__ = ["Cell", "Column", "Style", "Table", "table_of"]
