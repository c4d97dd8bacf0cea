"""The guessed schema as TOML with comments, to be corrected by hand."""

__all__ = ["commented_toml"]

import re
from collections.abc import Iterable, Mapping
from typing import Any

import tomli_w

from harmonrank.data.guess._guess import Guess

# What each part of a schema is, and what stands there if it was not guessed, as a comment. TOML
# wants tables after all else.
_PARTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "request": ("Candidates that were shown together share it.", {"request": "COLUMN"}),
    "time": ("When a row was shown; --split time cuts by it.", {"time": "COLUMN"}),
    "sample_weight": ("How much a row counts.", {}),
    "context": (
        "What describes the user and the moment, the same for all candidates of a request. Of a "
        'time such as "t", "t:hour" and "t:weekday" may be named too.',
        {"context": ["COLUMN"]},
    ),
    "graded": ("Objectives whose label is a number.", {}),
    "objectives": ("Label = its score.", {}),
    "given": ("Objectives that are shown only where another happened.", {}),
    "scale": (
        "What scores are: probability, percent, logit or any.",
        {"scale": {"SCORE": "percent"}},
    ),
    "weights": (
        "What the AUC of an objective counts; 1 where it is not named.",
        {"weights": {"LABEL": 2.0}},
    ),
    "truth": ("True probabilities, which only a world knows.", {}),
}


def commented_toml(guess: Guess, table: str) -> str:
    """Return a schema file that says why each column is what it is."""
    left = [name for name, (role, _) in guess.reasons.items() if role == "left out"]
    paragraphs = [
        f"# Guessed by `harmonrank init` from {guess.rows:,} rows of {_line(table)}.\n"
        "# Correct what is wrong; docs/schema.md explains every key.",
        "\n".join(["# Left out:", *_reasons(guess, left)] * bool(left)),
    ]
    known = guess.schema.to_dict()
    for part, (meaning, example) in _PARTS.items():
        lines = [f"# {meaning}"]
        if part in known:
            lines += [*_reasons(guess, _columns_of(known[part])), _toml({part: known[part]})]
        elif example:
            lines += [f"# {line}" for line in _toml(example).splitlines()]
        else:
            continue
        paragraphs.append("\n".join(lines))
    return "\n\n".join(filter(None, paragraphs)) + "\n"


def _columns_of(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [*value, *value.values()] if isinstance(value, dict) else list(value)


def _reasons(guess: Guess, names: Iterable[str]) -> list[str]:
    return [f"#   {_line(n)}: {_line(guess.reasons[n][1])}" for n in names if n in guess.reasons]


def _toml(parts: dict[str, Any]) -> str:
    return tomli_w.dumps(parts).strip()


def _line(text: str) -> str:
    """Return text that ends no comment: TOML allows no control sign in one."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)
