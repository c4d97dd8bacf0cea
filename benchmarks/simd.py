"""Loops with explicit SIMD against plain ones, of which LLVM makes vector instructions itself.

    python benchmarks/simd.py --json benchmarks/results/simd.json

Each loop with explicit SIMD (`harmonrank.support.simd`) runs beside a plain one that numba
compiles with the same options, in turns. The ratio is the median of the plain loop's time to ours:
what explicit SIMD gains, which is kept where it is 1.5 or more. Ratios of loops that gained less
stay in the result (`replaced`); plain ones took their place in the package.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numba
import numpy as np
from store import options, read, write

from harmonrank.model.scorer import curve_kernels, heads_kernels
from harmonrank.model.scorer.curves import HEADS, SURFACE_CELLS, Curves
from harmonrank.model.scorer.head_room import BLOCK, HeadRoom, aligned
from harmonrank.model.scorer.heads_tables import ContextRecords
from harmonrank.paper.fused import _backward, _forward, _rows
from harmonrank.support.simd import ROWS, SINGLES

M, CONTEXTS, BENT = 5, 200, 8
BLOCKS = 16  # In one call, so that its arguments cost little.
ZERO, ONE = np.float32(0), np.float32(1)


def compiled(function: Callable[..., None], **more: Any) -> Any:
    return numba.njit(fastmath={"contract"}, error_model="numpy", **more)(function)


# The default: the linear map of each row's context, and surfaces of four heads.


def apply(n: int, contexts: Any, room: Any) -> None:
    context, x, maps = room.context, room.x, room.maps
    table, record, M = contexts.numbers, contexts.record, len(contexts.unit)
    width = np.uint64(maps.size // BLOCK)
    for r in range(np.uint64(n)):
        k, to = np.uint64(context[r]) * np.uint64(record), r * width
        for w in range(width):
            maps[to + w] = table[k + w]
        for j in range(np.uint64(M)):
            number = x[j * np.uint64(BLOCK) + r]
            k += width
            for w in range(width):
                maps[to + w] += number * table[k + w]


def surfaces(begin: int, end: int, n: int, curves: Any, room: Any) -> None:
    pairs, cells, sums = curves.pairs, curves.surface_cells, room.sums
    row, column, part = room.row, room.column, room.part
    for t in range(begin, end):
        i, j = pairs[t, 0] * BLOCK, pairs[t, 1] * BLOCK
        for r in range(n):
            at = np.uint64(t * SURFACE_CELLS**2 * 4 * HEADS + row[i + r] + column[j + r])
            x, y, to = part[2 * (i + r) + 1], part[2 * (j + r) + 1], np.uint64(r * SINGLES)
            for h in range(np.uint64(HEADS)):
                k = at + np.uint64(2) * h
                near, far = cells[k] + x * cells[k + np.uint64(8)], np.uint64(9)
                sums[to + np.uint64(2) * h] += near
                sums[to + np.uint64(2) * h + np.uint64(1)] += y * (
                    cells[k + np.uint64(1)] + x * cells[k + far]
                )


def of_records(function: Any) -> tuple[Any, Any]:
    """Return loops that are given plain tuples, whose types numba knows at once: map, surfaces."""
    loop = compiled(function, inline="always")

    def map_(n: int, contexts: Any, room: Any) -> None:
        for _ in range(BLOCKS):
            loop(n, ContextRecords(*contexts), HeadRoom(*room))

    def add(begin: int, end: int, n: int, curves: Any, room: Any) -> None:
        for _ in range(BLOCKS):
            loop(begin, end, n, Curves(*curves), HeadRoom(*room))

    return compiled(map_, _nrt=False), compiled(add, _nrt=False)


# Networks: attention of sixteen rows, the search of knots, and the sums of a backward pass.


def attend(
    i: int, z: int, M: int, F: int, d: int, _attend: bool, cell: Any, A: Any, own: Any
) -> None:
    top, e, total = (
        np.full(ROWS, -np.inf, np.float32),
        np.empty(ROWS, np.float32),
        np.zeros(ROWS, np.float32),
    )
    c, o = np.zeros(ROWS, np.float32), np.zeros(ROWS, np.float32)
    for j in range(M):
        a = A[(i * M + j) * ROWS : (i * M + j + 1) * ROWS]
        a[:] = ZERO
        for f in range(d):
            y, x = cell[(i * F + d + f) * ROWS :], cell[(j * F + f) * ROWS :]
            for r in range(ROWS):
                a[r] += y[r] * x[r]
        for r in range(ROWS):
            top[r] = a[r] if a[r] > top[r] else top[r]
    for j in range(M):
        a, h, v = A[(i * M + j) * ROWS :], own[j * ROWS :], cell[(j * F + z) * ROWS :]
        for r in range(ROWS):
            e[r] = np.exp(a[r] - top[r])
            a[r] = e[r]
            total[r] += e[r]
            c[r] += e[r] * h[r]
            o[r] += e[r] * v[r]
    heard, said, inverse = (
        own[(M + i) * ROWS :],
        own[(2 * M + i) * ROWS :],
        own[(5 * M + i) * ROWS :],
    )
    for r in range(ROWS):
        inverse[r] = ONE / total[r]
        heard[r], said[r] = c[r] * inverse[r], o[r] * inverse[r]


def search(
    m: int, M: int, _knots: Any, inner: Any, _smooth: bool, first: Any, place: Any, share: Any
) -> None:
    width = len(inner) // M
    for r in range(ROWS):
        half, below = width // 2, 0
        while half > 0:
            k = np.uint64(m * width + half - 1 + below)
            below += half if inner[k] <= share[m * ROWS + r] else 0
            half //= 2
        place[m * ROWS + r] = below + first


def many(function: Any) -> Any:
    """Return a search by the knots of many objectives, as one that is repeated is foreseen."""
    find = compiled(function, inline="always")

    def every(M: int, knots: Any, inner: Any, place: Any, share: Any) -> None:
        for m in range(M):
            find(m, M, knots, inner, False, np.int32(0), place, share)

    return compiled(every)


def scatter(
    _part: int, rows: Any, slope: Any, J: Any, M: int, first: Any, _smooth: bool, sums: Any
) -> None:
    (edges, index, codes, shares), (cells, _, wide, asked) = rows, sums
    for row in range(edges[0], edges[1]):
        i, own = index[row], row * (M * wide + asked)
        for m in range(M):
            k = np.uint64((first[m] + codes[i * len(first) + m]) * wide)
            for f in range(np.uint64(wide)):
                whole = slope[row] * J[np.uint64(own + m * wide) + f]
                after = shares[i * M + m] * whole
                cells[k + np.uint64(wide) + f] += np.float64(after)
                cells[k + f] += np.float64(whole - after)


def cases() -> dict[str, tuple[Any, Any, tuple[Any, ...], int]]:
    """Return our loop, the plain one, their arguments and how many rows these are."""
    rng, room = np.random.default_rng(0), HeadRoom.of(M, M)
    width, rows, F, d = SINGLES, 1024, 10, 2
    record = (1 + M) * width
    table = aligned(CONTEXTS * record, np.float64)
    table[:], room.x[:] = rng.normal(size=table.size), rng.normal(size=room.x.size)
    room.context[:] = rng.integers(0, CONTEXTS, BLOCK)
    cells = aligned(BENT * SURFACE_CELLS**2 * 4 * HEADS, np.float32)
    cells[:] = rng.normal(size=cells.size)
    room.row[:] = rng.integers(0, SURFACE_CELLS, room.row.size) * SURFACE_CELLS * 4 * HEADS
    room.column[:] = rng.integers(0, SURFACE_CELLS, room.column.size) * 4 * HEADS
    room.part[:] = 1
    room.part[1::2] = rng.random(room.part.size // 2)
    pairs = np.array([(k % M, (k + 1) % M) for k in range(BENT)])
    cell, A, own = (aligned(k * ROWS, np.float32) for k in (M * F, M * M, 7 * M))
    cell[:], own[:] = rng.normal(size=cell.size), rng.normal(size=own.size)
    knots = np.tile(np.sort(rng.random(256)).astype(np.float32), 640)
    place, share = aligned(640 * ROWS, np.int32), aligned(640 * ROWS, np.float32)
    share[:] = rng.random(share.size)
    index, codes = rng.permutation(rows), rng.integers(0, 300, (rows + 1) * M).astype(np.uint16)
    slope, J = rng.normal(size=rows).astype(np.float32), aligned(rows * M * 16, np.float32)
    first, sums = np.arange(M) * 300, aligned((M * 300 + 1) * 16, np.float64)
    shares = rng.random(rows * M).astype(np.float32)
    none = np.empty(0)
    curves = none, none, none, none, none, none, pairs, none, cells
    parts: Any = heads_kernels._apply, curve_kernels._add_surfaces
    (linear, _), (_, added) = (of_records(part.py_func) for part in parts)
    (plain_linear, _), (_, plain_added) = (of_records(part) for part in (apply, surfaces))
    given = (0, 2 * d, M, F, d, True, cell, A, own)
    dealt, totals = (np.array([0, rows]), index, codes, shares), (sums, none, 16, 0)
    mapped = BLOCK, (record, M, table, np.ones(M)), tuple(room)
    ours: Any = _rows._search
    searches = many(ours.py_func), many(search)
    return {
        "linear map of a context": (linear, plain_linear, mapped, BLOCKS * BLOCK),
        "surfaces of four heads": (
            added,
            plain_added,
            (0, BENT, BLOCK, curves, tuple(room)),
            BLOCKS * BLOCK,
        ),
        "self-attention of a network": (*pair(_forward._hear, attend), given, ROWS),
        "search of 256 knots": (*searches, (640, knots, knots, place, share), share.size),
        "sums of a backward pass": (
            *pair(_backward._scatter_cells, scatter),
            (0, dealt, slope, J, M, first, True, totals),
            rows,
        ),
    }


def pair(ours: Any, plain: Any) -> tuple[Any, Any]:
    """Return a part of kernels, compiled by itself as they are, and a plain loop."""
    return compiled(ours.py_func, _nrt=False), compiled(plain)


def measured(
    ours: Any, plain: Any, given: tuple[Any, ...], rows: int, rounds: int = 41
) -> dict[str, float]:
    ratios, seconds = [], []
    for _ in range(rounds + 1):
        taken = []
        for loop in (ours, plain):
            begun = perf_counter()
            for _ in range(max(1, 20_000 // rows)):
                loop(*given)
            taken.append(perf_counter() - begun)
        ratios.append(taken[1] / taken[0])
        seconds.append(taken[0] / max(1, 20_000 // rows) / rows)
    # The first round compiles.
    return {
        "nanoseconds_per_row": 1e9 * float(np.median(seconds[1:])),
        "ratio": float(np.median(ratios[1:])),
    }


if __name__ == "__main__":
    asked = options(__doc__, rounds=41)
    results = []
    for name, case in cases().items():
        results.append({"loop": name} | measured(*case, rounds=asked.rounds))
        print(*results[-1].values(), flush=True)
    try:
        replaced = read("simd")["replaced"]
    except FileNotFoundError:
        replaced = []
    write(asked.json, {"results": results, "replaced": replaced})
