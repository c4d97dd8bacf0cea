"""Records of a stream that nobody ran, with all that can happen in one."""

from datetime import UTC, datetime, timedelta

import numpy as np

from harmonrank.reports.stream import StreamHistory
from harmonrank.streaming.loop_events import (
    BatchLearned,
    IntervalCompleted,
    Publication,
    QualityFacts,
    ScoreMove,
)

OBJECTIVES = ("buy", "comment", "follow", "like", "long_view")
AREAS = np.array([0.78, 0.73, 0.76, 0.74, 0.71])
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
REFUSAL = "auc buy: AUC changes by -0.0213 (-0.0301 to -0.0125); it may fall by 0.002"


def quality(rng, shift, noise, exact=True):
    areas = AREAS + shift + noise * rng.normal(size=5)
    wide = 6 * noise + 0.004
    truth = AREAS + shift
    return QualityFacts(
        1,
        20_000,
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
            f"p_{name}": ScoreMove(
                float(rng.normal(0, 0.01) + 0.9 * (jump and name in ("like", "comment"))),
                1.0,
                "as before",
                float(abs(rng.normal(0.003, 0.002)) + 0.7 * (jump and name in ("like", "comment"))),
            )
            for name in OBJECTIVES
        }
        offer = None
        if jump:
            offer = Publication(version := version + 1, None, recalibrated=True)
        change = ["p_comment", "p_like"] if jump else []
        evidence = ["p_like moved and p_buy did not, though their correlation is +0.41."] * jump
        rows = int(20_000 + 8_000 * np.sin(hour / 24 * 2 * np.pi))
        interval = {"start": end - timedelta(hours=1), "end": end, "rows": rows}
        intervals.append(
            IntervalCompleted(
                **interval,
                moves=moves if hour > 1 else {},
                replaced=change,
                evidence=evidence,
                version=offer,
            )
        )
        learned += rows
        loss = -0.03 * max(0, 1 - abs(hour - swap) / 2) if hour >= swap else 0.0
        shift = 0.015 * (1 - np.exp(-hour / 12)) + loss / 5
        refused = REFUSAL if hour in (12, 13, 50) else None
        made = None if hour < 2 else Publication(version := version + 1, refused)
        batches.append(
            BatchLearned(
                **interval,
                learned=rows,
                learned_rows=learned,
                guard_rows=0,
                positives={},
                window=quality(rng, shift, 0.001, exact) if hour > 1 else None,
                batch=quality(rng, shift, 0.01, exact) if hour > 1 else None,
                version=made,
                held="too few rows for a model yet" if hour < 2 else None,
                learner={
                    "learner": "sums",
                    "learned_rows": learned,
                    "half_life_hours": 24.0 + hour % 5,
                },
                lag_seconds=3720 + float(rng.normal(0, 60)),
                rows_per_second=210_000 + float(rng.normal(0, 9_000)),
                aside={"late": 12 * hour, "duplicate": 3 * hour, "malformed": 2},
            )
        )
    return StreamHistory(intervals, batches)
