"""Expression: arithmetic over the columns of a table, read by a whitelist; never run as code."""

__all__ = ["Expression"]

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Self
from warnings import catch_warnings, simplefilter

import numpy as np

from harmonrank.support.errors import UsageError, shown

_MOST_CHARACTERS = 2000
_MOST_DEPTH = 60

Values = Any
"""A column, or a number that stands for one of equal values; float64 either way."""

_BINARY: Mapping[type[ast.operator], Callable[..., Values]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
_UNARY: Mapping[type[ast.unaryop], Callable[..., Values]] = {
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
# A function and how many arguments it takes at least and at most.
_FUNCTIONS: Mapping[str, tuple[Callable[..., Values], int, int]] = {
    "log": (np.log, 1, 1),
    "exp": (np.exp, 1, 1),
    "sqrt": (np.sqrt, 1, 1),
    "abs": (np.abs, 1, 1),
    "min": (lambda *parts: _folded(np.minimum, parts), 2, 20),
    "max": (lambda *parts: _folded(np.maximum, parts), 2, 20),
}
_ALLOWED = f"numbers, column names, + - * / **, parentheses and {', '.join(_FUNCTIONS)}"


@dataclass(frozen=True)
class Expression:
    """A formula such as `p_click * (1 + 3*p_like)**0.5`.

    All of it is computed in float64, so that a power of a power overflows to infinity at once
    instead of taking for ever.

    >>> formula = Expression.parse("p_click * (1 + 3*p_like)**0.5")
    >>> formula.names
    ('p_click', 'p_like')
    >>> formula.values({"p_click": np.array([0.5, 1.0]), "p_like": np.array([1.0, 0.0])})
    array([1., 1.])
    """

    text: str
    names: tuple[str, ...]
    _tree: ast.expr

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a formula.

        Raises:
            UsageError: It is not arithmetic, or too long or nested too deep.
        """
        if not isinstance(text, str) or not text.strip():
            raise UsageError(
                f"A formula must be text such as 'p_click * (1 + p_like)'. Got {shown(text)}."
            )
        if len(text) > _MOST_CHARACTERS:
            raise UsageError(
                f"A formula may have {_MOST_CHARACTERS:,} characters. Got {len(text):,}; compute "
                "the score beforehand and name its column."
            )
        try:
            with catch_warnings():
                simplefilter("ignore")  # of what the list refuses anyway
                tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = getattr(error, "msg", None) or "it is nested too deep"
            raise UsageError(
                f"The formula {shown(text)} cannot be read: {reason}; it takes {_ALLOWED}."
            ) from None
        found: dict[str, None] = {}
        _check(tree, text, found, 0)
        return cls(text.strip(), tuple(found), tree)

    def values(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the value in every row; not finite where it divides by 0 or overflows."""
        rows = len(next(iter(columns.values()))) if columns else 1
        known = {name: np.asarray(columns[name], np.float64) for name in self.names}
        with np.errstate(all="ignore"):
            found = _value(self._tree, known)
        return np.broadcast_to(np.asarray(found, np.float64), (rows,)).copy()


def _check(node: ast.AST, text: str, names: dict[str, None], depth: int) -> None:
    """Refuse what is not on the list, and collect the names of columns."""
    if depth > _MOST_DEPTH:
        raise UsageError(
            f"The formula {shown(text)} is nested deeper than {_MOST_DEPTH}; compute the score "
            "beforehand and name its column."
        )
    if isinstance(node, ast.Name):
        names.setdefault(node.id)
        return
    if isinstance(node, ast.Constant):
        _check_number(node.value, text)
        return
    for part in _parts(node, text):
        _check(part, text, names, depth + 1)


def _parts(node: ast.AST, text: str) -> list[ast.expr]:
    """Return the operands of an allowed operation."""
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return [node.operand]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _arguments(node.func.id, node.args, text)
    piece = ast.get_source_segment(text.strip(), node) if isinstance(node, ast.expr) else None
    raise UsageError(
        f"The formula {shown(text)} has {shown(piece or type(node).__name__)}, which it may not; "
        f"it takes {_ALLOWED}."
    )


def _arguments(name: str, arguments: list[ast.expr], text: str) -> list[ast.expr]:
    if name not in _FUNCTIONS:
        raise UsageError(
            f"The formula {shown(text)} calls '{name}', which it may not; it takes {_ALLOWED}."
        )
    _, least, most = _FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        expected = f"{least}" if least == most else f"{least} to {most}"
        raise UsageError(
            f"'{name}' in the formula {shown(text)} takes {expected} arguments. "
            f"Got {len(arguments)}."
        )
    return arguments


def _check_number(value: Any, text: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        fine = number and isfinite(float(value))
    except OverflowError:
        fine = False
    if not fine:
        raise UsageError(
            f"The formula {shown(text)} has {shown(value)} where a finite number was expected; it "
            f"takes {_ALLOWED}."
        )


def _value(node: ast.expr, columns: Mapping[str, np.ndarray]) -> Values:
    """Compute a checked tree."""
    if isinstance(node, ast.Name):
        return columns[node.id]
    if isinstance(node, ast.Constant):
        return np.float64(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, columns), _value(node.right, columns)
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        return _UNARY[type(node.op)](_value(node.operand, columns))
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    function = _FUNCTIONS[node.func.id][0]
    return function(*(_value(part, columns) for part in node.args))


def _folded(function: Callable[..., Values], parts: tuple[Values, ...]) -> Values:
    result = parts[0]
    for part in parts[1:]:
        result = function(result, part)
    return result
