"""Decoding: stored files as typed values, or one sentence on what is wrong with them."""

__all__ = ["MOST_BYTES", "check_format", "decode", "decode_json", "read_bytes", "read_toml"]

import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harmonrank import __version__
from harmonrank.support.errors import DataError, ModelFileError

MOST_BYTES = 1 << 28
"""The largest JSON file that is read; larger contents are stored as arrays."""

MOST_TEXT = 1 << 24
"""The largest file that is read of those that people write."""

T = TypeVar("T")


def read_bytes(path: Path, most: int = MOST_TEXT) -> bytes:
    """Return the bytes of a file; a larger one, or an endless device, is refused."""
    with path.open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise DataError(f"'{path}' has more than {most:,} bytes; expected a smaller file.")
    return content


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """Return the parts of a TOML file.

    Args:
        path: The file.
        what: What it should be, for the error.

    Raises:
        FileNotFoundError: It is not there.
        DataError: It is too large, or no TOML.
    """
    try:
        return tomllib.loads(read_bytes(path).decode())
    except (FileNotFoundError, DataError):
        raise
    # A whole number of thousands of digits is a ValueError, as are wrong TOML and wrong UTF-8.
    except (OSError, RecursionError, ValueError) as error:
        raise DataError(f"'{path}' cannot be read as {what}: {error}.") from None


def decode(value: Any, kind: type[T], what: str) -> T:
    """Return plain values (mappings, lists, numbers, text) as a type.

    Args:
        value: What a JSON or TOML file holds.
        kind: A struct, a dataclass, or any other type with bounds (`msgspec.Meta`).
        what: Begins the error.

    >>> decode([1, 2], tuple[int, ...], "Sizes")
    (1, 2)
    >>> decode([1, "a"], tuple[int, ...], "Sizes")
    Traceback (most recent call last):
    ...
    harmonrank.support.errors.DataError: Sizes: expected int, got str at [1].
    """
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DataError(f"{what}: {_reason(error)}.") from None


def decode_json(text: bytes, kind: type[T], what: str) -> T:
    """Return JSON as a type; NaN and infinities are no JSON."""
    if len(text) > MOST_BYTES:
        raise DataError(f"{what} has {len(text):,} bytes; expected at most {MOST_BYTES:,}.")
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise DataError(f"{what}: {_reason(error)}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{what} is not JSON: {_reason(error)}.") from None


def check_format(what: str, version: int, writer: str, expected: int) -> None:
    """Refuse a format that another version of the package wrote.

    >>> check_format("'m' has model", 3, "9.0", 2)
    Traceback (most recent call last):
    ...
    harmonrank.support.errors.ModelFileError: 'm' has model format 3, written by harmonrank 9.0;
    harmonrank 0.1.0 reads format 2, so update it.
    """
    if version == expected:
        return
    remedy = "update it" if version > expected else "fit it again"
    raise ModelFileError(
        f"{what} format {version}, written by harmonrank {writer}; harmonrank {__version__} reads "
        f"format {expected}, so {remedy}."
    )


def _reason(error: Exception) -> str:
    text, _, place = str(error).replace("`", "").partition(" - at ")
    place = place.removeprefix("$").removeprefix(".")
    text = f"{text[:1].lower()}{text[1:]}"
    return f"{text} at {place}" if place else text
