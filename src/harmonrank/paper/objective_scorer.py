"""Objective scorer: the network with one head per objective on the CPU, without PyTorch.

Consecutive matrices are multiplied once, before any row is scored. Rows are scored sixteen at a
time, one number of all sixteen in one register (`harmonrank.support.simd`).
"""

__all__ = ["ObjectiveScorer"]

from collections.abc import Mapping
from math import sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from harmonrank.paper.config import FARTHEST, REACH, SMALLEST_SCORE, ObjectiveConfig
from harmonrank.support.errors import DataError
from harmonrank.support.kernel import simd_function, simd_kernel
from harmonrank.support.parallel import each_part, edges_of
from harmonrank.support.simd import ROWS, SINGLES, item, put_simd, row_simd, simd
from harmonrank.support.simd_maths import exponential, larger, of_all, sigmoid, transpose

_PART_ROWS = 2048  # A request's are one part.

_ZERO, _ONE, _LEAST = np.float32(0), np.float32(1), np.float32(-np.inf)
_LOW, _HIGH = np.float32(SMALLEST_SCORE), np.float32(1 - SMALLEST_SCORE)
_REACH, _FARTHEST = np.float32(REACH), np.float32(FARTHEST)


class ObjectiveScorer:
    """Turns scores and context codes into the probability of every objective.

    The result of a row depends on that row alone.

    Args:
        config: The network's size.
        weights: Its arrays by name.

    Attributes:
        prior: Centre, spread, slope, intercept of the closed form, and the share of the residual.
        context: A row for all contexts, then one per value: queries, offsets and slopes.
        paths: Table of scores, W_r, folded output, gate and its bias, gated and linear output.
    """

    def __init__(self, config: ObjectiveConfig, weights: Mapping[str, NDArray[Any]]) -> None:
        self.config = config
        w = {name: np.asarray(array, np.float64) for name, array in weights.items()}
        self.prior = _single(*(w[f"prior.{n}"] for n in ("centre", "spread", "slope")))
        self.prior += _single(w["prior.intercept"], w["share"])
        self.context = np.ascontiguousarray(_context_table(config, w), np.float32)
        # Eight numbers are read at a time.
        self._flat = np.append(self.context, np.zeros(SINGLES, np.float32))
        scale, own = sqrt(config.key_width), "relation_aware."
        W_r = w[own + "query"].T @ w[own + "key"] / scale
        output = w[own + "output"] @ w[own + "context_value"] @ w[own + "value"]
        agnostic = (w["gated.gate"], w["gated.bias"], w["gated.output"], w["linear.output"])
        self.paths = _single(w["scores.table"], W_r, output, *agnostic)
        slots = np.array(config.context_slots, np.int64)
        self._slots, self._first = slots, 1 + np.cumsum(slots) - slots

    @classmethod
    def of(cls, network: Any) -> Self:
        """Return the scorer of a network with its present weights."""
        weights = network.state_dict()
        return cls(network.config, {name: w.cpu().numpy() for name, w in weights.items()})

    def __call__(self, scores: NDArray[Any], codes: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the probability of each objective, (rows, objectives)."""
        # One type each, so that the kernels are compiled once.
        scores = np.ascontiguousarray(scores, np.float32)
        codes = np.ascontiguousarray(codes, np.int32)
        self._check(scores, codes)
        p, edges = np.empty(scores.shape), edges_of(len(scores), _PART_ROWS)
        rows, context = (scores, codes), (self._first, self._flat, self.context.shape[1])

        def work(part: int) -> None:
            ends = edges[part], edges[part + 1]
            _score(*ends, rows, context, self.prior, self.paths, p, self._room())

        each_part(work, len(edges) - 1)
        return p

    def _room(self) -> tuple[NDArray[np.float32], ...]:
        """Return memory for sixteen rows, flat, the row being the last axis."""
        M, tokens = self.config.objectives, self.config.objectives * self.config.width
        columns = (tokens, tokens, M, M, M, M, self.context.shape[1] + SINGLES, SINGLES)
        return tuple(np.empty(n * ROWS, np.float32) for n in columns)

    def _check(self, scores: NDArray[Any], codes: NDArray[Any]) -> None:
        M, features = self.config.objectives, len(self._slots)
        if scores.ndim != 2 or scores.shape[1] != M or codes.shape != (len(scores), features):
            raise DataError(
                f"`scores` must be (rows, {M}) and `codes` (rows, {features}). "
                f"Got {scores.shape} and {codes.shape}."
            )
        if codes.size and (codes.min() < 0 or (codes.max(axis=0) >= self._slots).any()):
            raise DataError("A context code is not one of the network's; encode the context again.")


def _single(*arrays: NDArray[Any]) -> tuple[NDArray[np.float32], ...]:
    return tuple(np.ascontiguousarray(array, np.float32) for array in arrays)


def _context_table(config: ObjectiveConfig, w: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return what each context value adds to the queries, offsets and slopes of all heads.

    Row 0 is the part without context; the slots of every feature follow.
    """
    M, e, own = config.objectives, config.context_width, "relation_aware."
    W_p = w[own + "context_key"] @ w[own + "value"] / sqrt(config.key_width)  # (k, d)
    table = [np.concatenate([(w[own + "context_bias"] @ W_p).ravel(), w["linear.bias"]])]
    table[0] = np.concatenate([table[0], np.zeros(M * M)])
    place = 0
    for feature, slots in enumerate(config.context_slots):
        ask = w[own + "context_query"][:, :, feature * e : (feature + 1) * e]  # (M, k, e)
        for slot in range(place, place + slots):
            q = (ask @ w["context.table"][slot]) @ W_p  # (M, d)
            slope = w["linear.slope"][slot].ravel()
            table.append(np.concatenate([q.ravel(), w["linear.offset"][slot], slope]))
        place += slots
    return np.stack(table)


@simd_kernel
def _score(
    begin: int, end: int, rows: Any, asking: Any, prior: Any, paths: Any, p: Any, room: Any
) -> None:
    """Score some rows, sixteen at a time; the last row is repeated to fill up sixteen."""
    (scores, codes), (first, context, width) = rows, asking
    centre, spread, slope, intercept, share = prior
    table, W_r, output, gate, gate_bias, gated, linear = paths
    x, y, A, z, v, g, asked, turned = room
    M, d = len(centre), len(gate)
    for start in range(begin, end, ROWS):
        _embed(scores, start, M, d, centre, spread, slope, intercept, table, x, z)
        _ask(codes, start, len(scores), first, context, width, asked, turned)
        _add_agnostic(M, d, x, asked, gate, gate_bias, gated, linear, g, v)
        _add_relations(M, d, x, asked, W_r, output, y, A, v)
        for m in range(M):
            logit = row_simd(z, m * ROWS) + share[m] * row_simd(v, m * ROWS)
            put_simd(z, m * ROWS, sigmoid(logit))
        for r in range(ROWS if start + ROWS < len(scores) else len(scores) - start):
            for m in range(M):
                p[start + r, m] = item(z, m * ROWS + r)


@simd_function
def _embed(
    scores: Any, start: int, M: int, d: int, centre: Any, spread: Any, slope: Any, intercept: Any,
    table: Any, x: Any, z: Any,
) -> None:  # fmt: skip
    """Write the embeddings x, (M, d), and the prior's logits z, (M,)."""
    B, last = table.shape[1], len(scores) - 1
    steps = np.float32((B - 1) / (2 * REACH))
    for r in range(ROWS):
        for m in range(M):
            s = scores[start + r if start + r < last else last, m]
            s = s if s > _LOW else _LOW
            s = s if s < _HIGH else _HIGH
            logit = np.log(s) - np.log1p(-s)
            z[m * ROWS + r] = slope[m] * logit + intercept[m]
            u = (logit - centre[m]) / spread[m]
            u = u if u > -_FARTHEST else -_FARTHEST
            u = u if u < _FARTHEST else _FARTHEST
            inside = u if u > -_REACH else -_REACH
            inside = inside if inside < _REACH else _REACH
            place = (inside + _REACH) * steps
            cell = np.int64(place)
            cell = cell if cell < B - 2 else B - 2
            part = place - np.float32(cell)
            for c in range(d):
                left = table[m, cell, c]
                x[(m * d + c) * ROWS + r] = left + part * (table[m, cell + 1, c] - left)
            x[m * d * ROWS + r] += u - inside


@simd_function
def _ask(
    codes: Any, start: int, rows: int, first: Any, context: Any, width: int, asked: Any, turned: Any
) -> None:
    """Add up the table rows of every row's context, (columns,), eight columns at a time."""
    for f in range(0, width, SINGLES):
        for r in range(ROWS):
            i = start + r if start + r < rows else rows - 1
            row = simd(context, f)
            for feature in range(len(first)):
                row = row + simd(context, (first[feature] + codes[i, feature]) * width + f)
            put_simd(turned, r * SINGLES, row)
        for half in range(0, ROWS, SINGLES):
            transpose(turned, half * SINGLES, SINGLES, asked, f * ROWS + half, ROWS)


@simd_function
def _add_agnostic(
    M: int, d: int, x: Any, asked: Any, gate: Any, gate_bias: Any, gated: Any, linear: Any, g: Any,
    v: Any,
) -> None:  # fmt: skip
    """Write what the context adds to v, and add s2 and s3; g is room for the gates."""
    for j in range(M):
        q = of_all(gate_bias[j])
        for c in range(d):
            q = q + gate[c] * row_simd(x, (j * d + c) * ROWS)
        put_simd(g, j * ROWS, sigmoid(q))
    for m in range(M):
        total = row_simd(asked, (M * d + m) * ROWS)
        for j in range(M):
            by_context = row_simd(asked, (M * d + M + m * M + j) * ROWS)
            total = total + by_context * row_simd(x, j * d * ROWS)
            for c in range(d):
                k = j * d + c
                through = linear[m, k] + gated[m, k] * row_simd(g, j * ROWS)
                total = total + through * row_simd(x, k * ROWS)
        put_simd(v, m * ROWS, total)


@simd_function
def _add_relations(
    M: int, d: int, x: Any, asked: Any, W_r: Any, output: Any, y: Any, A: Any, v: Any
) -> None:
    """Add s1 to v: self-attention, then the attention of every head to its result.

    y_i is x_i W_r, then x_r of i; A has room for the attention of one objective or one head.
    """
    for i in range(M):
        for c in range(d):
            total = of_all(_ZERO)
            for a in range(d):
                total = total + W_r[a, c] * row_simd(x, (i * d + a) * ROWS)
            put_simd(y, (i * d + c) * ROWS, total)
        _attend(M, d, y, i * d, x, A)
        for c in range(d):
            total = of_all(_ZERO)
            for j in range(M):
                total = total + row_simd(A, j * ROWS) * row_simd(x, (j * d + c) * ROWS)
            put_simd(y, (i * d + c) * ROWS, total)
    for m in range(M):
        _attend(M, d, asked, m * d, y, A)
        total = row_simd(v, m * ROWS)
        for i in range(M):
            for c in range(d):
                heard = output[m, c] * row_simd(A, i * ROWS)
                total = total + heard * row_simd(y, (i * d + c) * ROWS)
        put_simd(v, m * ROWS, total)


@simd_function
def _attend(M: int, d: int, query: Any, first: int, keys: Any, A: Any) -> None:
    """Write A_j = softmax_j(q · k_j), (M,); q is d numbers of `query` from `first` on."""
    top, total = of_all(_LEAST), of_all(_ZERO)
    for j in range(M):
        a = of_all(_ZERO)
        for c in range(d):
            a = a + row_simd(query, (first + c) * ROWS) * row_simd(keys, (j * d + c) * ROWS)
        put_simd(A, j * ROWS, a)
        top = larger(a, top)
    for j in range(M):
        e = exponential(row_simd(A, j * ROWS) - top)
        put_simd(A, j * ROWS, e)
        total = total + e
    inverse = of_all(_ONE) / total
    for j in range(M):
        put_simd(A, j * ROWS, row_simd(A, j * ROWS) * inverse)
