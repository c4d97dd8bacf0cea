from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from harmonrank import Schema
from harmonrank.data import read_log
from harmonrank.evaluation import Entry, Leaderboard
from harmonrank.fusion import quality_of

FIVE = ("buy", "comment", "follow", "like", "long_view")
LONG = ("click", "effective_view_thirty_seconds", "follow", "share_to_a_friend", "enter_profile")
MANY = tuple(f"objective_{i}" for i in range(12))


def shown(table):
    console = Console(width=80, file=StringIO())
    console.print(table)
    return console.file.getvalue().splitlines()


@pytest.fixture
def quality(table, schema):
    log = read_log(table, schema)
    return quality_of(log.scores.sum(axis=1), log, np.ones(2))


def rename(quality, names, *, exact):
    """Give a quality other objectives."""

    def all_of(areas, *parts):
        known = {part: dict.fromkeys(names, getattr(areas, part)["buy"]) for part in parts}
        if exact:
            known |= {"exact_auc": dict.fromkeys(names, 0.75), "exact_auc_sum": 3.0, "ceiling": 3.5}
        return replace(areas, **known)

    renamed = all_of(quality, "weights", "auc", "prevalence", "effective_weights")
    return replace(renamed, requests=all_of(quality.requests, "auc"))


@pytest.mark.parametrize("names", [FIVE, LONG, MANY], ids=["five", "long", "many"])
@pytest.mark.parametrize("exact", [True, False])
def test_a_row_of_the_leaderboard_is_a_line_of_80_columns(quality, names, exact):
    one = rename(quality, names, exact=exact)
    entries = (Entry("label-aggregation", 1234.5, one), Entry("aucm", 0.1, error="oh no"))
    board = Leaderboard(names, 1_000_000, 500_000, 3.5 if exact else None, entries)
    lines = shown(board.to_table())
    assert max(map(len, lines)) <= 80
    first_words = [(line.split() or [""])[0] for line in lines]
    assert first_words[:3] == ["method", *["ceiling"] * exact, "label-aggregation", "aucm"][:3]
    # Names that do not fit beside each other stand below each other, in blocks.
    assert (first_words.count("method") > 1) == (names is not FIVE)
    assert all(name in "\n".join(lines) for name in names)


def test_names_that_fit_are_not_cut(quality):
    board = Leaderboard(FIVE, 10, 10, None, (Entry("m", 0.1, rename(quality, FIVE, exact=False)),))
    assert shown(board.to_table())[0].split() == [
        *("method", "within", "behind", "all", "rows"),
        *FIVE,
    ]


def test_the_leaderboard_shows_regret_by_true_probabilities(quality):
    entry = Entry("m", 0.1, rename(quality, FIVE, exact=True))
    row = shown(Leaderboard(FIVE, 10, 10, 3.5, (entry,)).to_table())[2]
    assert row.split() == ["m", "3.0000", "0.5000", "3.0000", *["0.750"] * 5]


@pytest.mark.parametrize("names", [FIVE, LONG, MANY], ids=["five", "long", "many"])
def test_a_row_of_the_quality_table_is_a_line_of_80_columns(quality, names):
    lines = shown(rename(quality, names, exact=True).to_table())
    assert max(map(len, lines)) <= 80
    assert len(lines) == 1 + len(names) + 1 + 4


def test_what_is_not_known_is_a_dash_and_what_is_not_asked_is_left_out(quality, table):
    exact = {"buy": float("nan"), "like": 0.5}
    unknown = replace(quality, requests=replace(quality.requests, exact_auc=exact))
    assert "–" in shown(unknown.to_table())[1].split()
    log = read_log(table, Schema({"buy": "p_buy"}))
    plain = quality_of(log.scores[:, 0], log, np.ones(1))
    assert "within" not in shown(plain.to_table())[0]


def test_the_first_column_is_named_by_what_decides_however_narrow_the_terminal(quality):
    whole = replace(rename(quality, LONG, exact=False), requests=None)
    board = Leaderboard(LONG, 10, 10, None, (Entry("m", 0.1, whole),))
    assert shown(board.to_table())[0].split()[:2] == ["method", "AUC-sum"]
    assert "No request column is named" in str(board.to_table())
