"""One sentence that says who is ahead, and is honest about ties."""

from dataclasses import replace

import numpy as np
import pytest

from harmonrank.data import read_log
from harmonrank.evaluation.entry import REPLICATES, Entry
from harmonrank.evaluation.verdict import verdict_of
from harmonrank.fusion import quality_of
from harmonrank.metrics import Interval

NOISE = np.random.default_rng(0).normal(0, 0.01, (REPLICATES, 2))


@pytest.fixture
def entry(table, schema):
    log = read_log(table, schema)
    quality = quality_of(log.scores.sum(axis=1), log, np.ones(2))

    def make(name, buy, like, wobble=0.0):
        areas = {"buy": buy, "like": like}
        own = np.random.default_rng(len(name)).normal(0, 1, (REPLICATES, 2))
        reached = replace(
            quality,
            auc={o: Interval(a, a - 0.1, a + 0.1, 0.95) for o, a in areas.items()},
            auc_sum=Interval(buy + like, 1.0, 1.8, 0.95),
        )
        return Entry(name, 1.0, reached, resampled=[buy, like] + NOISE + wobble * own)

    return make


TODAY = ("today", "today's formula")


def test_ahead_of_the_best_other_and_of_today(entry):
    entries = [entry("harmonrank", 0.71, 0.74), entry("logistic", 0.70, 0.7417)]
    verdict = verdict_of([*entries, entry("today", 0.66, 0.75)], TODAY)
    assert verdict.sentence == (
        "harmonrank is ahead of logistic by .0083 (.0083 to .0083) and of today's formula by "
        ".0400 (.0400 to .0400); 1 objective better than today's formula, 1 worse."
    )
    first, second = verdict.to_dict()["against"]
    assert (first["name"], first["relation"]) == ("logistic", "ahead")
    assert second["objectives"]["like"]["difference"] == pytest.approx(-0.01)


def test_what_the_rows_cannot_tell_apart_is_a_tie(entry):
    entries = [entry("harmonrank", 0.701, 0.74), entry("logistic", 0.70, 0.74, wobble=0.02)]
    (versus,) = verdict_of(entries).against
    assert versus.relation == "tied"
    sentence = verdict_of(entries).sentence
    assert sentence.startswith("harmonrank is tied with logistic (+.0010, −.0")
    assert sentence.endswith("; no objective can be told apart.")


def test_ours_behind_is_said_as_plainly(entry):
    entries = [entry("lightgbm", 0.73, 0.75), entry("harmonrank", 0.71, 0.74)]
    assert verdict_of(entries).sentence == (
        "harmonrank is behind lightgbm by .0300 (.0300 to .0300); 2 objectives worse."
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
    found = verdict_of([*entries, entry("closed-form", 0.6, 0.6)])
    assert found.sentence.startswith("logistic is ahead of closed-form by .2000")


def test_a_difference_without_an_interval_is_a_tie(entry):
    bare = [
        replace(entry(n, a, 0.7), resampled=np.empty((0, 0))) for n, a in (("a", 0.8), ("b", 0.7))
    ]
    assert verdict_of(bare).sentence == (
        "a is tied with b (+.1000, no interval); no objective can be told apart."
    )
