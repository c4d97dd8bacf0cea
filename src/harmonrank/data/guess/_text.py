"""The guessed schema as TOML with comments, to be corrected by hand."""

__all__ = ["commented_toml"]

import re
from collections.abc import Mapping

from harmonrank.data.guess._guess import Guess
from harmonrank.data.schema import toml_value


def commented_toml(guess: Guess, table: str) -> str:
    """Return a schema file that says why each column is what it is."""
    schema = guess.schema
    parts = [
        [
            f"# Guessed by `harmonrank init` from {guess.rows:,} rows of {_line(table)}.",
            "# Correct what is wrong; docs/schema.md explains every key.",
        ],
        _role(guess, "request", schema.request, "Candidates that were shown together share it."),
        _role(guess, "time", schema.time, "When a row was shown; --split time cuts by it."),
    ]
    if schema.sample_weight:
        text = "How much a row counts."
        parts.append(_role(guess, "sample_weight", schema.sample_weight, text))
    parts += [_context(guess), _left_out(guess), _objectives(guess), _scale(guess)]
    first = _key(next(iter(schema.objectives)))
    text = "# What the AUC of an objective counts; 1 where it is not named."
    parts.append([text, "# [weights]", f"# {first} = 2.0"])
    if schema.truth:
        text = "# True probabilities, which only a world knows."
        parts.append([text, "[truth]", *_pairs(schema.truth)])
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _role(guess: Guess, key: str, name: str | None, meaning: str) -> list[str]:
    if name is None:
        return [f"# {meaning}", f'# {key} = "COLUMN"']
    return [f"# {meaning}", f"{key} = {toml_value(name)}  # {_why(guess, name)}"]


def _context(guess: Guess) -> list[str]:
    schema = guess.schema
    lines = ["# What describes the user and the moment, the same for all candidates of a request."]
    if schema.time:
        hour, weekday = (toml_value(f"{schema.time}:{part}") for part in ("hour", "weekday"))
        lines.append(_line(f"# Of the time, {hour} and {weekday} may be named too."))
    named = [f"    {toml_value(name)},  # {_why(guess, name)}" for name in schema.context]
    return [*lines, "context = [", *named, "]"]


def _left_out(guess: Guess) -> list[str]:
    left = [name for name, (role, _) in guess.reasons.items() if role == "left out"]
    return ["# Left out:" * bool(left), *(f"# {_line(name)}: {_why(guess, name)}" for name in left)]


def _objectives(guess: Guess) -> list[str]:
    lines = ["# Label = its score.", "[objectives]"]
    for label, score in guess.schema.objectives.items():
        lines += [f"# {_why(guess, label)}; {_why(guess, score)}"]
        lines += _pairs({label: score})
    return lines


def _scale(guess: Guess) -> list[str]:
    scale, text = guess.schema.scale, "# What scores are: probability, percent, logit or any."
    if scale:
        return [text, "[scale]", *_pairs(scale)]
    score = _key(next(iter(guess.schema.objectives.values())))
    return [text, "# [scale]", f'# {score} = "percent"']


def _pairs(pairs: Mapping[str, str]) -> list[str]:
    return [f"{_key(name)} = {toml_value(column)}" for name, column in pairs.items()]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def _why(guess: Guess, name: str) -> str:
    return _line(guess.reasons[name][1])


def _line(text: str) -> str:
    """Return text that ends no comment: TOML allows no control sign in one."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)
