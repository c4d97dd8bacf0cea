"""What the docs say of networks and of the online experiment."""

import json
from collections.abc import Iterator
from statistics import mean
from typing import Any

from prose import claim, read, short, span

RATES = ((0.03, "constant"), (0.01, "constant"), (0.02, "cosine"))


@claim("network.md", "the spread of the fused score goes to {} in `elive`")
def spread() -> Iterator[str]:
    found = [r for r in read("schedule")["results"] if r["world"] == "elive"]
    yield f"{max(r['health']['fused'] for r in found if r['schedule'] == 'constant'):.0f}"


def tuned(method: str, **options: Any) -> Any:
    """Return the fits of a method whose options differ from the search's start in these alone."""
    tuning = read("tuning")
    wanted = tuning["start"] | options
    (found,) = (v for k, v in tuning["fits"][method].items() if json.loads(k) == wanted)
    return found


@claim("network.md", "30 without interpolation gave {} to {} times the regret in `conflict`")
def buckets() -> Iterator[str]:
    def regret(**options: Any) -> float:
        # Moves that are clearly worse on the first redraw are not tried on the second.
        found = tuned("harmonrank-paper", learning_rate=0.03, **options)["conflict"]["1"]["regret"]
        return float(found)

    others: list[dict[str, Any]] = [
        {"buckets": 16},
        {"scale": "quantile"},
        {"buckets": 30, "interpolate": False},
    ]
    yield from span([regret(**other) / regret() for other in others], ".1f")


@claim("network.md", "makes a path dead in {} of {} fits, where without it {} of {} are")
def dead() -> Iterator[str]:
    found: dict[bool, list[bool]] = {True: [], False: []}
    for method, tried in read("tuning")["fits"].items():
        for options, worlds in tried.items():
            chosen = json.loads(options)
            if method != "harmonrank-network" and chosen:
                fits = (fit for redraws in worlds.values() for fit in redraws.values())
                found[chosen["weight_decay"] > 0] += [bool(fit["dead"]) for fit in fits]
    for with_decay in (True, False):
        yield from (str(sum(found[with_decay])), str(len(found[with_decay])))


@claim(
    "network.md",
    "`reinforce` has a mean regret over these worlds of {} with its own defaults, 24,000 steps of "
    "512 rows at a rate of .003 without decay, and of {} with what the search ended at, {} of "
    "whose {} fits have a dead path",
)
def reinforced() -> Iterator[str]:
    found = read("tuning")["best"]["reinforce"]
    yield from (short(mean(found[key].values())) for key in ("default", "regret"))
    fits = read("tuning")["fits"]["reinforce"][json.dumps(found["options"], sort_keys=True)]
    lost = [bool(fit["dead"]) for redraws in fits.values() for fit in redraws.values()]
    yield from (str(sum(lost)), str(len(lost)))


@claim("network.md", "worse by more than .003 than something else that it saw in {} of {} cases")
def kept_behind() -> Iterator[str]:
    best = read("tuning")["best"].values()
    yield str(sum(len(found["behind"]) for found in best))
    yield str(sum(len(found["regret"]) for found in best))


LINEAR = ("elive", "qkvideo", "conflict", "backbone", "trained")


@claim(
    "network.md",
    "in any fit: the spread of s1 is {} to {}, that of s3 {} to {}, the residual's being 1. In "
    "`tails`, `interactions` and `leak`, where there is more to find, that of s1 is {} to {}.",
)
def heads_health() -> Iterator[str]:
    rows = [r for r in read("regret")["results"] if r["method"] == "harmonrank-network"]
    linear = [r["health"] for r in rows if r["world"] in LINEAR]
    others = [r["health"] for r in rows if r["world"] not in LINEAR]
    yield from (short(v, 3) for v in ends(linear, "relation_aware"))
    low, high = ends(linear, "linear")
    yield from (short(low, 2), f"{high:.2f}")
    yield from (short(v, 2) for v in ends(others, "relation_aware"))


def ends(found: list[dict[str, Any]], key: str) -> tuple[float, float]:
    values = [health[key] for health in found]
    return min(values), max(values)


@claim(
    "network.md",
    "its best of eight ridges and rates has a regret of {} in `elive` and {} in `conflict`, the "
    "likelihood {} and {}",
)
def heads_losses() -> Iterator[str]:
    rows = read("heads")["results"]
    for loss in ("rank", "likelihood"):
        for world in ("elive", "conflict"):
            found = [r["regret"] for r in rows if (r["loss"], r["world"]) == (loss, world)]
            yield short(min(found))


@claim(
    "network.md",
    "With 1M rows it has a regret of {} in `elive` and {} in `conflict` (`python "
    "benchmarks/fusion.py published`, [published.json](../benchmarks/results/published.json)), the "
    "tuned network {} and {}",
)
def recipe() -> Iterator[str]:
    found = {r["world"]: r["regret"] for r in read("published")["results"]}
    yield from (short(found[world]) for world in ("elive", "conflict"))
    rows = [r for r in read("regret")["results"] if r["method"] == "harmonrank-paper"]
    for world in ("elive", "conflict"):
        yield short(mean(r["regret"] for r in rows if r["world"] == world))


def schedule_rows(world: str) -> str:
    rows = [
        f"{short(rate, 2)}, {schedule} | {{}} | {{}} | {{}} | {{}} |" for rate, schedule in RATES
    ]
    return f"| `{world}` | " + "\n| | ".join(rows)


def schedule_figures(world: str) -> Iterator[str]:
    found = {(r["world"], r["rate"], r["schedule"]): r for r in read("schedule")["results"]}
    for rate, schedule in RATES:
        row = found[world, rate, schedule]
        health = row["health"]
        yield from (short(row["regret"]), f"{health['fused']:.2f}")
        yield from (short(health["relation_aware"], 3), short(health["context"]))


@claim("network.md", schedule_rows("elive"))
def schedule_elive() -> Iterator[str]:
    yield from schedule_figures("elive")


@claim("network.md", schedule_rows("conflict"))
def schedule_conflict() -> Iterator[str]:
    yield from schedule_figures("conflict")


def lifts(part: str) -> dict[tuple[str, str], float]:
    online = read("online-elive")
    found = online["analysis"]["lifts"] if part == "measured" else online["exact"]
    return {(one["arm"], one["outcome"]): one["lift"] for one in found}


@claim("online.md", "seed 0, {} requests of {} users in four arms over five days, retrained")
def traffic() -> Iterator[str]:
    online = read("online-elive")
    users = sum(online["analysis"]["sample_ratio"]["users"].values())
    yield from (f"{online['requests']:,}", f"{users:,}")


@claim("online.md", "retrained hourly; {} s on two cores")
def online_seconds() -> Iterator[str]:
    yield f"{read('online-elive')['seconds']:.0f}"


@claim(
    "online.md",
    "`ours` gets {} to {} % more purchases, comments, follows and likes than `mbce`, `rl` {} to "
    "{} %; both lose long views, {} and {} %.",
)
def online_gains() -> Iterator[str]:
    found = lifts("exact")
    for arm in ("ours", "rl"):
        yield from span([found[arm, o] for o in ("buy", "comment", "follow", "like")], ".1f")
    yield from (f"{-found[arm, 'long_view']:.1f}" for arm in ("ours", "rl"))


@claim(
    "online.md",
    "Sample ratio: p = {}. A/A: p < .05 in buy {} %, comment {} %, follow {} %, like {} %, "
    "long_view {} % of {} halvings.",
)
def online_checks() -> Iterator[str]:
    analysis = read("online-elive")["analysis"]
    yield f"{analysis['sample_ratio']['p']:.2f}"
    yield from (f"{100 * share:.1f}" for share in analysis["aa"]["below"].values())
    yield str(analysis["aa"]["splits"])


@claim("online.md", "{} of the {} measured intervals miss the exact lift")
def online_coverage() -> Iterator[str]:
    exact = lifts("exact")
    found = [one for one in read("online-elive")["analysis"]["lifts"]
             if (one["arm"], one["outcome"]) in exact]  # fmt: skip
    missed = [
        one for one in found if not one["low"] <= exact[one["arm"], one["outcome"]] <= one["high"]
    ]
    yield from (str(len(missed)), str(len(found)))


PLACES = [
    (arm, outcome)
    for arm in ("base-again", "ours", "rl")
    for outcome in ("buy", "comment", "follow", "like", "long_view")
]


@claim(
    "online.md", "\n".join(f"| {a} | {o} | {{}} | {{}} … {{}} | {{}} | {{}} |" for a, o in PLACES)
)
def online_table() -> Iterator[str]:
    rows = {(one["arm"], one["outcome"]): one for one in read("online-elive")["analysis"]["lifts"]}
    exact = lifts("exact")
    for place in PLACES:
        yield from (f"{rows[place][key]:+.2f}" for key in ("lift", "low", "high"))
        yield f"{rows[place]['p']:.4f}"
        yield f"{exact[place]:+.2f}" if place in exact else "0"
