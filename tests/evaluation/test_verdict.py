"""One sentence that says who is ahead, by what, and is honest about ties."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from harmonrank import Schema
from harmonrank.data import read_log
from harmonrank.evaluation import REPLICATES, Entry, verdict_of
from harmonrank.evaluation.entry import entry_of
from harmonrank.fusion import quality_of
from harmonrank.metrics import Interval

NOISE = np.random.default_rng(0).normal(0, 0.01, (REPLICATES, 2))


@pytest.fixture
def entry(table, schema):
    log = replace(read_log(table, schema), request=None)
    quality = quality_of(log.scores.sum(axis=1), log, np.ones(2))

    def make(name, buy, like, wobble=0.0):
        areas = {"buy": buy, "like": like}
        own = np.random.default_rng(len(name)).normal(0, 1, (REPLICATES, 2))
        reached = replace(
            quality,
            auc={o: Interval(a, a - 0.1, a + 0.1, 0.95) for o, a in areas.items()},
            auc_sum=Interval(buy + like, 1.0, 1.8, 0.95),
        )
        drawn = np.vstack([[buy, like], [buy, like] + NOISE + wobble * own])
        return Entry(name, 1.0, reached, drawn={"all rows": drawn})

    return make


TODAY = ("today", "today's formula")


def test_ahead_of_the_best_other_and_of_today(entry):
    entries = [entry("harmonrank", 0.71, 0.74), entry("logistic", 0.70, 0.7417)]
    verdict = verdict_of([*entries, entry("today", 0.66, 0.75)], TODAY)
    assert verdict.sentence == (
        "Over all rows harmonrank is ahead of logistic by .0083 (.0083 to .0083) and of today's "
        "formula by .0400 (.0400 to .0400); 1 objective better than today's formula, 1 worse."
    )
    first, second = verdict.to_dict()["against"]
    assert (first["name"], first["relation"]) == ("logistic", "ahead")
    assert second["objectives"]["like"]["difference"] == pytest.approx(-0.01)


def test_what_the_rows_cannot_tell_apart_is_a_tie(entry):
    entries = [entry("harmonrank", 0.701, 0.74), entry("logistic", 0.70, 0.74, wobble=0.02)]
    (versus,) = verdict_of(entries).against
    assert versus.relation == "tied"
    sentence = verdict_of(entries).sentence
    assert sentence.startswith("Over all rows harmonrank is tied with logistic (+.0010, −.0")
    assert sentence.endswith("; no objective can be told apart.")


def test_ours_behind_is_said_as_plainly(entry):
    entries = [entry("lightgbm", 0.73, 0.75), entry("harmonrank", 0.71, 0.74)]
    assert verdict_of(entries).sentence == (
        "Over all rows harmonrank is behind lightgbm by .0300 (.0300 to .0300); 2 objectives worse."
    )


def test_relations_that_differ_are_both_named(entry):
    entries = [entry("lightgbm", 0.73, 0.75), entry("harmonrank", 0.71, 0.74)]
    sentence = verdict_of([*entries, entry("today", 0.6, 0.7)], TODAY).sentence
    assert (
        "is behind lightgbm by .0300 (.0300 to .0300) and ahead of today's formula by" in sentence
    )
    assert sentence.endswith("; 2 objectives better than today's formula.")


def test_without_our_default_it_is_about_the_first_and_a_failure_is_no_rival(entry):
    entries = [entry("logistic", 0.7, 0.7), Entry("aucm", 0.1, error="oh no")]
    assert verdict_of(entries) is None
    assert verdict_of([]) is None
    verdict = verdict_of([*entries, entry("closed-form", 0.6, 0.6)])
    assert verdict.sentence.startswith("Over all rows logistic is ahead of closed-form by .2")


def test_a_difference_without_an_interval_is_a_tie(entry):
    bare = [
        replace(entry(n, a, 0.7), drawn={"all rows": np.array([[a, 0.7]])})
        for n, a in (("a", 0.8), ("b", 0.7))
    ]
    assert verdict_of(bare).sentence == (
        "Over all rows a is tied with b (+.1000, no interval); no objective can be told apart."
    )


# Where requests decide

SIZE = 12


def shown_together(users, seed=0):
    """Return rows of requests whose users differ, two scores and labels by them."""
    rng = np.random.default_rng(seed)
    level = np.repeat(rng.normal(0, 1.5, users), SIZE)
    a, b = rng.normal(size=(2, users * SIZE))
    buy = rng.random(len(a)) < 1 / (1 + np.exp(2 - a - level))
    like = rng.random(len(a)) < 1 / (1 + np.exp(2 - b - level))
    columns = {"a": a, "b": b, "level": level, "buy": buy, "like": like}
    return pl.DataFrame(columns).with_columns(
        pl.col("buy", "like").cast(pl.UInt8), request=pl.int_range(pl.len()) // SIZE
    )


def judged(rows, ours, today, k=3):
    """Return the verdict on two scores, ours and that of today."""
    log = read_log(rows, Schema({"buy": "p_a", "like": "p_b"}, request="request"))
    entries = [
        entry_of(name, score.to_numpy(), log, quality_of(score.to_numpy(), log, np.ones(2)), k=k)
        for name, score in (("harmonrank", ours), ("today", today))
    ]
    return verdict_of(entries, TODAY)


@pytest.fixture(scope="module")
def rows():
    return shown_together(400).with_columns(
        p_a=1 / (1 + (-pl.col("a")).exp()), p_b=1 / (1 + (-pl.col("b")).exp())
    )


def test_a_factor_of_the_user_in_the_score_of_today_changes_nothing(rows):
    ours, today = rows["a"] + rows["b"], rows["p_a"] * (1 + rows["p_b"])
    mood = np.random.default_rng(5).integers(-3, 4, 400)  # changes the order of no request
    factor = 2.0 ** mood[rows["request"]]
    one, other = judged(rows, ours, today), judged(rows, ours, today * factor)
    assert one.against[0].over_all != other.against[0].over_all
    assert one.sentence == other.sentence
    first, second = (verdict.to_dict()["against"][0] for verdict in (one, other))
    for parts in (first, second):
        del parts["over_all_rows"]
    assert first == second


def test_events_in_the_first_k_are_told_against_the_baseline(rows):
    verdict = judged(rows, rows["a"] + 0.2 * rows["b"], rows["b"])
    assert verdict.sentence.startswith("Within requests harmonrank is ")
    assert "; in the first 3: buy +" in verdict.sentence
    assert ", like −" in verdict.sentence
    top = rows.with_columns(s=rows["a"] + 0.2 * rows["b"]).sort("s", descending=True)
    old = rows.sort("b", descending=True)
    ours, today = (t.group_by("request").head(3)["buy"].sum() for t in (top, old))
    told = verdict.to_dict()["against"][0]["events_at_k"]["buy"]
    assert told["difference"] == pytest.approx(ours / today - 1)
    assert told["difference_ci"][0] < told["difference"] < told["difference_ci"][1]


def test_first_places_that_hold_whole_requests_are_not_told(rows):
    sentence = judged(rows, rows["a"], rows["b"], k=SIZE).sentence
    assert "in the first" not in sentence
    assert "1 objective better, 1 worse" in sentence


def test_measures_that_disagree_in_sign_are_warned_of(rows):
    ours, today = rows["a"] + rows["b"], rows["a"] + 3 * rows["level"]
    verdict = judged(rows, ours, today)
    assert verdict.against[0].relation == "ahead"
    assert verdict.against[0].disagrees
    first, second = verdict.sentence.split(". ", 1)
    assert first.startswith("Within requests harmonrank is ahead of today's formula by .")
    assert re.fullmatch(
        r"Over all rows it is behind today's formula by \.\d+ \(\.\d+ to \.\d+\): the two measures "
        r"disagree; a ranking changes the order within requests only\.",
        second,
    )
    agreeing = judged(rows, ours, rows["a"])
    assert not agreeing.against[0].disagrees
    assert "disagree" not in agreeing.sentence


def test_an_objective_without_an_event_in_the_first_places_of_today_is_left_out(rows):
    never = rows.with_columns(buy=(pl.col("buy") * (pl.col("p_a") > 0.9)).cast(pl.UInt8))
    verdict = judged(never, rows["a"], -rows["a"])
    assert set(verdict.against[0].lifts) == {"like"}
    assert "nan" not in verdict.sentence
