"""Made-again tables as one HTML page with charts."""

__all__ = ["reproduction_page", "reproduction_sections"]

from collections.abc import Sequence

from harmonrank.evaluation.reproduction import Estimate, Verdict
from harmonrank.evaluation.reproduction import Table as Found
from harmonrank.reports.facts import Run
from harmonrank.reports.html import Card, page
from harmonrank.reports.plots import Table
from harmonrank.reports.reproduction._charts import charts
from harmonrank.reports.reproduction._text import SUMMARY, counts, heading, number, upper
from harmonrank.reports.sections import Section

_TITLE = "The paper, made again"


def reproduction_page(tables: Sequence[Found], run: Run, closer: Sequence[Section] = ()) -> str:
    """Return the page: a section per table with its numbers, verdicts and charts, then others."""
    return page(_TITLE, run, _cards(tables), [*reproduction_sections(tables), *closer])


def reproduction_sections(tables: Sequence[Found]) -> list[Section]:
    """Return a section per table; a table made in two ways has two."""
    first = Section("verdicts", "Verdicts", SUMMARY, tables=(_overview(tables),))
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


def _cards(tables: Sequence[Found]) -> list[Card]:
    told = counts(tables)
    cards = [("Claims of the paper", str(sum(told.values())), f"in {len(tables)} tables")]
    about = ("interval above 0", "interval below 0", "0 inside, or one seed")
    outcomes = zip(told.items(), about, strict=True)
    return [*cards, *((upper(name), str(n), more) for (name, n), more in outcomes)]


def _overview(tables: Sequence[Found]) -> Table:
    rows = tuple((heading(table), *counts([table]).values()) for table in tables)
    return Table(("table", "held", "did not hold", "cannot be told"), rows, {})


def _section(key: str, table: Found) -> Section:
    failures = tuple(f"{row.name} failed: {row.note}" for row in table.rows if row.note)
    lead = " ".join([f"Data: {table.data}.", f"{upper(table.settings)}.", *table.notes])
    tables = [t for t in (_numbers(table), _verdicts(table.verdicts)) if t.rows]
    return Section(key, heading(table), lead, tuple(charts(key, table)), tuple(tables), failures)


def _numbers(table: Found) -> Table:
    columns = ("setting", "what", "unit", "paper", "ours", "low", "high", "regret")
    rows = []
    for row in table.rows:
        regret = None if row.regret is None else row.regret.mean
        values = (row.paper, *_interval(row.ours), regret)
        numbers = (_shown(value, row.unit) for value in values)
        rows.append((row.group, row.name, row.unit, *numbers))
    return _without_empty(Table(columns, tuple(rows), {}))


def _verdicts(verdicts: Sequence[Verdict]) -> Table:
    columns = ("verdict", "claim", "unit", "paper", "here", "low", "high", "whose")
    rows = []
    for v in verdicts:
        numbers = (_shown(value, v.unit) for value in (v.paper, *_interval(v.ours)))
        rows.append((v.outcome, v.claim, v.unit, *numbers, v.source))
    return _without_empty(Table(columns, tuple(rows), {}))


def _without_empty(table: Table) -> Table:
    """Leave out columns in which nothing stands, and a unit that is the same in all rows."""
    used = []
    for index, name in enumerate(table.columns):
        values = {row[index] for row in table.rows}
        if values != {None} and not (name == "unit" and len(values) == 1):
            used.append(index)
    unit = table.rows[0][2] if table.rows and 2 not in used else None
    columns = [table.columns[i] for i in used]
    if unit is not None:
        columns[1] = f"{columns[1]} ({unit})"
    return Table(tuple(columns), tuple(tuple(row[i] for i in used) for row in table.rows), {})


def _interval(found: Estimate | None) -> tuple[float | None, ...]:
    return (None, None, None) if found is None else (found.mean, found.low, found.high)


class _Shown(float):
    """A number that is written as its unit asks, whatever the column's format."""

    unit: str

    def __format__(self, form: str) -> str:
        return number(float(self), self.unit)


def _shown(value: float | None, unit: str) -> _Shown | None:
    if value is None:
        return None
    shown = _Shown(value)
    shown.unit = unit
    return shown
