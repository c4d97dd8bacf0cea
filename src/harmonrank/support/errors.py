"""What can go wrong, each kind derived from the builtin that fits it.

A message says what was expected, what was received and the remedy, in one or two sentences.
"""

__all__ = [
    "ConvergenceWarning",
    "DataError",
    "DependencyError",
    "DivergenceError",
    "EngineError",
    "ExportError",
    "HarmonRankError",
    "ModelFileError",
    "OutputError",
    "SourceError",
    "UsageError",
    "did_you_mean",
    "printable",
    "refuse_unknown",
    "shown",
]

from collections.abc import Collection, Iterable
from typing import Any


class HarmonRankError(Exception):
    """Every error that this package raises on purpose."""


class ConvergenceWarning(UserWarning):
    """A fit ended before it converged; its result is that of its last step."""


class UsageError(HarmonRankError, ValueError):
    """An argument has the wrong shape, type or value."""


class DataError(HarmonRankError, ValueError):
    """A table does not hold what its schema says."""


class ModelFileError(HarmonRankError, ValueError):
    """A saved model is damaged, incomplete or of a newer format."""


class OutputError(HarmonRankError, OSError):
    """An output cannot be written, or would overwrite something."""


class SourceError(HarmonRankError, ConnectionError):
    """A source or a sink of events cannot be reached; the operation may be tried again."""


class DependencyError(HarmonRankError, ImportError):
    """An optional package is not installed."""


class ExportError(HarmonRankError, ArithmeticError):
    """An exported model does not compute what its source computes."""


class EngineError(HarmonRankError, RuntimeError):
    """A cluster cannot be reached, or has lost work that it could not repeat."""


class DivergenceError(HarmonRankError, ArithmeticError):
    """Training produced a score or loss that is not finite."""


def did_you_mean(word: Any, known: Iterable[str]) -> str:
    """Return the end of an error message: the nearest known word, or all of them.

    >>> did_you_mean("widht", ["width", "buckets"])
    "Did you mean 'width'?"
    >>> did_you_mean("zzz", ["width", "buckets"])
    'Known: width, buckets.'
    """
    from difflib import get_close_matches

    known = list(known)
    near = get_close_matches(str(word), known, n=1)
    return f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known)}."


def refuse_unknown(
    names: Iterable[Any],
    known: Collection[str],
    sentence: str,
    kind: type[HarmonRankError] = UsageError,
) -> None:
    """Refuse a name that is not known.

    >>> refuse_unknown(["widht"], ["width", "buckets"], "There is no option '{}'.")
    Traceback (most recent call last):
    harmonrank.support.errors.UsageError: There is no option 'widht'. Did you mean 'width'?

    Args:
        names: What came.
        known: What there is.
        sentence: What is wrong; the name takes the place of the braces.
        kind: Of the error.
    """
    for name in names:
        if name not in known:
            wrong = sentence.replace("{}", str(name)[:100])
            raise kind(f"{wrong} {did_you_mean(name, known)}")


def shown(value: Any) -> str:
    """Return a received value for an error message: its `repr`, cut to one short line.

    >>> shown("x"), shown(list(range(1000)))
    ("'x'", '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1...')
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # A number of very many digits, or an object with a broken `repr`.
        return f"a {type(value).__name__}"
    return text if len(text) <= 64 else f"{text[:60]}..."


def printable(text: str) -> str:
    r"""Return text with escaped control characters, so that it cannot control a terminal.

    >>> printable("a name\x1b[31m in red")
    'a name\\x1b[31m in red'
    """
    return "".join(
        sign if sign == "\n" or sign.isprintable() else sign.encode("unicode_escape").decode()
        for sign in text
    )
