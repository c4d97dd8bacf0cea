"""Logits, sigmoids and bounds of probabilities are written once."""

import ast
from pathlib import Path

import numpy as np
import pytest

import harmonrank
from harmonrank.support.logistic import (
    LARGEST_BELOW_ONE,
    SMALLEST_POSITIVE,
    SMALLEST_PROBABILITY,
    SMALLEST_SCORE,
    SMALLEST_SINGLE,
    log_likelihoods,
    logit,
    sigmoid,
)

SOURCE = Path(harmonrank.__file__).parent
HERE = "support/logistic.py"
# Who writes one by hand, and why. A file that no longer does is not named here.
REASONS = {
    # Nodes of an ONNX graph, which cannot call our functions; the bound itself is imported.
    "export/inputs.py": {"bound"},
    # The bound is half an event among the rows of an update, not a constant.
    "paper/methods/network_losses.py": {"bound"},
}


def called(node, *names):
    """Return whether a node calls a function or method of one of these names."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    return (getattr(function, "attr", None) or getattr(function, "id", None)) in names


def inside(node, *names):
    """Return whether such a call stands in a node."""
    return any(called(part, *names) for part in ast.walk(node))


def one_less(node):
    """Return what a node subtracts from 1; None if it is no such difference."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        left = node.left
        return node.right if isinstance(left, ast.Constant) and left.value == 1 else None
    return None


def is_sigmoid(node):
    """1 / (1 + exp(…))."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
        return False
    below = node.right
    return isinstance(below, ast.BinOp) and isinstance(below.op, ast.Add) and inside(below, "exp")


def is_logit(node):
    """log(p / (1 − p)), or log(p) − log(1 − p) with one of the ways to write the latter."""
    if called(node, "log") and node.args and isinstance(node.args[0], ast.BinOp):
        ratio = node.args[0]
        return isinstance(ratio.op, ast.Div) and one_less(ratio.right) is not None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Add):
        logs = [part for part in ast.walk(node) if called(part, "log", "log1p")]
        return called(node.left, "log") and any(
            called(part, "log1p") or (part.args and one_less(part.args[0]) is not None)
            for part in logs
        )
    return False


def is_bound(node):
    """A clip or minimum at 1 − ε, of a constant or a name."""
    if not called(node, "clip", "minimum", "min"):
        return False
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    edges = [one_less(part) for part in given]
    return any(isinstance(edge, ast.Constant | ast.Name | ast.Attribute) for edge in edges)


def written_by_hand(code):
    """Return which of the three a file's code holds."""
    kinds = {"sigmoid": is_sigmoid, "logit": is_logit, "bound": is_bound}
    nodes = list(ast.walk(ast.parse(code)))
    return {kind for kind, is_one in kinds.items() if any(map(is_one, nodes))}


def test_nobody_else_writes_a_logit_a_sigmoid_or_a_bound_by_hand():
    files = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
    del files[HERE]
    held = {name: written_by_hand(path.read_text("utf-8")) for name, path in files.items()}
    assert {name: kinds for name, kinds in held.items() if kinds} == REASONS


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("1 / (1 + np.exp(-x))", "sigmoid"),
        ("1.0 / (np.exp(a - b * c) + 1.0)", "sigmoid"),
        ("np.log(p / (1 - p))", "logit"),
        ("math.log(p) - math.log1p(-p)", "logit"),
        ("np.log(p[i]) - np.log(1.0 - p[i])", "logit"),
        ("y * np.log(p) - offset", None),
        ("np.clip(p, 1e-12, 1 - 1e-12)", "bound"),
        ("p.clip(edge, 1 - edge)", "bound"),
        ("p.clip(max=1 - EDGE)", "bound"),
        ("np.minimum(p, 1.0 - 1e-9)", "bound"),
        ("np.clip(p, 0, 1)", None),
        ("1 / (1 + x)", None),
    ],
)
def test_the_search_sees_them_in_every_usual_spelling(code, kind):
    assert written_by_hand(code) == ({kind} if kind else set())


def test_bounds_differ_from_0_and_1_in_the_precision_they_are_for():
    for smallest in (SMALLEST_PROBABILITY, SMALLEST_SCORE):
        assert np.isfinite(logit([0.0, 1.0], smallest)).all()
    assert np.float32(1.0 - SMALLEST_SINGLE) < np.float32(1.0)
    assert SMALLEST_POSITIVE > 0.0
    assert np.nextafter(LARGEST_BELOW_ONE, 2.0) == 1.0


def test_a_sigmoid_is_finite_and_undoes_a_logit():
    x = np.array([-1e308, -750.0, -20.0, 0.0, 20.0, 750.0, 1e308])
    p = sigmoid(x)
    assert (np.diff(p) >= 0).all()
    assert p[0] > 0.0
    assert p[-1] == 1.0
    np.testing.assert_allclose(logit(sigmoid(np.array([-20.0, -1.0, 3.0]))), [-20, -1, 3], 1e-6)
    assert sigmoid(np.float32([3.0])).dtype == np.float32


def test_log_likelihoods_are_finite_and_the_same_for_labels_of_any_type():
    p, labels = np.array([0.0, 1.0, 0.25, 0.25]), np.array([1, 0, 1, 0])
    whole = log_likelihoods(p, labels)
    assert np.isfinite(whole).all()
    assert whole[2] == np.log(0.25)
    np.testing.assert_allclose(whole[2:], log_likelihoods(p, labels.astype(float))[2:], rtol=1e-15)
