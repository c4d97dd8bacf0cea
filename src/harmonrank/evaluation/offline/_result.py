"""OfflineResult: what a model would earn at the first k places, and what speaks for it."""

from dataclasses import dataclass
from typing import Any

from harmonrank.metrics import Interval
from harmonrank.support.table import Column, Table, Tabular


@dataclass(frozen=True)
class OfflineObjective:
    """Events of one objective per request, or their worth.

    Attributes:
        name: The objective; 'value' for the worth of all.
        snips: Under the model, by self-normalised inverse propensities.
        robust: Under the model, doubly robust.
        current: Under what it is compared with, doubly robust.
        snips_lift: Change against that, in percent.
        robust_lift: The same, doubly robust.
        effective: As many events of equal weight would tell as much.
    """

    name: str
    snips: Interval
    robust: Interval
    effective: float
    current: Interval | None = None
    snips_lift: Interval | None = None
    robust_lift: Interval | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; a number that is not known is null."""
        parts: dict[str, Any] = {"name": self.name, "effective_events": self.effective}
        for part in ("snips", "robust", "current", "snips_lift", "robust_lift"):
            interval: Interval | None = getattr(self, part)
            parts[part] = None if interval is None else _known(interval.estimate)
            ends = None if interval is None else [_known(interval.low), _known(interval.high)]
            parts[f"{part}_ci"] = ends
        return parts


@dataclass(frozen=True, repr=False)
class OfflineResult(Tabular):
    """Off-policy estimates of a model.

    Attributes:
        model: What it is called.
        against: What it is compared with; None if with nothing.
        k: Value at how many places.
        requests: How many serve.
        randomised: Whether they are those in random order.
        support: Share of what the model would show that could have been looked at in the log.
        largest: The largest weight of a row.
        objectives: In the order of the schema, the worth of all last.
        warnings: Where support is thin, a line each.
    """

    model: str
    against: str | None
    k: int
    requests: int
    randomised: bool
    support: float
    largest: float
    objectives: tuple[OfflineObjective, ...]
    warnings: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> OfflineObjective:
        return next(one for one in self.objectives if one.name == name)

    def to_table(self) -> Table:
        """Return a row per objective: what it would earn, and the lift."""
        compared = self.against is not None
        columns = (
            Column("objective"),
            *[Column("current", ".4f")] * compared,
            Column("model", ".4f"),
            Column("95 % interval", align="right", spare=compared),
            *[Column("lift %", "+.1f"), Column("95 % interval", align="right")] * compared,
            *[Column("SNIPS %", "+.1f")] * compared,
            *[Column("SNIPS", ".4f")] * (not compared),
            Column("events", ",.0f"),
        )
        rows = tuple(self._row(one) for one in self.objectives)
        order = "in random order" if self.randomised else "as they were ranked"
        notes = [
            f"Events per request at the first {self.k} places, from {self.requests:,} requests "
            f"{order}; doubly robust, beside self-normalised inverse propensities (SNIPS).",
            f"Support {self.support:.1%}, weights up to {self.largest:.1f}. Events: as many of "
            "equal weight would tell as much.",
        ]
        if compared:
            notes.append(f"Current: {self.against}.")
        return Table(columns, rows, notes=tuple(notes))

    def _row(self, one: OfflineObjective) -> tuple[Any, ...]:
        interval = f"{one.robust.low:.4f} – {one.robust.high:.4f}"
        if one.current is None or one.robust_lift is None or one.snips_lift is None:
            return (one.name, one.robust.estimate, interval, one.snips.estimate, one.effective)
        lift = one.robust_lift
        return (
            one.name,
            one.current.estimate,
            one.robust.estimate,
            interval,
            _known(lift.estimate),
            "" if _known(lift.low) is None else f"{lift.low:+.1f} – {lift.high:+.1f}",
            _known(one.snips_lift.estimate),
            one.effective,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form that other programs read."""
        parts = {name: value for name, value in vars(self).items() if name != "objectives"}
        objectives = [one.to_dict() for one in self.objectives]
        return {**parts, "warnings": list(self.warnings), "objectives": objectives}


def _known(value: float) -> float | None:
    return value if value == value else None
