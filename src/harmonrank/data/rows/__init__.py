"""Rows in blocks, in memory, in a file or with workers."""
