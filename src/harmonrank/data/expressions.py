"""Expression: arithmetic over the columns of a table, read by a whitelist; never run as code."""

__all__ = ["Expression"]

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from math import isfinite
from typing import Any, NoReturn, Self
from warnings import catch_warnings, simplefilter

import numpy as np

from harmonrank.support.errors import UsageError, shown

_MOST_CHARACTERS = 2000
_MOST_DEPTH = 60

# A column, or a number that stands for one of equal values; float64 either way.
_Values = Any
_Rule = Callable[[Mapping[str, np.ndarray]], _Values]

_OPERATORS: Mapping[type[ast.AST], Callable[..., _Values]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
# A function and how many arguments it takes at least and at most.
_FUNCTIONS: Mapping[str, tuple[Callable[..., _Values], int, int]] = {
    "log": (np.log, 1, 1),
    "exp": (np.exp, 1, 1),
    "sqrt": (np.sqrt, 1, 1),
    "abs": (np.abs, 1, 1),
    "min": (lambda *parts: reduce(np.minimum, parts), 2, 20),
    "max": (lambda *parts: reduce(np.maximum, parts), 2, 20),
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
    _rule: _Rule = field(repr=False, compare=False)

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
        reader = _Reader(text)
        rule = reader.rule(tree, 0)
        return cls(text.strip(), tuple(reader.names), rule)

    def values(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the value in every row; not finite where it divides by 0 or overflows."""
        rows = len(next(iter(columns.values()))) if columns else 1
        known = {name: np.asarray(columns[name], np.float64) for name in self.names}
        with np.errstate(all="ignore"):
            value = self._rule(known)
        return np.broadcast_to(np.asarray(value, np.float64), (rows,)).copy()


class _Reader:
    """Turns a tree into what computes it, and refuses what is not on the list."""

    def __init__(self, text: str) -> None:
        self.text, self.names = text, dict[str, None]()

    def rule(self, node: ast.expr, depth: int) -> _Rule:
        """Return what computes a part of the formula."""
        if depth > _MOST_DEPTH:
            raise UsageError(
                f"The formula {shown(self.text)} is nested deeper than {_MOST_DEPTH}; compute the "
                "score beforehand and name its column."
            )
        match node:
            case ast.Name(id=name):
                self.names.setdefault(name)
                return lambda columns: columns[name]
            case ast.Constant(value=value):
                number = self._number(value)
                return lambda _: number
            case ast.BinOp(op=operator, left=left, right=right) if type(operator) in _OPERATORS:
                function, parts = _OPERATORS[type(operator)], [left, right]
            case ast.UnaryOp(op=operator, operand=part) if type(operator) in _OPERATORS:
                function, parts = _OPERATORS[type(operator)], [part]
            case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]):
                function = self._function(name, len(parts))
            case _:
                piece = ast.get_source_segment(self.text.strip(), node) or type(node).__name__
                self._refuse(f"has {shown(piece)}, which it may not")
        rules = [self.rule(part, depth + 1) for part in parts]
        return lambda columns: function(*(rule(columns) for rule in rules))

    def _function(self, name: str, given: int) -> Callable[..., _Values]:
        """Return an allowed function of so many arguments."""
        if name not in _FUNCTIONS:
            self._refuse(f"calls '{name}', which it may not")
        function, least, most = _FUNCTIONS[name]
        if not least <= given <= most:
            expected = f"{least}" if least == most else f"{least} to {most}"
            raise UsageError(
                f"'{name}' in the formula {shown(self.text)} takes {expected} arguments. "
                f"Got {given}."
            )
        return function

    def _number(self, value: Any) -> np.float64:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        try:
            fine = number and isfinite(float(value))
        except OverflowError:
            fine = False
        if not fine:
            self._refuse(f"has {shown(value)} where a finite number was expected")
        return np.float64(value)

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(f"The formula {shown(self.text)} {what}; it takes {_ALLOWED}.")
