"""Pooling: gather a row's embeddings into one vector per side, and send the gradient back.

The two kernels stand in one file because they read codes in the same way.
"""

__all__ = ["pool", "step_field"]

import numpy as np

from harmonrank.support.kernel import kernel

_EPSILON = 1e-8


@kernel
def pool(
    table: np.ndarray,
    flat: np.ndarray,
    starts: np.ndarray,
    fields: np.ndarray,
    keys: np.ndarray,
    context: np.ndarray,
    pooled: np.ndarray,
) -> None:
    """Sum the table rows of each side of every log row: pooled_s = Σ_f table[code_sf].

    Args:
        table: (table rows, width).
        flat: Codes of all sides but the context, one after the other.
        starts: Where a side begins in `flat`.
        fields: How many codes an entity of that side has.
        keys: (rows, sides), which entity of each side.
        context: (rows, fields), the codes of the last side as they are.
        pooled: (rows, (sides + 1)·width), written.
    """
    rows, sides = keys.shape
    width = table.shape[1]
    for i in range(rows):
        pooled[i, :] = 0
        for s in range(sides + 1):
            count = fields[s] if s < sides else context.shape[1]
            for f in range(count):
                # The codes of an entity are kept once; only the context's stand in the rows.
                r = flat[starts[s] + keys[i, s] * count + f] if s < sides else context[i, f]
                for k in range(width):
                    pooled[i, s * width + k] += table[r, k]


@kernel
def step_field(
    job: int,
    table: np.ndarray,
    squares: np.ndarray,
    scratch: np.ndarray,
    hits: np.ndarray,
    shrink: np.ndarray,
    flat: np.ndarray,
    starts: np.ndarray,
    fields: np.ndarray,
    keys: np.ndarray,
    context: np.ndarray,
    slope: np.ndarray,
    rates: np.ndarray,
) -> None:
    """Take one step of row-wise Adagrad on the rows of a field that a batch touched.

    g_r = Σ_{i touches r} slope_i + hits_r·shrink_r·table_r;
    squares_r += mean g_r²; table_r −= rate_f · g_r / √squares_r.

    Fields own disjoint table rows, so that one thread per field meets no other. Arguments are those
    of `pool`, and:

    Args:
        job: Which field, counted over all sides.
        table: Changed.
        squares: (table rows,), sums of squared gradients; changed.
        scratch: Like the table, all 0 before and after.
        hits: (table rows,), all 0 before and after.
        shrink: (table rows,), the pull towards 0 of each touch.
        flat: As in `pool`.
        starts: As in `pool`.
        fields: As in `pool`.
        keys: As in `pool`.
        context: As in `pool`.
        slope: Of the summed loss by `pooled`.
        rates: (fields,), step length of each field.
    """
    rows, sides = keys.shape
    width = table.shape[1]
    ends = np.cumsum(np.append(fields, context.shape[1]))
    s = np.searchsorted(ends, job, side="right")
    count = fields[s] if s < sides else context.shape[1]
    f = job - (ends[s] - count)
    touched = np.empty(rows, np.int64)
    distinct = 0
    for i in range(rows):
        r = np.int64(flat[starts[s] + keys[i, s] * count + f] if s < sides else context[i, f])
        # Of a table of millions of rows a batch touches thousands: those alone are visited again.
        if hits[r] == 0:
            touched[distinct] = r
            distinct += 1
        hits[r] += 1
        for k in range(width):
            scratch[r, k] += slope[i, s * width + k]
    for place in range(distinct):
        r = touched[place]
        # A row that comes N times in an epoch is pulled N times by λ/N: once by its whole prior.
        pull = hits[r] * shrink[r]
        hits[r] = 0
        size = np.float32(0)
        for k in range(width):
            g = scratch[r, k] + pull * table[r, k]
            scratch[r, k] = g
            size += g * g
        squares[r] += size / width
        step = rates[job] / (np.sqrt(squares[r]) + _EPSILON)
        for k in range(width):
            table[r, k] -= step * scratch[r, k]
            scratch[r, k] = 0
