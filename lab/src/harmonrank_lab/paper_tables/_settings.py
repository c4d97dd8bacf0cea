"""Settings: by which protocol, on how many rows and how often an experiment is run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from harmonrank.fusion import method_class
from harmonrank.paper import PUBLISHED, NeuralConfig
from harmonrank.support import UsageError
from harmonrank.support.options import Count, Positive, check_fields
from harmonrank.support.storage import decode, read_toml


@dataclass(frozen=True)
class Settings:
    """How every experiment is run.

    Attributes:
        protocol: 'paper' trains all networks alike, as printed: SGD at a rate of 1e-4, batches of
            10,240 rows, 500 epochs, the last of them kept, 300 buckets of the raw score. 'tuned'
            trains each by Adam with its method's own defaults; docs/network.md says which of them
            were tuned.
        losses: Whether the paper's losses are means over the rows of a batch or sums, of which it
            says nothing: for SGD a sum is a rate that many times as high.
        rows: Training rows; half as many to validate and to test.
        epochs: In place of the protocol's own.
        steps: At most so many by the tuned protocol, whose lengths are in steps.
        batch_rows: In place of the paper's batch; at most so many by the tuned protocol.
        shares: Weight of the first objective of a pair; the second has the rest.
        seconds: How long each speed is measured.
        online: Size and rules of the online experiment, see `OnlineConfig`.
    """

    protocol: Literal["paper", "tuned"] = "paper"
    losses: Literal["mean", "sum"] = "mean"
    rows: Annotated[int, Meta(ge=1000)] = 1_000_000
    seeds: Count = 3
    epochs: Count | None = None
    steps: Count | None = None
    batch_rows: Count | None = None
    learning_rate: Positive | None = None
    shares: tuple[float, ...] = (0.05, 0.25, 0.5, 0.75, 0.95)
    seconds: float = 20.0
    online: Mapping[str, int] = field(
        default_factory=lambda: {"days": 5, "users": 100_000, "requests_per_hour": 10_000}
    )

    def __post_init__(self) -> None:
        check_fields("reproduce", self)
        if self.losses == "sum" and self.protocol != "paper":
            raise UsageError(
                "Summed losses belong to the paper protocol; Adam's steps do not depend on a "
                "loss's scale, so leave them out or choose `--protocol paper`."
            )

    def options(self, method: str) -> dict[str, Any]:
        """Return the options that a method is fitted with; what is no network has none."""
        config = method_class(method).Config
        if not issubclass(config, NeuralConfig):
            return {}
        options = self._as_printed() if self.protocol == "paper" else self._within(config)
        if self.learning_rate is not None:
            options["learning_rate"] = self.learning_rate
        if self.losses == "sum":
            options["learning_rate"] *= options["batch_rows"]
        return options

    def _as_printed(self) -> dict[str, Any]:
        """Return the paper's recipe, which is every network's here, whatever its loss."""
        known = {field.name for field in fields(NeuralConfig)}
        options = {name: value for name, value in PUBLISHED.items() if name in known}
        changed = {"batch_rows": self.batch_rows, "epochs": self.epochs}
        return options | {name: value for name, value in changed.items() if value is not None}

    def _within(self, config: type[NeuralConfig]) -> dict[str, Any]:
        """Return what a budget changes of a method's own options: it only makes them smaller."""
        budget = {"steps": self.steps, "batch_rows": self.batch_rows}
        within = {
            n: min(getattr(config, n), most) for n, most in budget.items() if most is not None
        }
        return within if self.epochs is None else {**within, "epochs": self.epochs}

    def words(self) -> str:
        """Describe the protocol, its name before a colon."""
        rate = f"{self.learning_rate or PUBLISHED['learning_rate']:g}"
        if self.protocol == "paper":
            summed = ", summed losses" * (self.losses == "sum")
            return (
                f"paper protocol{summed}: networks by SGD, rate {rate}, batches of "
                f"{self.batch_rows or PUBLISHED['batch_rows']:,} rows, "
                f"{self.epochs or PUBLISHED['epochs']} epochs "
                "of which the last is kept, 300 buckets of the raw score"
            )
        told = {
            f"{self.epochs} epochs": self.epochs,
            f"at most {self.steps or 0:,} steps": self.steps,
            f"at most {self.batch_rows or 0:,} rows a batch": self.batch_rows,
            f"a rate of {rate}": self.learning_rate,
        }
        changes = [words for words, value in told.items() if value is not None]
        more = f", but with {' and '.join(changes)}" if changes else ""
        more += ", which cuts networks short" * (self.epochs is not None or self.steps is not None)
        return f"tuned protocol: networks by Adam with each method's own tuned settings{more}"


PAPER = Settings()
_QUICK = read_toml(Path(__file__).parent / "quick.toml", "settings")
QUICK = decode(_QUICK, Settings, "quick.toml")
"""Small enough for all tables in some minutes; too small to judge small differences."""
