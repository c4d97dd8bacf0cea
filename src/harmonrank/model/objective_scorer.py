"""Objective scorer: the network with one head per objective on the CPU, without PyTorch.

All matrices that meet no row in between are multiplied once. Rows go in blocks with the row as the
last axis, so that every inner loop runs over neighbouring floats and becomes vector instructions.
"""

__all__ = ["ObjectiveScorer"]

from collections.abc import Mapping
from math import sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from harmonrank.errors import DataError
from harmonrank.kernel import product_kernel
from harmonrank.model.objective_config import FARTHEST, REACH, SMALLEST_SCORE, ObjectiveConfig
from harmonrank.together import each_part, edges_of

_BLOCK = 64
_PART_BLOCKS = 32  # Some thousand rows; a request's are one part.

_ZERO, _ONE = np.float32(0), np.float32(1)
_LOW, _HIGH = np.float32(SMALLEST_SCORE), np.float32(1 - SMALLEST_SCORE)
_REACH, _FARTHEST = np.float32(REACH), np.float32(FARTHEST)


class ObjectiveScorer:
    """Turns scores and context codes into the probability of every objective.

    Each row's result depends on that row alone, whatever else is scored with it.

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
        p = np.empty(scores.shape)
        edges = edges_of(-(-len(scores) // _BLOCK), _PART_BLOCKS)
        given = (scores, codes, self._first, self.context, *self.prior, *self.paths, p)
        score: Any = _score
        each_part(lambda part: score(*given, edges[part], edges[part + 1]), len(edges) - 1)
        return p

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

    Row 0 is what is there without context; then the slots of every feature.
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


@product_kernel
def _score(
    scores: Any, codes: Any, first: Any, context: Any, centre: Any, spread: Any, slope: Any,
    intercept: Any, share: Any, table: Any, W_r: Any, output: Any, gate: Any, gate_bias: Any,
    gated: Any, linear: Any, p: Any, low: int, high: int,
) -> None:  # fmt: skip
    """Score the blocks from low to high."""
    M, _, d = table.shape
    R = _BLOCK
    x, y = np.empty((M, d, R), np.float32), np.empty((M, d, R), np.float32)
    A, z = np.empty((M, M, R), np.float32), np.empty((M, R), np.float32)
    v = np.empty((M, R), np.float32)
    asked = np.empty((context.shape[1], R), np.float32)
    for block in range(low, high):
        start = block * R
        n = min(R, len(scores) - start)
        _embed(scores, start, n, centre, spread, slope, intercept, table, x, z)
        _ask(codes, start, n, first, context, asked)
        for m in range(M):
            for r in range(n):
                v[m, r] = asked[M * d + m, r]
        _add_agnostic(n, x, asked, gate, gate_bias, gated, linear, y, v)
        _add_relations(n, x, asked, W_r, output, y, A, v)
        for m in range(M):
            for r in range(n):
                p[start + r, m] = _ONE / (_ONE + np.exp(-(z[m, r] + share[m] * v[m, r])))


@product_kernel
def _embed(
    scores: Any, start: int, n: int, centre: Any, spread: Any, slope: Any, intercept: Any,
    table: Any, x: Any, z: Any,
) -> None:  # fmt: skip
    """Write the embeddings x, (M, d, rows), and the prior's logits z, (M, rows)."""
    M, B, d = table.shape
    steps = np.float32((B - 1) / (2 * REACH))
    for m in range(M):
        for r in range(n):
            s = min(max(scores[start + r, m], _LOW), _HIGH)
            logit = np.log(s) - np.log1p(-s)
            z[m, r] = slope[m] * logit + intercept[m]
            u = min(max((logit - centre[m]) / spread[m], -_FARTHEST), _FARTHEST)
            inside = min(max(u, -_REACH), _REACH)
            place = (inside + _REACH) * steps
            cell = min(np.int64(place), B - 2)
            part = place - np.float32(cell)
            for c in range(d):
                left = table[m, cell, c]
                x[m, c, r] = left + part * (table[m, cell + 1, c] - left)
            x[m, 0, r] += u - inside


@product_kernel
def _ask(codes: Any, start: int, n: int, first: Any, context: Any, asked: Any) -> None:
    """Add up what the context of every row asks for, (columns, rows)."""
    width = context.shape[1]
    row = np.empty(width, np.float32)
    for r in range(n):
        for i in range(width):  # A copy of a slice would take seconds to compile.
            row[i] = context[0, i]
        for feature in range(len(first)):
            value = first[feature] + codes[start + r, feature]
            for i in range(width):
                row[i] += context[value, i]
        for i in range(width):
            asked[i, r] = row[i]


@product_kernel
def _add_agnostic(
    n: int, x: Any, asked: Any, gate: Any, gate_bias: Any, gated: Any, linear: Any, g: Any, v: Any
) -> None:
    """Add s2 and s3 to v; g[·, 0] is room for the gates."""
    M, d = x.shape[0], x.shape[1]
    for j in range(M):
        for r in range(n):
            g[j, 0, r] = gate_bias[j]
        for c in range(d):
            for r in range(n):
                g[j, 0, r] += gate[c] * x[j, c, r]
        for r in range(n):
            g[j, 0, r] = _ONE / (_ONE + np.exp(-g[j, 0, r]))
    for m in range(M):
        for j in range(M):
            by_context = M * d + M + m * M + j
            for r in range(n):
                v[m, r] += asked[by_context, r] * x[j, 0, r]
            for c in range(d):
                a, b = linear[m, j * d + c], gated[m, j * d + c]
                for r in range(n):
                    v[m, r] += (a + b * g[j, 0, r]) * x[j, c, r]


@product_kernel
def _add_relations(
    n: int, x: Any, asked: Any, W_r: Any, output: Any, y: Any, A: Any, v: Any
) -> None:
    """Add s1 to v: self-attention, then what every head asks of its result."""
    M, d = x.shape[0], x.shape[1]
    for i in range(M):
        _product(W_r, x[i], y[i], n)
    for i in range(M):
        for j in range(M):
            _dot(y[i], x[j], A[i, j], n)
        _softmax(A[i], n)
    for i in range(M):  # y becomes x_r
        for c in range(d):
            for r in range(n):
                y[i, c, r] = _ZERO
            for j in range(M):
                for r in range(n):
                    y[i, c, r] += A[i, j, r] * x[j, c, r]
    for m in range(M):
        for i in range(M):
            _dot(asked[m * d : (m + 1) * d], y[i], A[0, i], n)
        _softmax(A[0], n)
        for i in range(M):
            for c in range(d):
                weight = output[m, c]
                for r in range(n):
                    v[m, r] += A[0, i, r] * weight * y[i, c, r]


@product_kernel
def _product(W: Any, x: Any, y: Any, n: int) -> None:
    """Write y = x W, the row being the last axis."""
    d = len(W)
    for c in range(d):
        for r in range(n):
            y[c, r] = _ZERO
        for a in range(d):
            weight = W[a, c]
            for r in range(n):
                y[c, r] += x[a, r] * weight


@product_kernel
def _dot(a: Any, b: Any, total: Any, n: int) -> None:
    for r in range(n):
        total[r] = _ZERO
    for c in range(a.shape[0]):
        for r in range(n):
            total[r] += a[c, r] * b[c, r]


@product_kernel
def _softmax(a: Any, n: int) -> None:
    """Turn a, (objectives, rows), into its softmax over objectives."""
    M = a.shape[0]
    for r in range(n):
        top = a[0, r]
        for j in range(1, M):
            top = max(top, a[j, r])
        total = _ZERO
        for j in range(M):
            a[j, r] = np.exp(a[j, r] - top)
            total += a[j, r]
        inverse = _ONE / total
        for j in range(M):
            a[j, r] *= inverse
