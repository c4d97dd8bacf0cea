"""Write the figures of README.md and docs from stored results.

    python benchmarks/results_page.py            # rewrites the files
    python benchmarks/results_page.py --check    # says whether they are as stored

Every number between the markers of README.md and docs/results.md is computed here from
benchmarks/results/*.json, those within sentences and tables of other pages by the claims of
prose.py; a test holds all pages to it, so that no figure can be stated that no stored command
printed.
"""

import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean, median
from typing import Any

import prose
from prose import ROOT, read, short

BEGIN, END = "<!-- results -->", "<!-- end of results -->"
FEW = ("harmonrank", "harmonrank-network", "lightgbm", "logistic", "harmonrank-paper")

Regrets = dict[str, dict[str, list[float]]]


def regrets(name: str = "regret") -> Regrets:
    """Return the regrets of each method in each world, one per seed, at the largest size."""
    found: Regrets = defaultdict(lambda: defaultdict(list))
    rows = [row for row in read(name)["results"] if "regret" in row]
    largest = max(row["rows"] for row in rows)
    for row in rows:
        if row["rows"] == largest:
            found[row["method"]][row["world"]].append(row["regret"])
    return found


def worlds_of(found: Regrets) -> list[str]:
    order = ("elive", "qkvideo", "conflict", "backbone", "tails", "interactions", "leak", "trained")
    known = {name for regrets in found.values() for name in regrets}
    return [name for name in order if name in known]


def regret_table(found: Regrets, methods: list[str], repeats: str = "seeds") -> str:
    worlds = worlds_of(found)
    lines = [f"| method | {' | '.join(worlds)} | {repeats} |", "|---" * (len(worlds) + 2) + "|"]
    best = {w: min(mean(found[m][w]) for m in found if found[m].get(w)) for w in worlds}
    for method in methods:
        cells, seeds = [], []
        for w in worlds:
            values = found[method].get(w)
            if not values:
                cells.append("")
                continue
            seeds.append(len(values))
            shown = short(mean(values))
            cells.append(f"**{shown}**" if mean(values) == best[w] else shown)
        span = f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)}–{max(seeds)}"
        lines.append(f"| `{method}` | {' | '.join(cells)} | {span} |")
    return "\n".join(lines)


def best_other(found: Regrets, world: str) -> tuple[str, float]:
    others = {m: mean(v[world]) for m, v in found.items() if m != "harmonrank" and v.get(world)}
    name = min(others, key=lambda m: others[m])
    return name, others[name]


def ratios(found: Regrets) -> str:
    """Tell how the default stands to the best other method in each world."""
    parts = []
    for world in worlds_of(found):
        name, other = best_other(found, world)
        ours = mean(found["harmonrank"][world])
        parts.append(f"{world} {ours / other:.2f} (`{name}`)")
    return ", ".join(parts)


def behind(found: Regrets) -> list[str]:
    rows = []
    for world in worlds_of(found):
        name, other = best_other(found, world)
        ours = mean(found["harmonrank"][world])
        if other < ours:
            rows.append(f"`{name}` in `{world}` by {short(ours - other)}")
    return rows


def each_redraw(found: Regrets) -> str:
    """Tell in how many redraws, taken one by one, the default is lowest, and where it is not."""
    ours, lost = found["harmonrank"], []
    for world in worlds_of(found):
        for i, regret in enumerate(ours[world]):
            others = {m: v[world][i] for m, v in found.items() if m != "harmonrank"}
            first = min(others, key=lambda m: others[m])
            if others[first] < regret:
                lost.append(f"`{first}` in a `{world}` by {short(regret - others[first])}")
    cases = sum(map(len, ours.values()))
    told = f" It is behind {'; '.join(lost)}." if lost else ""
    return f"One by one it is lowest in {cases - len(lost)} of {cases}.{told}"


def finding_worlds(found: Regrets) -> str:
    lost = behind(found)
    ahead = len(worlds_of(found)) - len(lost)
    none = "No method that was run there is ahead of it."
    told = f"It is behind {'; '.join(lost)}." if lost else none
    return (
        f"**Regret** ([regret.json](benchmarks/results/regret.json)): the default is lowest in "
        f"{ahead} of "
        f"{len(worlds_of(found))} worlds. {told} Its regret over that of the best other method: "
        f"{ratios(found)}."
    )


def changes() -> dict[str, dict[str, list[float]]]:
    """Return what each method loses beyond the ceiling's own loss, as fitted and recalibrated."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read("swap")["results"]:
        for key, value in row.items():
            if key.startswith("lost ") and key != "lost ceiling":
                method = key.removeprefix("lost ").removesuffix(" recalibrated")
                kind = "recalibrated" if key.endswith(" recalibrated") else "as fitted"
                found[method][kind].append(value - row["lost ceiling"])
    return found


def change_table() -> str:
    lines = [
        "| method | as fitted: median | largest | recalibrated: median | largest |",
        "|---|---|---|---|---|",
    ]
    for method, kinds in changes().items():
        cells = [
            short(value)
            for kind in ("as fitted", "recalibrated")
            for value in (median(kinds[kind]), max(kinds[kind]))
        ]
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def million_text() -> str:
    """Tell what a change costs the default after fits of a million rows."""
    rows = read("swap_million")["results"]
    lost = [row["lost harmonrank recalibrated"] - row["lost ceiling"] for row in rows]
    return (
        f"After fits of {rows[0]['rows']:,} rows ({len({r['seed'] for r in rows})} seeds, "
        f"{len(rows)} cases, `{read('swap_million')['command']} --methods harmonrank`) the "
        f"recalibrated default loses {short(median(lost))} in the median and {short(max(lost))} at "
        f"most."
    )


def finding_changes() -> str:
    ours, rows = changes()["harmonrank"], read("swap")["results"]
    others = {m: max(k["recalibrated"]) for m, k in changes().items() if m != "harmonrank"}
    name = min(others, key=lambda m: others[m])
    as_they_are = {m: max(k["as fitted"]) for m, k in changes().items()}
    fitted = min(as_they_are, key=lambda m: as_they_are[m])
    return (
        f"**An upstream change** ([swap.json](benchmarks/results/swap.json), {len(rows)} cases): "
        f"when upstream models "
        f"are rescaled, shifted or made noisier, the default as fitted loses up to "
        f"{short(max(ours['as fitted']))} "
        f"of AUC-sum beyond what the best possible loses; recalibrated on unlabelled rows, at most "
        f"{short(max(ours['recalibrated']))}. Every method can be recalibrated; the best other "
        f"one then loses up to "
        f"{short(others[name])} (`{name}`). As fitted, the best is `{fitted}`, which loses up to "
        f"{short(as_they_are[fitted])}."
    )


def slice_sums() -> dict[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for run in read("kuairand_slice"):
        for entry in run["methods"]:
            if entry.get("auc_sum") is not None:
                found[entry["name"]].append(entry["auc_sum"])
    return found


def finding_slice() -> str:
    found = slice_sums()
    seeds = len(found["harmonrank"])
    first = sum(
        found["harmonrank"][i] >= max(v[i] for v in found.values() if len(v) == seeds)
        for i in range(seeds)
    )
    ours = mean(found["harmonrank"])
    name = max((m for m in found if m != "harmonrank"), key=lambda m: mean(found[m]))
    return (
        f"**Real scores** ([kuairand_slice.json](benchmarks/results/kuairand_slice.json), {seeds} "
        f"seeds): on 25,445 "
        f"training rows of KuaiRand the default is first with {first} of {seeds} seeds; mean "
        f"AUC-sum {ours:.4f}, "
        f"`{name}` {mean(found[name]):.4f}. So few rows hardly tell simple formulas apart."
    )


def small_text() -> str:
    rows = read("small")["results"]
    free = [min(row["closed-form"], row["prevalence-weights"]) for row in rows]
    ahead = sum(row["harmonrank"] < other for row, other in zip(rows, free, strict=True))
    ours = [row["harmonrank"] for row in rows]
    return (
        f"With 20,000, 50,000 and 200,000 training rows, {len({r['world'] for r in rows})} worlds "
        f"and "
        f"{len({r['seed'] for r in rows})} seeds the default is ahead of both training-free "
        f"methods in {ahead} of "
        f"{len(rows)} cells: regret {short(min(ours))} to {short(max(ours))}, the better of the "
        f"two "
        f"{short(min(free))} to {short(max(free))}."
    )


def skew_table() -> str:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in read("skew")["results"]:
        found[row["method"]].append(row)
    lines = ["| method | 1 in 10,000 | 1 in 100,000 | cases |", "|---|---|---|---|"]
    for method, rows in found.items():
        drops = [
            f"{100 * max(r[f'drop 1:{odds}'] for r in rows):.2f} %" for odds in (10000, 100000)
        ]
        lines.append(f"| `{method}` | {' | '.join(drops)} | {len(rows)} |")
    return "\n".join(lines)


def slice_table() -> str:
    found = slice_sums()
    lines = ["| method | mean AUC-sum | seeds |", "|---|---|---|"]
    order = sorted(found, key=lambda m: -mean(found[m]))
    lines += [f"| `{m}` | {mean(found[m]):.4f} | {len(found[m])} |" for m in order]
    return "\n".join(lines)


def out_of_fold() -> dict[str, float]:
    """Return the AUC-sum of each fusion of out-of-fold scores."""
    return {
        row["method"]: row["auc_sum"]
        for row in read("out_of_fold")["fusion"]
        if row["train"] == "out-of-fold" and row["test"] == "mean"
    }


def stage_tables() -> str:
    """Quote the two stages together: fusions of scores that our own prediction stage made."""
    large = read("large_log")["pipeline"]["outcome"]
    lines = [f"| method | 20M-row log, of {large['ceiling']:.4f} | 200K rows |", "|---|---|---|"]
    fold = out_of_fold()
    for entry in large["methods"]:
        shown = f"{fold[entry['name']]:.4f}" if entry["name"] in fold else ""
        lines.append(f"| `{entry['name']}` | {entry['auc_sum']:.4f} | {shown} |")
    return "\n".join(lines)


def finding_stages() -> str:
    """Tell where there is little to fuse, and who is ahead there."""
    large = {e["name"]: e["auc_sum"] for e in read("large_log")["pipeline"]["outcome"]["methods"]}
    fold = out_of_fold()

    def other(found: dict[str, float]) -> str:
        """Name the best method but the default, and what it has."""
        name = max((m for m in found if m != "harmonrank"), key=lambda m: found[m])
        return f"`{name}` {found[name]:.4f}"

    return (
        f"**One network upstream** ([large_log.json](benchmarks/results/large_log.json)): where "
        f"all scores come from one network that saw every feature, little is left to fuse, and the "
        f"default and the best other method are as good as tied: AUC-sums of "
        f"{large['harmonrank']:.4f} and {other(large)} on a log of 20M rows, "
        f"{fold['harmonrank']:.4f} and {other(fold)} on one of 200K "
        f"([out_of_fold.json](benchmarks/results/out_of_fold.json))."
    )


WORDS = {
    "learning_rate": "rate {}",
    "steps": "{:,} steps",
    "batch_rows": "of {:,} rows",
    "weight_decay": "decay {}",
    "buckets": "{} buckets",
    "scale": "by {}",
    "interpolate": "interpolated: {}",
    "strength": "strength {}",
    "inner_rate": "inner rate {}",
    "ridge": "ridge {:.0f}",
    "slope_ridge": "ridge of slopes {:.0f}",
    "epochs": "{} epochs",
}


def found_options(method: str) -> str:
    """Tell where a search ended, apart from where all begin."""
    options, start = read("tuning")["best"][method]["options"], read("tuning")["start"]
    changed = {k: v for k, v in options.items() if k in WORDS and v != start.get(k)}
    if method == "harmonrank-network":
        changed = {k: v for k, v in options.items() if k in WORDS}
    parts = [
        WORDS[k].format(short(v, 3).rstrip("0") if isinstance(v, float) and v < 1 else v)
        for k, v in changed.items()
    ]
    return ", ".join(parts) or "the start"


def tuning_text() -> str:
    """Tell where each search ended, and where the defaults are behind what a search has seen."""
    best = read("tuning")["best"]
    worlds = list(next(iter(best.values()))["regret"])
    head = "|---|---" + "|--:" * len(worlds) + "|"
    names = " | ".join(f"`{w}`" for w in worlds)
    ended = [f"| network | search ended at | {names} |", head]
    own = [f"| network, its defaults | {names} |", head.removeprefix("|---")]
    cases, late = 0, 0
    for method, found in best.items():
        cells = (short(found["regret"][w]) for w in worlds)
        ended.append(f"| `{method}` | {found_options(method)} | {' | '.join(cells)} |")
        marks = [" ▾" if w in found["default_behind"] else "" for w in worlds]
        cells = (short(found["default"][w]) + mark for w, mark in zip(worlds, marks, strict=True))
        own.append(f"| `{method}` | {' | '.join(cells)} |")
        cases, late = cases + len(worlds), late + len(found["default_behind"])
    return (
        "`python benchmarks/tune_baselines.py`: exact regret on validation rows of redrawn worlds, "
        "100,000 training rows, mean of two redraws. Every network is offered the same moves "
        "([how](network.md#what-tuning-found)):\n\n"
        + "\n".join(ended)
        + "\n\nThe defaults, which have larger batches and are meant for more rows, in the same "
        f"worlds. In {late} of {cases} cases, marked ▾, some options of the search were better "
        "by more than .003:\n\n" + "\n".join(own)
    )


def readme_block() -> str:
    found = regrets()
    return "\n\n".join(
        [
            "Regret after 1,000,000 training rows, the distance of the exact AUC-sum from the best "
            "possible one "
            "(lower is better, best in bold). The first three [worlds](docs/worlds.md) satisfy "
            "what our default "
            "assumes, the next four each break one assumption, `trained` all of them. All methods: "
            "[docs/results.md](docs/results.md).",
            regret_table(found, [m for m in FEW if m in found]),
            "\n".join(
                f"- {text}"
                for text in (
                    finding_worlds(found),
                    finding_changes(),
                    finding_slice(),
                    finding_stages(),
                )
            ),
        ]
    )


def results_block() -> str:
    found, unseen = regrets(), regrets("unseen")
    order = sorted(found, key=lambda m: mean(mean(v) for v in found[m].values()))
    sections = {
        "Regret in eight worlds": (
            f"`{read('regret')['command']}`: exact regret after 1,000,000 training rows, mean over "
            f"the seeds of the "
            "last column, best in bold. An empty cell was not run.\n\n" + regret_table(found, order)
        ),
        "Worlds that nobody had seen": (
            f"`{read('unseen')['command']}`: each world redrawn by numbers on which nothing was "
            "ever chosen. Mean of the exact regret, one seed for each redraw:\n\n"
            + regret_table(
                unseen, sorted(unseen, key=lambda m: mean(unseen[m]["elive"])), "redraws"
            )
            + f"\n\nThe default over the best other method there: {ratios(unseen)}. "
            + each_redraw(unseen)
        ),
        "Networks, tuned": tuning_text(),
        "Small data": f"`{read('small')['command']}`. " + small_text(),
        "Skewed labels": (
            f"`{read('skew')['command']}`: purchases cut to 1 in 10,000 and 1 in 100,000 training "
            f"rows. Largest "
            "relative drop of the exact AUC-sum:\n\n" + skew_table()
        ),
        "An upstream change": (
            f"`{read('swap')['command']}`: two upstream models are rescaled, shifted or made "
            f"noisier after the fit. "
            "Loss of exact AUC-sum beyond the loss of the best possible, over all cases; every "
            "method as fitted and "
            "recalibrated on 200,000 unlabelled rows (the default by its density, the others by "
            "matched moments):\n\n" + change_table() + "\n\n" + million_text()
        ),
        "Real scores": (
            "`python benchmarks/kuairand_slice.py FOLDER`: 25,445 training rows of KuaiRand, five "
            "objectives, gradient "
            "boosting out of fold upstream, the last two days as test:\n\n" + slice_table()
        ),
        "Scores of our own prediction stage": (
            "`python benchmarks/large_log.py` and `python benchmarks/out_of_fold.py`: both stages "
            "on simulated raw "
            "logs, AUC-sum of the fused score. Where every upstream score comes from one network "
            "that saw all "
            "features, there is little left to fuse, and the methods are tied:\n\n" + stage_tables()
        ),
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())


def rendered(path: Path, block: str) -> str:
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{block}\n{END}{rest.split(END, 1)[1]}"


def pages() -> dict[Path, str]:
    blocks = {"README.md": readme_block, "docs/results.md": results_block}
    written = {ROOT / name: rendered(ROOT / name, block()) for name, block in blocks.items()}
    return written | prose.pages()


def main(arguments: list[str]) -> int:
    stale = [path for path, text in pages().items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        if "--check" not in arguments:
            path.write_text(pages()[path], encoding="utf-8")
        print(f"{path.relative_to(ROOT)} {'is stale' if '--check' in arguments else 'written'}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
