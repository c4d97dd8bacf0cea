"""Closer look: what our default does on the rows of a reproduction."""

__all__ = ["closer_look"]

from dataclasses import replace

from harmonrank.evaluation.measured import measured
from harmonrank.evaluation.reproduction import Data
from harmonrank.methods import method_class
from harmonrank.reports.facts import collect, run_of
from harmonrank.reports.reproduction._text import upper
from harmonrank.reports.sections import Section, sections

_METHOD = "harmonrank"


def closer_look(data: Data) -> list[Section]:
    """Fit our default on the rows of seed 0, which takes seconds, and show what it learned.

    The tables tell how well it ranks; this tells why: responses, weights by context, trade-offs,
    calibration, drift, and what the data are.
    """
    train, valid, test = data.logs(0, data.objectives)
    model = method_class(_METHOD)().fit(train, train.schema, valid=valid)
    board = measured(model, test)
    facts = collect("", run_of(""), board, {_METHOD: model}, test, train=train)
    first, *others = sections(facts)
    lead = f"Data: {data.words()}; seed 0. {upper(first.lead)}"
    first = replace(first, key="closer", title="A closer look at our default", lead=lead)
    return [first, *(replace(part, key=f"our-{part.key}") for part in others)]
