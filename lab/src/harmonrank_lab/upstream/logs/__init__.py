"""Interaction logs: raw files in, understood by a declaration, one layout of parquet out."""

from harmonrank_lab.upstream.logs._columns import LOG_TOML, PARTS, FeatureTable, LogColumns
from harmonrank_lab.upstream.logs._declaration import Declaration
from harmonrank_lab.upstream.logs._declared import (
    SHIPPED,
    TENREC_FILES,
    LogSource,
    find_declared,
    find_kuairand,
    find_tenrec,
    shipped,
)
from harmonrank_lab.upstream.logs._import import import_log
from harmonrank_lab.upstream.logs._imported import ImportedLog

__all__ = [
    "LOG_TOML",
    "PARTS",
    "SHIPPED",
    "TENREC_FILES",
    "Declaration",
    "FeatureTable",
    "ImportedLog",
    "LogColumns",
    "LogSource",
    "find_declared",
    "find_kuairand",
    "find_tenrec",
    "import_log",
    "shipped",
]
