"""Axis: where a value stands on a picture, and which values have a tick."""

__all__ = ["Axis", "axis_of"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any, Literal

Kind = Literal["linear", "log", "category"]
Ends = tuple[float, float]

_ROOM = 0.05
# Pixels that a tick's text takes along its axis.
_WIDE, _HIGH = 48, 32
_LONGEST = 30


@dataclass(frozen=True)
class Axis:
    """One axis of a picture.

    Attributes:
        ends: The values at both ends; logarithms on a log axis, places on one of categories.
        pixels: Where the ends are on the picture.
        ticks: Values with their texts, in units of the ends.
    """

    kind: Kind
    categories: tuple[str, ...]
    ends: Ends
    pixels: Ends
    ticks: tuple[tuple[float, str], ...]

    def at(self, value: Any) -> float | None:
        """Return the pixel of a value; None where it has no place."""
        if value is None or (self.kind == "log" and value <= 0):
            return None
        if self.kind == "category":
            return self.pixel(self.categories.index(str(value)))
        return self.pixel(log10(value) if self.kind == "log" else value)

    def pixel(self, place: float) -> float:
        """Return the pixel of a place in units of the ends."""
        (low, high), (start, end) = self.ends, self.pixels
        return start + (place - low) / (high - low) * (end - start)

    @property
    def step(self) -> float:
        """How many pixels a unit takes."""
        return abs(self.pixel(1) - self.pixel(0))


def axis_of(options: Mapping[str, Any], values: Sequence[Any], pixels: Ends) -> Axis:
    """Return the axis that Plotly's options describe, wide enough for the values.

    >>> axis = axis_of({}, [0.0, 1.0], (0, 300))
    >>> [text for _, text in axis.ticks], round(axis.at(0.5))
    (['0.0', '0.2', '0.4', '0.6', '0.8', '1.0'], 150)
    """
    known = [value for value in values if value is not None]
    kind: Kind = options.get("type") or _kind(known)
    categories = tuple(dict.fromkeys(map(str, known))) if kind == "category" else ()
    ends = (-0.5, len(categories) - 0.5) if categories else _ends(kind, options, known)
    if options.get("autorange") == "reversed":
        ends = ends[::-1]
    ticks = _ticks(
        kind, options, categories, ends, abs(pixels[1] - pixels[0]), pixels[0] > pixels[1]
    )
    return Axis(kind, categories, ends, pixels, ticks)


def _kind(values: Sequence[Any]) -> Kind:
    return "category" if any(isinstance(value, str) for value in values) else "linear"


def _ends(kind: Kind, options: Mapping[str, Any], values: Sequence[float]) -> Ends:
    if "range" in options:
        low, high = options["range"]
        return low, high
    if kind == "log":
        values = [log10(value) for value in values if value > 0]
    zero = [0.0] * (options.get("rangemode") == "tozero")
    low, high = min([*values, *zero], default=0.0), max([*values, *zero], default=1.0)
    room = _ROOM * (high - low) or 0.05 * abs(high) or 0.5
    return low - room * (low != 0 or not zero), high + room * (high != 0 or not zero)


def _ticks(
    kind: Kind,
    options: Mapping[str, Any],
    categories: Sequence[str],
    ends: Ends,
    length: float,
    upright: bool,
) -> tuple[tuple[float, str], ...]:
    if "tickvals" in options:
        return tuple(zip(options["tickvals"], options["ticktext"], strict=True))
    if categories:
        return tuple((i, _short(name)) for i, name in enumerate(categories))
    most = max(2, int(length / (_HIGH if upright else _WIDE)))
    if kind == "log":
        return _powers(ends, percent="%" in options.get("tickformat", ""))
    return _round(ends, most)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _powers(ends: Ends, *, percent: bool) -> tuple[tuple[float, str], ...]:
    """Return powers of ten; where there are fewer than two, also their double and fivefold."""
    low, high = sorted(ends)
    for multiples in ((1,), (1, 2, 5)):
        found = [m * 10.0**p for p in range(floor(low), ceil(high) + 1) for m in multiples]
        inside = [value for value in found if low <= log10(value) <= high]
        if len(inside) > 1:
            break
    return tuple((log10(v), f"{100 * v:.3g} %" if percent else f"{v:g}") for v in inside)


def _round(ends: Ends, most: int) -> tuple[tuple[float, str], ...]:
    """Return round numbers at equal distances, at most so many.

    >>> _round((0, 2.2e6), 4)
    ((0.0, '0'), (1000000.0, '1M'), (2000000.0, '2M'))
    """
    low, high = sorted(ends)
    power = 10.0 ** floor(log10((high - low) / most))
    step = next(m * power for m in (1, 2, 5, 10) if m * power * most >= (high - low) * 0.999)
    unit, sign = next(((u, s) for u, s in ((1e6, "M"), (1e3, "k")) if step >= u), (1.0, ""))
    digits = max(0, -floor(log10(step / unit) + 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return tuple((i * step, _text(i * step / unit, digits, sign)) for i in range(first, last + 1))


def _text(value: float, digits: int, sign: str) -> str:
    text = f"{value:.{digits}f}".replace("-", "−")
    return "0" if value == 0 and sign else text + sign
