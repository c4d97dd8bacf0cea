"""The official files of KuaiRand: Pure, 1K and 27K."""

__all__ = ["find_kuairand"]

from pathlib import Path

from harmonrank.data.logs._declared import find_declared
from harmonrank.data.logs._shipped import shipped
from harmonrank.data.logs._source import LogSource


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
