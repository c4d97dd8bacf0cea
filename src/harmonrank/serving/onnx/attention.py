"""Attention between a few tokens, by products and sums.

ONNX Runtime fuses a transposition with the product that follows, and then refuses no rows.
"""

__all__ = ["attended", "dots"]

import numpy as np

from harmonrank.serving.onnx.graph import Value


def dots(a: Value, b: Value) -> Value:
    """Return a_i · b_j of each row, (rows, i, j), of (rows, i, d) and (rows, j, d)."""
    return (a.new_axis(2) * b.new_axis(1)).sum(3)


def attended(x: Value, W: np.ndarray) -> Value:
    """Return softmax(x W xᵀ) x of each row, (rows, M, d)."""
    A = dots(x @ W, x).softmax()  # (rows, M, M)
    return (A.new_axis(3) * x.new_axis(1)).sum(2)
