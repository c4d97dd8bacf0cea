"""Tables of regrets and of AUC-sums: what fusion.py, worlds.py and experiments.py measured."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from statistics import mean, median
from typing import Any

from store import EIGHT, LIFELIKE, listed, markdown, read, short, span, table

from harmonrank.fusion import METHODS
from harmonrank_lab.real import differences_table, tally_table

FEW = ("harmonrank", "harmonrank, all", "lightgbm", "logistic", "harmonrank-paper")
ORDER = (*EIGHT, *LIFELIKE)
MEASURES = {"regret_within": "within requests", "regret": "over all rows"}

Regrets = dict[str, dict[str, list[float]]]


def regrets(name: str, measure: str = "regret") -> Regrets:
    """Return the regrets of each method in each world at the largest size, one per seed."""
    stored: Regrets = defaultdict(lambda: defaultdict(list))
    rows = [row for row in read(name)["results"] if "regret" in row]
    largest = {row["world"]: row["rows"] for row in sorted(rows, key=lambda row: row["rows"])}
    for row in rows:
        if row["rows"] == largest[row["world"]] and measure in row:
            stored[row["method"]][row["world"]].append(row[measure])
    return stored


def regret_table(name: str, methods: Iterable[str] = (), repeats: str = "seeds") -> str:
    """Return regrets within requests, as far as they are stored, then over all rows."""
    every = regrets(name)
    worlds = [w for w in ORDER if any(w in of_one for of_one in every.values())]
    shown = [m for m in methods or by_mean(every) if m in every]
    rows = []
    for measure, title in MEASURES.items():
        measured = regrets(name, measure)
        if measured:
            rows += [[row[0], title, *row[1:]] for row in _regret_rows(measured, shown, worlds)]
    return markdown(["method", "regret", *worlds, repeats], rows, 2)


def _regret_rows(every: Regrets, methods: Iterable[str], worlds: Iterable[str]) -> list[list[str]]:
    """Return a row per method; the best of each world is bold, what is not stored is empty."""
    best = {
        w: min((mean(of_one[w]) for of_one in every.values() if of_one.get(w)), default=0.0)
        for w in worlds
    }

    def cell(values: list[float], least: float) -> str:
        shown = short(mean(values)) if values else ""
        return f"**{shown}**" if values and mean(values) == least else shown

    rows = []
    for method in (m for m in methods if m in every):
        cells = [cell(every[method].get(w, []), best[w]) for w in worlds]
        counts = [len(values) for values in every[method].values()]
        seeds = f"{min(counts)}" if min(counts) == max(counts) else span(counts, "d")
        rows.append([f"`{method}`", *cells, seeds])
    return rows


def by_mean(every: Regrets) -> list[str]:
    """Return the methods, the least mean regret in the worlds that all of them have seen first.

    A method with an option stands right below the method itself.
    """
    common = set.intersection(*(set(of_one) for of_one in every.values()))
    means = {m: mean(mean(of_one[w]) for w in common) for m, of_one in every.items()}
    return sorted(every, key=lambda m: (means.get(m.partition(", ")[0], means[m]), m))


@table
def regret_of_few() -> str:
    return regret_table("regret", FEW)


@table
def regret() -> str:
    return regret_table("regret")


@table
def unseen() -> str:
    return regret_table("unseen", repeats="redraws")


@table
def real_tally() -> str:
    return tally_table(read("real")["logs"]).to_markdown()


@table
def real() -> str:
    return differences_table(read("real")["logs"]).to_markdown()


@table
def small() -> str:
    """Regret of few rows: the default beside the better of two methods that learn nothing."""
    by_size = defaultdict(list)
    for row in read("small")["results"]:
        free = min(row["closed-form"], row["prevalence-weights"])
        by_size[row["rows"], row["world"]].append((row["harmonrank"], free))
    rows = [
        (f"{size:,}", f"`{world}`", *(short(mean(values)) for values in zip(*pairs, strict=True)),
         f"{sum(ours < free for ours, free in pairs)} of {len(pairs)}")
        for (size, world), pairs in by_size.items()
    ]  # fmt: skip
    head = ["rows", "world", "`harmonrank`", "better of the free", "seeds ahead"]
    return markdown(head, rows, 2)


@table
def skew() -> str:
    by_method = defaultdict(list)
    for row in read("skew")["results"]:
        by_method[row["method"]].append(row)
    odds = ("10000", "100000")
    rows = [
        (f"`{m}`", *(f"{100 * max(r[f'drop 1:{o}'] for r in of_one):.2f} %" for o in odds),
         len(of_one))
        for m, of_one in by_method.items()
    ]  # fmt: skip
    return markdown(["method", "1 in 10,000", "1 in 100,000", "cases"], rows)


def swap_table(name: str) -> str:
    """What each method loses beyond the ceiling's own loss, as fitted and recalibrated."""
    lost: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read(name)["results"]:
        for key, value in row.items():
            if key.startswith("lost ") and key != "lost ceiling":
                method = key.removeprefix("lost ").removesuffix(" recalibrated")
                lost[method][key.removeprefix(f"lost {method}")].append(value - row["lost ceiling"])
    rows = [
        (f"`{m}`", *(short(of(kinds[k])) for k in ("", " recalibrated") for of in (median, max)),
         len(kinds[""]))
        for m, kinds in lost.items()
    ]  # fmt: skip
    head = ["as fitted: median", "largest", "recalibrated: median", "largest", "cases"]
    return markdown(["method", *head], rows)


@table
def swap() -> str:
    return swap_table("swap")


@table
def swap_million() -> str:
    return swap_table("swap_million")


@table
def drifting() -> str:
    """Mean regret after chances moved, and how often a recalibration raised it."""
    kinds = ("as fitted", "recalibrated", "with labels", "all scores")
    by_method: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for row in read("drifting")["results"]:
        moved = " and ".join(
            k.replace("_", " ") for k in ("alike", "by_context", "slow") if k in row
        )
        for key in row:
            if key.endswith(kinds[0]):
                m = key.removesuffix(f" {kinds[0]}")
                by_method[m, moved].append([row[f"{m} {kind}"] for kind in kinds])
    rows = []
    for (m, moved), cases in by_method.items():
        raised = sum(max(case[1:3]) > case[0] + 5e-5 for case in cases)
        means = (short(mean(of)) for of in zip(*cases, strict=True))
        rows.append([f"`{m}`", moved, *means, f"{raised} of {len(cases)}"])
    return markdown(["method", "moved", *kinds, "raised unforced"], sorted(rows), 2)


@table
def per_request() -> str:
    """Regret within requests of both fits of the default, and over all rows."""
    within = ("harmonrank", "harmonrank, requests", "logistic", "perfect heads")
    within += ("perfect heads, requests",)
    rows = []
    for one in read("per_request")["results"]:
        methods = one["methods"]
        if "harmonrank" in methods:
            name = f"`{one['world']}`, " + (f"redraw {one['seed']}" if one["seed"] else "preset")
            cells = [short(methods[m]["within"]) if m in methods else "" for m in within]
            rows.append((name, *cells, *(short(methods[m]["all"]) for m in within[:2])))
    head = ["world", "for all rows", "for requests", "`logistic`", "perfect heads"]
    head += ["perfect heads, for requests", "all rows: for all rows", "all rows: for requests"]
    return markdown(head, rows)


@table
def per_request_network() -> str:
    """Regret within requests of both fits of the paper's network."""
    both = ("harmonrank-paper", "harmonrank-paper, requests")
    rows = [
        (f"`{one['world']}`", *(short(one["methods"][m]["within"]) for m in both))
        for one in read("per_request")["results"]
        if both[0] in one["methods"]
    ]
    return markdown(["world", "`harmonrank-paper`", "for requests"], rows)


@table
def kuairand_slice() -> str:
    sums = defaultdict(list)
    for run in read("kuairand_slice")["runs"]:
        for entry in run["methods"]:
            if entry.get("auc_sum") is not None and entry["name"] in METHODS:
                sums[entry["name"]].append(entry["auc_sum"])
    order = sorted(sums, key=lambda m: -mean(sums[m]))
    rows = [(f"`{m}`", f"{mean(sums[m]):.4f}", len(sums[m])) for m in order]
    return markdown(["method", "mean AUC-sum", "seeds"], rows)


@table
def both_stages() -> str:
    large = read("large_log")["pipeline"]["outcome"]
    fold = {
        row["method"]: f"{row['auc_sum']:.4f}"
        for row in read("out_of_fold")["fusion"]
        if row["train"] == "out-of-fold" and row["test"] == "mean"
    }
    rows = [
        (f"`{one['name']}`", f"{one['auc_sum']:.4f}", fold.get(one["name"], ""))
        for one in large["methods"]
    ]
    rows.append(("best possible", f"{large['ceiling']:.4f}", ""))
    return markdown(["method", "20M-row log", "200K rows"], rows)


def tuned(key: str, cell: Callable[[dict[str, Any], str], str], *told: str) -> str:
    best = read("tuning")["best"]
    worlds = list(next(iter(best.values()))["regret"])
    rows = [
        (f"`{m}`", *(_changed(m) for _ in told), *(cell(one, w) for w in worlds))
        for m, one in best.items()
    ]
    return markdown([key, *told, *(f"`{w}`" for w in worlds)], rows, 1 + len(told))


def _changed(method: str) -> str:
    """Tell where a search ended, apart from where it began."""
    tuning = read("tuning")
    start, left_out = tuning["start"], {"patience_steps"}
    changed = tuning["best"][method]["options"].items()
    parts = [f"{k} {v}" for k, v in changed if k not in left_out and start.get(k) != v]
    return ", ".join(parts).replace("_", " ") or "the start"


@table
def tuned_end() -> str:
    return tuned("network", lambda one, w: short(one["regret"][w]), "search ended at")


@table
def tuned_defaults() -> str:
    def cell(one: dict[str, Any], world: str) -> str:
        return short(one["default"][world]) + " ▾" * (world in one["default_behind"])

    return tuned("network, its defaults", cell)


@table
def schedule() -> str:
    rows = [
        (f"`{r['world']}`", f"{short(r['rate'], 2)}, {r['schedule']}", short(r["regret"]),
         f"{r['health']['fused']:.2f}", short(r["health"]["relation_aware"], 3),
         short(r["health"]["context"]))
        for r in read("schedule")["results"]
    ]  # fmt: skip
    return markdown(["world", "rate", "regret", "spread", "s1", "context"], rows, 2)


@table
def published() -> str:
    ours = regrets("regret")["harmonrank-paper"]
    rows = [
        (f"`{r['world']}`", short(r["regret"]), short(mean(ours[r["world"]])))
        for r in read("published")["results"]
    ]
    return markdown(["world", "as the paper prints it", "our defaults"], rows)


@table
def worlds() -> str:
    rows = []
    stored = read("worlds")["results"]
    for first in (r for r in stored if r["redraw"] is None and r["world"] in ORDER[:3]):
        again = [r for r in stored if r["redraw"] is not None and r["world"] == first["world"]]
        three = f"{first['three']['ceiling']:.4f}" if "three" in first else ""
        spread = span([r["ceiling"] for r in again], ".4f")
        ceiling = f"{first['ceiling']:.4f}"
        rows.append(
            [f"`{first['world']}`", ceiling, three, spread, *listed(first["regret"], ".4f")]
        )
    names = ["calibrated own score", "logistic on all"]
    return markdown(["world", "ceiling", "of three", "of redraws", *names], rows)


@table
def online_lifts() -> str:
    online = read("online-elive")
    exact = {(one["arm"], one["outcome"]): f"{one['lift']:+.2f}" for one in online["exact"]}
    rows = [
        (one["arm"], one["outcome"], f"{one['lift']:+.2f}",
         f"{one['low']:+.2f} … {one['high']:+.2f}", f"{one['p']:.4f}",
         exact.get((one["arm"], one["outcome"]), "0"))
        for one in sorted(online["analysis"]["lifts"], key=lambda one: (one["arm"], one["outcome"]))
    ]  # fmt: skip
    head = ["arm", "outcome", "lift %", "95 % interval", "p", "exact lift %"]
    return markdown(head, rows, 2)


@table
def online_checks() -> str:
    online = read("online-elive")
    check = online["analysis"]
    shares = {f"A/A: p < .05 in {n}": f"{100 * s:.1f} %" for n, s in check["aa"]["below"].items()}
    users = sum(check["sample_ratio"]["users"].values())
    facts = {"requests": f"{online['requests']:,}", "users": f"{users:,}",
             "sample ratio, p": f"{check['sample_ratio']['p']:.2f}", **shares}  # fmt: skip
    return markdown(["what", "figure"], facts.items())
