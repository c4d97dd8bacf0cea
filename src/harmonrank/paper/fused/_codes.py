"""Codes: the bucket of every score and the code of every context, checked once."""

__all__ = ["MOST_CODES", "check_shapes", "code_rows", "unknown_code"]

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.buckets import places
from harmonrank.support.errors import UsageError

if TYPE_CHECKING:
    from harmonrank.paper.fused._tables import Tables

MOST_CODES = 1 << 16
_PIECE = 1 << 18


def code_rows(
    scores: NDArray[np.float32], context: NDArray[np.int32], tables: "Tables"
) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
    """Return (rows, objectives + features) codes, and the share of the next row of each score.

    The codes are the table rows of the scores (see `harmonrank.paper.buckets`), then those of the
    context. There are no shares where rows are not mixed.
    """
    M, sizes = scores.shape[1], tables.sizes
    features = len(sizes) - M
    codes = np.empty((len(scores), len(sizes)), np.uint16)
    shares = np.empty((len(scores) if tables.smooth else 0, M), np.float32)
    # In pieces, so that the intermediate integers take little memory.
    for start in range(0, len(scores), _PIECE):
        piece = slice(start, start + _PIECE)
        codes[piece, :M], share = places(tables.knots, scores[piece], interpolate=tables.smooth)
        if tables.smooth:
            shares[piece] = share
        given = context[piece, :features]
        if ((given < 0) | (given >= sizes[M:])).any():
            raise unknown_code()
        codes[piece, M:] = given
    return codes, shares


def check_shapes(scores: NDArray[np.float32], context: NDArray[np.int32], M: int, C: int) -> None:
    """Refuse arrays that a kernel would read beyond their end."""
    if scores.ndim != 2 or scores.shape[1] != M:
        raise UsageError(f"`scores` must be (rows, {M}). Got {scores.shape}.")
    if context.ndim != 2 or len(context) != len(scores) or context.shape[1] < C:
        raise UsageError(f"`context` must be ({len(scores)}, {C}). Got {context.shape}.")


def unknown_code() -> UsageError:
    """Return what to say about a context code that the tables do not have."""
    return UsageError("`context` holds a code that training did not have; use 0, the unknown.")
