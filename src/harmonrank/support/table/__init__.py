"""One table for people, written for a terminal, as Markdown and as HTML."""

from harmonrank.support.table._html import cut
from harmonrank.support.table._table import Cell, Column, Style, Table, Tabular, table_of

__all__ = ["Cell", "Column", "Style", "Table", "Tabular", "cut", "table_of"]
