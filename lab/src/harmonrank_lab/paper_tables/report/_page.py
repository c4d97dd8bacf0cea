"""Made-again tables as one HTML page with charts."""

__all__ = ["closer_look", "reproduction_page", "reproduction_sections"]

from collections.abc import Sequence
from dataclasses import replace

from harmonrank import evaluate
from harmonrank.fusion import method_class
from harmonrank.reports.facts import Run, collect, run_of
from harmonrank.reports.html import Card, page
from harmonrank.reports.sections import Section, sections
from harmonrank_lab.paper_tables import Data, PaperTable
from harmonrank_lab.paper_tables.report._charts import charts
from harmonrank_lab.paper_tables.report._tables import number_table, overview_table, verdict_table
from harmonrank_lab.paper_tables.report._text import SUMMARY, counts, heading, upper

_TITLE = "The paper, made again"
_METHOD = "harmonrank"


def reproduction_page(
    tables: Sequence[PaperTable], run: Run, closer: Sequence[Section] = ()
) -> str:
    """Return the page: a section per table with its numbers, verdicts and charts, then others."""
    return page(_TITLE, run, _cards(tables), [*reproduction_sections(tables), *closer])


def reproduction_sections(tables: Sequence[PaperTable]) -> list[Section]:
    """Return a section per table; a table made in two ways has two."""
    first = Section("verdicts", "Verdicts", SUMMARY, tables=(overview_table(tables),))
    keys = _keys([table.key for table in tables])
    return [first, *(_section(key, table) for key, table in zip(keys, tables, strict=True))]


def _keys(names: Sequence[str]) -> list[str]:
    """Return names unlike each other, to link to.

    >>> _keys(["main", "main", "skew"])
    ['main', 'main-2', 'skew']
    """
    found: list[str] = []
    for index, name in enumerate(names):
        before = names[:index].count(name)
        found.append(f"{name}-{before + 1}" if before else name)
    return found


def _cards(tables: Sequence[PaperTable]) -> list[Card]:
    told = counts(tables)
    cards = [("Claims of the paper", str(sum(told.values())), f"in {len(tables)} tables")]
    about = ("interval above 0", "interval below 0", "0 inside, or one seed")
    outcomes = zip(told.items(), about, strict=True)
    return [*cards, *((upper(name), str(n), more) for (name, n), more in outcomes)]


def _section(key: str, table: PaperTable) -> Section:
    failures = tuple(f"{row.name} failed: {row.note}" for row in table.rows if row.note)
    lead = " ".join([f"Data: {table.data}.", f"{upper(table.settings)}.", *table.notes])
    numbers = replace(number_table(table), alarms=())
    tables = [t for t in (numbers, verdict_table(table.verdicts)) if t.rows]
    return Section(key, heading(table), lead, tuple(charts(key, table)), tuple(tables), failures)


def closer_look(data: Data) -> list[Section]:
    """Fit our default on the rows of seed 0, which takes seconds, and show what it learned.

    The tables tell how well it ranks; this tells why: responses, weights by context, trade-offs,
    calibration, drift, and what the data are.
    """
    train, valid, test = data.logs(0, data.objectives)
    model = method_class(_METHOD)().fit(train, train.schema, valid=valid)
    board = evaluate(model, test).board
    facts = collect("", run_of(""), board, {_METHOD: model}, test, train=train)
    first, *others = sections(facts)
    lead = f"Data: {data.words()}; seed 0. {upper(first.lead)}"
    first = replace(first, key="closer", title="A closer look at our default", lead=lead)
    return [first, *(replace(part, key=f"our-{part.key}") for part in others)]
