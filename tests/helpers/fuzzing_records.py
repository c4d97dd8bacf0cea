"""Altered records with valid checksums, read by the decoders that the package reads them by."""

import json

import numpy as np

import harmonrank as hr
from fuzzing import mangled
from harmonrank.support.storage.store import Store
from harmonrank_lab.experiments.online import OnlineResult
from harmonrank_lab.paper_tables import QUICK, Estimate, PaperTable
from harmonrank_lab.paper_tables._data import data_of
from harmonrank_lab.paper_tables._fit import FitCell
from harmonrank_lab.paper_tables._online import OnlineCell
from harmonrank_lab.paper_tables._relations import RelationsCell
from harmonrank_lab.paper_tables._speed import SpeedCell
from harmonrank_lab.paper_tables._study import Results, Study
from harmonrank_lab.paper_tables._table import Row, Verdict
from harmonrank_lab.paper_tables._timed import Timed
from harmonrank_lab.paper_tables.report._folder import RESULTS, add_results
from harmonrank_lab.pipeline.steps import Steps
from logs import small_table

M = 5
NUMBERS = [0.6, 0.7, 0.8, 0.65, 0.75]
SQUARE = [NUMBERS] * M
FITTED = {
    "fit_seconds": 1.0, "auc": NUMBERS, "ceiling": 3.9, "positives": [9] * M,
    "rows": {"train": 2000, "test": 1000}, "attention": SQUARE, "history": [[0.5, 1.2, None]],
}  # fmt: skip
RATES = {"harmonrank-paper": [1.0, 2.0], "harmonrank": [3.0, 4.0]}
SPEEDS = {
    "rates": RATES, "batch": 2000, "threads": 1, "load": None,
    "sizes": {"parameters": 9.0, "FLOPs": 9.0},
}  # fmt: skip


def online(arms=("rl", "paper", "ours"), outcomes=()):
    """Return the JSON parts of a simulated experiment."""
    numbers = ("lift", "low", "high", "p", "p_holm", "detectable")
    lifts = [
        {"arm": arm, "outcome": outcome, **dict.fromkeys(numbers, 0.5)}
        for arm in arms
        for outcome in outcomes
    ]
    analysis = {
        "outcomes": list(outcomes), "arms": ["base", *arms], "control": "base", "aa_arm": None,
        "per": "impression", "level": 0.95, "rows": 9, "crossed_users": 0, "skipped_rows": 0,
        "means": [], "lifts": lifts,
        "sample_ratio": {"users": {"base": 3}, "intended": {"base": 1.0}, "chi_square": 0.0,
                         "p": 1.0, "alarm": False},
        "aa": {"splits": 2, "below": {}, "usual": [0.0, 0.1], "alarm": False},
    }  # fmt: skip
    return {
        "world": "elive", "seed": 0, "objectives": list(outcomes), "arms": {"base": "mbce"},
        "settings": {}, "requests": 9, "analysis": analysis, "exact": lifts, "days": [lifts],
        "exact_days": [lifts], "seconds": 1.0,
    }  # fmt: skip


def table():
    """Return a small table of the paper."""
    mean = Estimate(0.5, 0.4, 0.6, 2)
    return PaperTable(
        "main", "title", "data, more", "protocol: more", "command", ("buy", "like"),
        (Row("g", "n", "AUC-sum", 0.5, mean, mean),),
        (Verdict("claim", "paper", "held", "AUC-sum", None, mean),),
        matrices={"labels": [[1.0, 0.1], [0.1, 1.0]]}, curves={"buy – like": {"a": [[0.5, 0.6]]}},
        areas={"a": [[0.5, None, None]] * 2}, training={"a": [[0.5, 1.2, None]]},
    )  # fmt: skip


def kept(scratch, change=lambda content: content):
    """Compare a method twice, the second time with its altered record."""
    rows = small_table()
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"}, request="request_id")
    events = []
    for _ in range(2):
        board = hr.compare(
            rows, schema, ["closed-form"], runs=scratch, on_event=events.append, test=rows
        ).board
        alter(scratch, "closed-form", change)
        str(board)
        board.to_dict()
    return events[-1].kept


def alter(folder, name, change):
    """Replace the content of a record; its checksum is right again."""
    record = json.loads((folder / f"{name}.json").read_text())
    Store(folder).put(name, record["key"], change(record["content"]))


def stepped(scratch, change=lambda content: content):
    """Run a step twice, the second time with its altered record; return how often it worked."""
    worked = []
    scratch.mkdir(exist_ok=True)

    def work():
        worked.append(1)
        (scratch / "out").write_text("x")
        return {"rows": 3}

    for _ in range(2):
        _, facts = Steps(scratch, ("one",)).run("one", {}, ["out"], work, dict[str, int])
        assert set(map(type, facts.values())) <= {int}
        alter(scratch / "steps", "one", change)
    return len(worked)


def cells():
    """Return each kind of cell with a result that it takes."""
    data = data_of("elive", 2000)
    return [
        (FitCell(data, data.objectives, "mbce", 0), FITTED),
        (RelationsCell(data, 0), {"labels": SQUARE, "latent": None}),
        (SpeedCell(data, "inference", 1.0), SPEEDS),
        (OnlineCell(data, 0, {}), online(outcomes=data.objectives)),
    ]


def used(cell, found):
    """Make of a cell's result what its table makes of it."""
    results = Results({cell.key: found})
    if results.error([cell]):
        return
    if isinstance(cell, FitCell):
        results.row("g", "n", None, [cell])
        results.areas([cell])
    elif isinstance(cell, SpeedCell):
        study = Study(cell.data, QUICK, "")
        cell = SpeedCell(cell.data, "inference", QUICK.seconds)
        Timed("inference").table(study, Results({cell.key: found}))
    elif isinstance(cell, RelationsCell):
        assert np.array(found["labels"], dtype=float).shape == (M, M)
    else:
        result = OnlineResult.from_dict(found)
        assert np.isfinite([result.exact_lift("ours", name).p for name in result.objectives]).any()


def stored(rng, scratch):
    """Read an altered record of a comparison, a step, an experiment or a table."""
    kind = rng.choice(["kept", "stepped", "cell", "cell", "cell", "results"])
    if kind == "kept":
        kept(scratch, lambda content: mangled(rng, content))
    elif kind == "stepped":
        stepped(scratch, lambda content: mangled(rng, content))
    elif kind == "cell":
        cell, content = rng.choice(cells())
        Store(scratch).put(cell.key, cell.digest, mangled(rng, content))
        found = Store(scratch).find(cell.key, cell.digest, cell.decoded)
        if found is not None:
            used(cell, found)
    else:
        parts = {"format": 1, "tables": [json.loads(json.dumps(table().to_dict()))]}
        (scratch / RESULTS).write_text(json.dumps(mangled(rng, parts)))
        add_results(scratch, [])
