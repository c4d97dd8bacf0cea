"""Public logs, declared in this package: KuaiRand (Pure, 1K and 27K) and the videos of Tenrec."""

__all__ = ["SHIPPED", "TENREC_FILES", "find_kuairand", "find_tenrec", "shipped"]

from functools import cache
from pathlib import Path

import msgspec

from harmonrank.support.errors import UsageError, did_you_mean
from harmonrank_lab.upstream.logs._declaration import Declaration
from harmonrank_lab.upstream.logs._declaration_file import read_declaration
from harmonrank_lab.upstream.logs._declared import find_declared
from harmonrank_lab.upstream.logs._source import LogSource

SHIPPED = ("kuairand", "tenrec")
"""Public logs whose declarations are here."""
TENREC_FILES = ("QK-video.csv", "QB-video.csv", "sbr_data_1M.csv", "ctr_data_1M.csv")


@cache
def shipped(kind: str) -> Declaration:
    """Return the declaration of a public log."""
    return read_declaration(Path(__file__).parent / "declarations" / f"{kind}.toml")


def find_kuairand(folder: str | Path, *, random: bool = True) -> LogSource:
    """Find the files of one version of KuaiRand in a folder or in its folder `data`.

    Args:
        folder: Where the download was unpacked.
        random: Also read log_random_*, whose videos were shown at random.

    Raises:
        DataError: A file or a column is missing.
    """
    left_out = None if random else "*log_random*"
    declared = shipped("kuairand")
    return find_declared(folder, declared, leave_out=left_out, settings={"random": random})


def find_tenrec(folder: str | Path, *, file: str | None = None, long_view: int = 2) -> LogSource:
    """Find a video file of Tenrec in a folder.

    Args:
        folder: Where the download was unpacked.
        file: Which file; needed only where there is more than one, since they overlap.
        long_view: A view is long if the user entered the video at least so often.

    Raises:
        DataError: The file or a column is missing.
        UsageError: There is more than one file, and none is named.
    """
    if long_view < 1:
        raise UsageError(f"`long_view` must be at least 1. Got {long_view}.")
    if file is not None and file not in TENREC_FILES:
        raise UsageError(f"Tenrec has no video file '{file}'. {did_you_mean(file, TENREC_FILES)}")
    declared = shipped("tenrec")
    rule = msgspec.structs.replace(declared.rule("long_view"), at_least=long_view)
    first, *others = declared.notes
    said = first.text.replace("at least 2", f"at least {long_view}")
    declared = msgspec.structs.replace(
        declared,
        files=declared.files if file is None else [file],
        columns={**declared.columns, "long_view": rule},
        notes=[msgspec.structs.replace(first, text=said), *others],
    )
    return find_declared(folder, declared, settings={"long_view": long_view})
