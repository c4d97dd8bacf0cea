"""Analyse: from a log to lifts with intervals, and to the checks that say whether to trust them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp
from statistics import NormalDist

import numpy as np

from harmonrank.data import Source
from harmonrank.support import UsageError, did_you_mean
from harmonrank_lab.experiments.ab import _checks as checks
from harmonrank_lab.experiments.ab._checks import SPLITS, UserMoments, log_ratio, two_sided_p
from harmonrank_lab.experiments.ab._read import read_users
from harmonrank_lab.experiments.ab._result import Analysis, Lift, Mean

CONTROLS = ("base", "control", "baseline")
"""Names that an arm has if it is the control; without one it is the first by name."""

_POWER = 0.8
_NAN = float("nan")


def analyse(
    log: Source,
    *,
    user: str = "user_id",
    arm: str = "arm",
    outcomes: Sequence[str],
    unwanted: Sequence[str] = (),
    control: str | None = None,
    split: Mapping[str, float] | None = None,
    per: str = "impression",
    impressions: str | None = None,
    aa_arm: str | None = None,
    level: float = 0.95,
    splits: int = SPLITS,
) -> Analysis:
    """Compare the arms of an experiment with its control.

    The mean of an arm is Σy/Σn over its users, its variance that of per-user sums (see
    `UserMoments`). The interval of a lift is exp(log ratio ± z·error) − 1. Users seen in more than
    one arm are counted and left out.

    >>> import polars as pl
    >>> log = pl.DataFrame({"user_id": range(6), "arm": ["a", "b"] * 3, "buy": [1, 1, 0, 1, 1, 0]})
    >>> round(analyse(log, outcomes=["buy"]).lift("b", "buy").lift, 6)
    0.0

    Args:
        log: A path or table with a row per impression, or per many with their number.
        user: Column of the unit that was split.
        arm: Column of what the user was given.
        outcomes: Columns to compare: 0 and 1, or any number such as seconds watched.
        unwanted: Those of the outcomes of which less is better, such as reports.
        control: The arm that lifts are measured against; see `CONTROLS` if left out.
        split: Users that each arm was meant to get, in any unit; equal parts if left out.
        per: 'impression' or 'user': what a mean is a mean of.
        impressions: Column of how many impressions a row stands for; 1 each if left out.
        aa_arm: An arm that is known to be the same as the control.
        level: Of the intervals.
        splits: How many times the control is halved for the A/A check.
    """
    if per not in ("impression", "user"):
        raise UsageError(f"`per` must be 'impression' or 'user'. Got {per!r}.")
    if not 0 < level < 1:
        raise UsageError(f"`level` must be inside (0, 1). Got {level}.")
    users = read_users(log, user=user, arm=arm, outcomes=outcomes, impressions=impressions)
    for name in unwanted:
        if name not in outcomes:
            hint = did_you_mean(name, outcomes)
            raise UsageError(f"`unwanted` must name outcomes. Got '{name}'. {hint}")
    if control is None:
        control = next((name for name in CONTROLS if name in users.arms), users.arms[0])
    if control not in users.arms:
        raise UsageError(f"There is no arm '{control}'. {did_you_mean(control, users.arms)}")
    if aa_arm is not None and (aa_arm == control or aa_arm not in users.arms):
        others = [name for name in users.arms if name != control]
        raise UsageError(f"There is no A/A arm '{aa_arm}'. {did_you_mean(aa_arm, others)}")
    arms = (control, *(name for name in users.arms if name != control))
    count = np.ones_like(users.count) if per == "user" else users.count
    groups = np.stack([users.arm == users.arms.index(name) for name in arms])
    moments = [checks.moments_of(group[None], count, users.sums) for group in groups]
    treated = zip(arms[1:], moments[1:], strict=True)
    lifts = [x for name, m in treated for x in _lifts(name, outcomes, moments[0], m, level)]
    # An A/A arm answers no question, so it does not make the others harder to answer.
    adjusted = checks.holm([_NAN if lift.arm == aa_arm else lift.p for lift in lifts])
    pairs = zip(lifts, adjusted, strict=True)
    judged = (_judged(replace(lift, p_holm=p), aa_arm, unwanted, level) for lift, p in pairs)
    means = (m for a, s in zip(arms, moments, strict=True) for m in _means(a, outcomes, s))
    seen = {name: int(group.sum()) for name, group in zip(arms, groups, strict=True)}
    aa = checks.aa_check(outcomes, count[groups[0]], users.sums[groups[0]], splits)
    return Analysis(
        tuple(outcomes), arms, control, aa_arm, per, level,
        *(users.rows, users.crossed_users, users.skipped_rows), tuple(means), tuple(judged),
        checks.sample_ratio(seen, split), aa, tuple(unwanted),
    )  # fmt: skip


def _means(arm: str, outcomes: Sequence[str], moments: UserMoments) -> list[Mean]:
    users, values = int(moments.users[0]), zip(moments.mean[0], moments.variance[0], strict=True)
    return [
        Mean(arm, outcome, users, float(mean), float(variance) ** 0.5)
        for outcome, (mean, variance) in zip(outcomes, values, strict=True)
    ]


def _lifts(
    arm: str, outcomes: Sequence[str], control: UserMoments, treated: UserMoments, level: float
) -> list[Lift]:
    change = (treated.mean - control.mean)[0]
    reach = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(treated.variance + control.variance)[0]
    columns = [values[0] for values in log_ratio(control, treated)]
    columns += [change, change - reach, change + reach]
    lifts = []
    for outcome, *numbers in zip(outcomes, *columns, strict=True):
        ratio, error, middle, low, high = map(float, numbers)
        lift = lift_of(arm, outcome, ratio, error, level)
        lifts.append(replace(lift, change=middle, change_low=low, change_high=high))
    return lifts


def lift_of(arm: str, outcome: str, ratio: float, error: float, level: float) -> Lift:
    """Return a lift in percent from a log ratio and its standard error.

    >>> lift = lift_of("new", "buy", ratio=0.02, error=0.01, level=0.95)
    >>> round(lift.lift, 3), round(lift.low, 3), round(lift.high, 3), round(lift.p, 4)
    (2.02, 0.04, 4.039, 0.0455)
    """
    normal = NormalDist()
    z = normal.inv_cdf((1 + level) / 2)
    p = float(two_sided_p(ratio / error)) if error > 0 else 1.0 if ratio == 0 else _NAN
    lift, low, high = (_percent(ratio + k * error) for k in (0, -z, z))
    detectable = _percent((z + normal.inv_cdf(_POWER)) * error)
    return Lift(arm, outcome, lift, low, high, p, _NAN, detectable)


def _judged(lift: Lift, aa_arm: str | None, unwanted: Sequence[str], level: float) -> Lift:
    """Return a lift with what it means: whether it holds, and whether that is good."""
    if lift.arm == aa_arm:
        return replace(lift, verdict="A/A")
    if not lift.p_holm < 1 - level:
        return replace(lift, verdict="unclear")
    good = (lift.lift > 0) != (lift.outcome in unwanted)
    return replace(lift, verdict="better" if good else "worse")


def _percent(log_lift: float) -> float:
    return 100 * (exp(log_lift) - 1)
