"""Records of steps, experiments and tables with valid checksums and wrong content."""

import json

import pytest

from fuzzing import alter, changed
from harmonrank.support import DataError
from harmonrank.support.storage import Store
from harmonrank_lab.paper_tables import Estimate, PaperTable
from harmonrank_lab.paper_tables._data import data_of
from harmonrank_lab.paper_tables._fit import FitCell
from harmonrank_lab.paper_tables._online import OnlineCell
from harmonrank_lab.paper_tables._relations import RelationsCell
from harmonrank_lab.paper_tables._speed import SpeedCell
from harmonrank_lab.paper_tables._table import Row, Verdict
from harmonrank_lab.paper_tables.report._folder import RESULTS, add_results
from harmonrank_lab.pipeline.pipeline import Steps

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


def stepped(scratch, change=lambda content: content):
    """Run a step twice, the second time with its altered record; return how often it worked."""
    worked = []
    scratch.mkdir(exist_ok=True)

    def work():
        worked.append(1)
        (scratch / "out").write_text("x")
        return {"rows": 3}

    for _ in range(2):
        _, facts = Steps(scratch, ("one",)).run("one", {}, ["out"], work)
        assert facts == {"rows": 3}
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


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("seconds", None),
        ("seconds", "x"),
        ("outputs", {}),
        ("outputs", {"another": "x"}),
    ],
)
def test_a_step_with_a_wrong_record_is_done_again(tmp_path, place, value):
    assert stepped(tmp_path / "changed", lambda c: changed(c, place, value)) == 2
    assert stepped(tmp_path / "same") == 1


@pytest.mark.parametrize("number", range(4))
def test_what_an_experiment_found_survives_json(number, tmp_path):
    cell, content = cells()[number]
    for result in (content, {"error": "These rows cannot be learned from."}):
        Store(tmp_path).put("cell", "key", result)
        stored = Store(tmp_path).find("cell", "key", cell.decoded)
        assert stored == json.loads(json.dumps(result))


@pytest.mark.parametrize(
    ("number", "place", "value"),
    [
        (0, "auc", "x"),
        (0, "positives", None),
        (0, "history", [[1.0]]),
        (0, "error", 3),
        (1, "labels", "x"),
        (2, "rates", {"harmonrank": []}),
        (3, "exact", 3),
        (2, "sizes", {"parameters": "x"}),
        (3, "analysis", {}),
        (3, "analysis.rows", "x"),
    ],
)
def test_a_wrong_result_of_an_experiment_is_absent(tmp_path, number, place, value):
    cell, content = cells()[number]
    Store(tmp_path).put("cell", "key", changed(content, place, value))
    assert Store(tmp_path).find("cell", "key", cell.decoded) is None


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("key", "unknown"),
        ("rows", 3),
        ("rows", [{"group": "g"}]),
        ("verdicts", [[]]),
        ("matrices", {"labels": [[1.0]]}),
        ("curves", {"buy – like": {"a": [[0.5]]}}),
        ("areas", []),
        ("data", 5),
    ],
)
def test_results_with_a_wrong_table_are_refused_in_a_sentence(tmp_path, place, value):
    parts = {"format": 1, "tables": [changed(table().to_dict(), place, value)]}
    (tmp_path / RESULTS).write_text(json.dumps(parts))
    with pytest.raises(DataError, match=r"does not hold results of .* delete the file\.$"):
        add_results(tmp_path, [])


def test_results_are_read_back_as_they_were(tmp_path):
    parts = {"format": 1, "tables": [table().to_dict()]}
    (tmp_path / RESULTS).write_text(json.dumps(parts))
    assert add_results(tmp_path, []) == (table(),)
