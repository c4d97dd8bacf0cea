"""Records of a stream that nobody ran, with all that can happen in one."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from harmonrank.reports.stream import StreamHistory

OBJECTIVES = ("buy", "comment", "follow", "like", "long_view")
AREAS = np.array([0.78, 0.73, 0.76, 0.74, 0.71])
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
REFUSAL = "auc buy: AUC changes by -0.0213 (-0.0301 to -0.0125); it may fall by 0.002"


@dataclass
class Offer:
    version: int
    refused: str | None = None
    recalibrated: bool = False


@dataclass
class Move:
    offset: float
    scale: float
    psi: float | None


@dataclass
class Window:
    auc: dict
    auc_ci: dict
    auc_sum: float | None
    ci: tuple
    exact_auc: dict | None
    exact_auc_sum: float | None
    ceiling: float | None


@dataclass
class Exposed:
    end: datetime
    moves: dict = field(default_factory=dict)
    replaced: list = field(default_factory=list)
    evidence: list = field(default_factory=list)
    version: Offer | None = None


@dataclass
class Learned:
    start: datetime
    end: datetime
    rows: int
    learned_rows: int
    window: Window | None
    batch: Window | None
    version: Offer | None
    held: str | None
    learner: dict[str, Any]
    lag_seconds: float | None
    rows_per_second: float | None
    aside: dict


def quality(rng, shift, noise, exact=True):
    areas = AREAS + shift + noise * rng.normal(size=5)
    wide = 6 * noise + 0.004
    truth = AREAS + shift
    return Window(
        dict(zip(OBJECTIVES, areas, strict=True)),
        {n: (a - wide, a + wide) for n, a in zip(OBJECTIVES, areas, strict=True)},
        areas.sum(),
        (areas.sum() - 3 * wide, areas.sum() + 3 * wide),
        dict(zip(OBJECTIVES, truth, strict=True)) if exact else None,
        truth.sum() if exact else None,
        AREAS.sum() + 0.11 if exact else None,
    )


def stream_history(hours=72, *, exact=True, swap=40):
    """Return a stream of some hours; upstream models of two scores are replaced at one of them."""
    rng, version, intervals, batches, learned = np.random.default_rng(0), 0, [], [], 0
    for hour in range(hours):
        end = FIRST + timedelta(hours=hour + 1)
        jump = hour == swap
        moves = {
            f"p_{name}": Move(
                float(rng.normal(0, 0.01) + 0.9 * (jump and name in ("like", "comment"))),
                1.0,
                float(abs(rng.normal(0.003, 0.002)) + 0.7 * (jump and name in ("like", "comment"))),
            )
            for name in OBJECTIVES
        }
        offer = None
        if jump:
            offer = Offer(version := version + 1, recalibrated=True)
        change = ["p_comment", "p_like"] if jump else []
        evidence = ["p_like moved and p_buy did not, though their correlation is +0.41."] * jump
        intervals.append(Exposed(end, moves if hour > 1 else {}, change, evidence, offer))
        rows = int(20_000 + 8_000 * np.sin(hour / 24 * 2 * np.pi))
        learned += rows
        loss = -0.03 * max(0, 1 - abs(hour - swap) / 2) if hour >= swap else 0.0
        shift = 0.015 * (1 - np.exp(-hour / 12)) + loss / 5
        refused = REFUSAL if hour in (12, 13, 50) else None
        made = None if hour < 2 else Offer(version := version + 1, refused)
        batches.append(
            Learned(
                end - timedelta(hours=1),
                end,
                rows,
                learned,
                quality(rng, shift, 0.001, exact) if hour > 1 else None,
                quality(rng, shift, 0.01, exact) if hour > 1 else None,
                made,
                "too few rows for a model yet" if hour < 2 else None,
                {"learner": "sums", "learned_rows": learned, "half_life_hours": 24.0 + hour % 5},
                3720 + float(rng.normal(0, 60)),
                210_000 + float(rng.normal(0, 9_000)),
                {"late": 12 * hour, "duplicate": 3 * hour, "malformed": 2},
            )
        )
    return StreamHistory(intervals, batches)
