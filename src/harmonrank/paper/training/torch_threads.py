"""Give PyTorch its number of threads."""

__all__ = ["torch_threads"]

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from harmonrank.support.threads import thread_count


@contextmanager
def torch_threads(count: int | None = None) -> Iterator[None]:
    """Let PyTorch use so many threads within, `thread_count()` if left out.

    On a batch's few numbers one is best, as others only wait for each other.
    """
    before, count = torch.get_num_threads(), thread_count() if count is None else count
    if count == before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
