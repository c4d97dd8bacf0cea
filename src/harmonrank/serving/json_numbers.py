"""JSON numbers: a list of numbers goes straight from the body of a request into an array.

A list of Python floats costs an object per number twice, once to make it and once to copy it. Here
the bytes are read once, and each number is rounded to the nearest double, as Python does:
exactly where digits and power of ten are doubles themselves, else by the algorithm of Eisel and
Lemire (D. Lemire, "Number parsing at a gigabyte per second", 2021).
"""

__all__ = ["numbers"]

from typing import Any

import numpy as np

from harmonrank.support.kernel import inline_kernel, kernel
from harmonrank.support.storage.decoding import decode_json

_FEWEST, _MOST = -60, 30
"""Powers of ten that the table holds; other numbers are left to the JSON library."""
_EXACT = 22  # 10^22 is the last power that is a double.
_DIGITS = 19  # As many fit into 64 bits.
_U = np.uint64
_ZERO, _NINE = np.uint8(48), np.uint8(9)


def numbers(raw: memoryview | bytes, what: str) -> np.ndarray:
    """Return the numbers of a JSON list as float64, and NaN for a null.

    Args:
        raw: A whole and valid JSON value.
        what: Begins the error, if it is no list of numbers.

    >>> numbers(b"[0.25, 1e-3, null]", "Scores")
    array([0.25 , 0.001,   nan])
    """
    if raw[-1:] == b"]":  # The loops below end there at the latest, whatever comes before.
        found = np.empty(len(raw) // 2 + 1)  # A number and its comma have two bytes at least.
        count = _read(np.frombuffer(raw, np.uint8), found, _HIGH, _LOW, _TENS)
        if count >= 0:
            return found[:count].copy()
    return np.array(decode_json(bytes(raw), list[float | None], what), np.float64)


def _powers() -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second 64 bits of 5^q; for q < 0 rounded up."""
    made = []
    for q in range(_FEWEST, _MOST + 1):
        five = 5 ** abs(q)
        power = five << 128 if q >= 0 else (1 << 2 * five.bit_length() + 128) // five + 1
        made.append(power >> power.bit_length() - 128)
    high, low = [p >> 64 for p in made], [p & (1 << 64) - 1 for p in made]
    return np.array(high, np.uint64), np.array(low, np.uint64)


_HIGH, _LOW = _powers()
_TENS = 10.0 ** np.arange(_EXACT + 1)


@inline_kernel
def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the first and the second 64 bits of a · b."""
    half, mask = _U(32), _U(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    middle = a1 * b0 + (a0 * b0 >> half)
    rest = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (rest >> half), a * b


@kernel
def _rounded(digits: Any, q: int, high: np.ndarray, low: np.ndarray) -> Any:
    """Return the bits of digits · 10^q as a double, or 0 if it takes more than this to tell."""
    zeros = 0
    while not digits >> _U(63):
        digits, zeros = digits << _U(1), zeros + 1
    first, second = _product(digits, high[q - _FEWEST])
    if first & _U(0x1FF) == _U(0x1FF):  # The bits that are left out could carry over.
        more, _ = _product(digits, low[q - _FEWEST])
        second += more
        if more > second:
            first += _U(1)
    if second == _U(0xFFFFFFFFFFFFFFFF) or second <= _U(1):
        return _U(0)  # Perhaps half-way between two doubles.
    top = np.int64(first >> _U(63))
    mantissa = first >> _U(top + 9)
    power = (217706 * q >> 16) + 63 + top - zeros + 1023
    mantissa = (mantissa + (mantissa & _U(1))) >> _U(1)
    if mantissa >> _U(53):
        mantissa, power = mantissa >> _U(1), power + 1
    return (mantissa & _U(0xFFFFFFFFFFFFF)) | _U(power) << _U(52)


@inline_kernel
def _digits(text: np.ndarray, i: int, found: Any) -> tuple[int, Any]:
    """Append the digits from place i on to a number; return where they end, and the number."""
    while True:
        digit = text[i] - _ZERO  # Wraps around below 0, so one comparison is enough.
        if digit > _NINE:
            return i, found
        found = found * _U(10) + _U(digit)
        i += 1


@kernel
def _power(text: np.ndarray, i: int) -> tuple[int, int]:
    """Read the power of ten behind an e; return where it ends, and the power."""
    negative = text[i] == 45
    i += text[i] == 45 or text[i] == 43
    found = 0
    while 48 <= text[i] <= 57:
        found = min(found * 10 + (text[i] - 48), 1000)
        i += 1
    return i, -found if negative else found


@kernel
def _read(
    text: np.ndarray, found: np.ndarray, high: np.ndarray, low: np.ndarray, tens: np.ndarray
) -> int:
    """Read a list of numbers; return how many, or −1 for whatever else there is."""
    bits = found.view(np.uint64)
    i, count = 1, 0
    if text[0] != 91:  # [
        return -1
    while True:
        while text[i] <= 32 or text[i] == 44:  # Spaces and commas: the JSON is valid.
            i += 1
        if text[i] == 93:  # ]
            return count
        if text[i] == 110 and text[i + 1] == 117 and text[i + 2] == 108 and text[i + 3] == 108:
            found[count] = np.nan  # null
            i, count = i + 4, count + 1
            continue
        negative = text[i] == 45
        i += negative
        if not 48 <= text[i] <= 57:
            return -1
        begun, q = i, 0
        i, digits = _digits(text, i, _U(0))
        if text[i] == 46:  # .
            point = i + 1
            i, digits = _digits(text, point, digits)
            q = point - i
        if i - begun > _DIGITS and _significant(text, begun, i) > _DIGITS:
            return -1
        if text[i] == 101 or text[i] == 69:  # e, E
            i, e = _power(text, i + 1)
            q += e
        if digits >> _U(53) == 0 and -_EXACT <= q <= _EXACT:
            found[count] = np.int64(digits) / tens[-q] if q < 0 else np.int64(digits) * tens[q]
        elif digits == 0:
            found[count] = 0.0
        elif _FEWEST <= q <= _MOST:
            bits[count] = _rounded(digits, q, high, low)
            if bits[count] == 0:
                return -1
        else:
            return -1
        if negative:
            found[count] = -found[count]
        count += 1


@kernel
def _significant(text: np.ndarray, begun: int, end: int) -> int:
    """Return how many digits a number has, without zeros in front."""
    while begun < end and (text[begun] == 48 or text[begun] == 46):
        begun += 1
    size = 0
    for i in range(begun, end):
        size += text[i] != 46
    return size
