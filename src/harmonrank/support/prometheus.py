"""Exposition: metrics in the text format of Prometheus."""

__all__ = ["CONTENT_TYPE", "Kind", "family", "sample"]

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Kind = Literal["counter", "gauge", "histogram"]


def family(
    kind: Kind, name: str, text: str, samples: Iterable[tuple[Mapping[str, str], float | str]] = ()
) -> Iterator[str]:
    r"""Yield the lines of a metric: what it is, then a line for each set of labels.

    >>> print("\n".join(family("gauge", "lag_seconds", "How far behind.", [({}, 2.5)])))
    # HELP harmonrank_lag_seconds How far behind.
    # TYPE harmonrank_lag_seconds gauge
    harmonrank_lag_seconds 2.5
    """
    yield f"# HELP harmonrank_{name} {text}"
    yield f"# TYPE harmonrank_{name} {kind}"
    for labels, value in samples:
        yield sample(name, value, **labels)


def sample(name: str, value: float | str, **labels: str) -> str:
    r"""Return one line; what a label's value holds is escaped.

    >>> sample("versions_total", 3, outcome='"refused"')
    'harmonrank_versions_total{outcome="\\"refused\\""} 3'
    """
    named = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"harmonrank_{name}{f'{{{named}}}' if named else ''} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
