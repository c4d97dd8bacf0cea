"""The figures within the sentences of a page, computed from stored results.

A claim names a page, a sentence with a hole `{}` for each figure, and a function that returns what
belongs there; those of speed, experiments and logs stand in files of their own.
`results_page.py` fills the holes in place; a test holds every page to it. So a sentence stays where
it is read, and a result that was measured again changes it.
"""

import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
HOLE = r"[-+−]?[\d,]*\.?\d+"
MEASURED = re.compile(
    r"(?<![\w.,`-])[\d,]*\.?\d+ (?:ms|ns|µs|s|MB|GB|times|×|rows per second|rows/s)\b"
)
CODE = re.compile(r"^```.*?^```|^ {4}[^\n]*", re.DOTALL | re.MULTILINE)


def read(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


class Claim(NamedTuple):
    """A sentence of a page with holes, and the function that fills them."""

    page: str
    sentence: str
    figures: Callable[[], Iterator[str]]


CLAIMS: list[Claim] = []


def claim(page: str, sentence: str) -> Callable[..., Any]:
    """Declare what fills a sentence of a page."""

    def declare(figures: Callable[[], Iterator[str]]) -> Callable[[], Iterator[str]]:
        CLAIMS.append(Claim(f"docs/{page}", sentence, figures))
        return figures

    return declare


def filled(text: str, sentence: str, figures: list[str]) -> str:
    """Return a text in which one sentence has these figures.

    >>> filled("It took\\n3.1 s.", "It took {} s", ["2.9"])
    'It took\\n2.9 s.'
    """
    holes = sentence.count("{}")
    if holes != len(figures):
        raise ValueError(f"{len(figures)} figures for {holes} holes: {sentence}")
    found = list(pattern_of(sentence).finditer(text))
    if len(found) != 1:
        raise ValueError(f"found {len(found)} times: {sentence}")
    around = found[0].groups()
    new = "".join(a + b for a, b in zip(around, [*figures, ""], strict=True))
    return text[: found[0].start()] + new + text[found[0].end() :]


def pattern_of(sentence: str) -> re.Pattern[str]:
    """Return what finds a sentence whatever its figures and line ends, a group around each hole."""
    parts = [r"\s+".join(map(re.escape, re.split(r"\s+", p))) for p in sentence.split("{}")]
    return re.compile(HOLE.join(f"({part})" for part in parts))


def unclaimed(page: Path) -> list[str]:
    """Return the times, sizes and ratios in the sentences of a page that no claim computes."""
    text = page.read_text(encoding="utf-8")
    claimed = [pattern_of(c.sentence).search(text) for c in declared() if ROOT / c.page == page]
    spans = [match.span() for match in claimed if match]
    spans += [match.span() for match in CODE.finditer(text)]
    found = [m for m in MEASURED.finditer(text) if not any(a <= m.start() < b for a, b in spans)]
    return [match[0] for match in found]


def declared() -> list[Claim]:
    """Return the claims of all pages."""
    for name in ("speed", "experiments", "logs", "streams", "cluster"):
        import_module(f"claims_{name}")
    return CLAIMS


def pages() -> dict[Path, str]:
    """Return every page that has claims, with its figures as stored."""
    texts: dict[Path, str] = {}
    for page, sentence, figures in declared():
        path = ROOT / page
        text = texts.get(path) or path.read_text(encoding="utf-8")
        texts[path] = filled(text, sentence, list(figures()))
    return texts


def short(value: float, digits: int = 4) -> str:
    """Return a number without its leading zero."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)


def span(values: list[float], form: str) -> Iterator[str]:
    yield format(min(values), form)
    yield format(max(values), form)
