"""A wrong type at a public door gives our error, in one sentence, before any work is done."""

import numpy as np
import polars as pl
import pytest
import torch

import harmonrank as hr
from harmonrank.support import DataError, UsageError
from harmonrank.support.options import checked_whole


def _table():
    rng = np.random.default_rng(0)
    p = rng.random((200, 2))
    labels = (rng.random(p.shape) < p).astype(np.int64)
    columns = {"p_buy": p[:, 0], "p_like": p[:, 1], "buy": labels[:, 0], "like": labels[:, 1]}
    return pl.DataFrame({**columns, "request": np.arange(200) // 5})


TABLE = _table()
SCHEMA = hr.Schema({"buy": "p_buy", "like": "p_like"}, request="request")
MODEL = hr.ClosedForm().fit(TABLE, SCHEMA)
PATH, LISTENER = "must be a path, as text or as a Path", "`on_event` must be a function of one"
DEVICE, OPTIONS = "`device` must be text, such as 'cpu'", "`options` must map a method to its opt"
PARTS, METHODS = "A schema must be a Schema or a dict", "`methods` must be 'all' or a list of names"
SAVED, UNFITTED = (
    "A saved model is named by the path of its folder",
    "is not fitted; call fit or load",
)


def fit(schema=SCHEMA, kind=hr.ClosedForm, **rest):
    return lambda: kind().fit(TABLE, schema, **rest)


def paper(**rest):
    return fit(kind=hr.HarmonRankPaper, **rest)


def compare(methods="closed-form", **rest):
    return lambda: hr.compare(TABLE, SCHEMA, methods, **rest, test=TABLE).board


def size(**rest):
    return lambda: hr.NetworkConfig(**{"objectives": 2, **rest})


WRONG = {
    "checkpoint": (fit(checkpoint=3), f"`checkpoint` {PATH}. Got 3"),
    "listener": (fit(on_event=3), LISTENER),
    "device": (fit(device=3), DEVICE),
    "no such device": (paper(device="nope"), "Device nope cannot be used: .*; use cpu"),
    "passes": (
        lambda: hr.HarmonRankPaper().updated(TABLE, passes="a"),
        "`passes` must be a whole number from 1 up. Got 'a'",
    ),
    "seed": (fit(seed="x"), "`seed` must be a whole number from 0 up. Got 'x'"),
    "seeds": (fit(seed=np.arange(3)), "`seed` must be a whole number from 0 up"),
    "schema": (fit(5), PARTS),
    "part of a schema": (fit({3: 3}), "A schema has no part '3'. Known: objectives"),
    "schema from a number": (lambda: hr.Schema.from_dict(3), PARTS),
    "subset": (lambda: SCHEMA.subset(3), "`names` must be a list of column names. Got 3"),
    "table": (lambda: MODEL.score(5), "A table must be a path or a polars, pandas"),
    "weights": (lambda: MODEL.score(TABLE, weights=[2, 1]), "`weights` must map objectives"),
    "k": (lambda: MODEL.rank(TABLE, k="3"), "`k` must be a whole number from 1 up. Got '3'"),
    "scores": (lambda: MODEL.score_request("abc"), "`scores` must be numbers"),
    "context": (lambda: MODEL.score_request([[0.1, 0.2]], 5), "`context` must map each"),
    "load": (lambda: hr.load(5), SAVED),
    "save": (lambda: MODEL.save(None), SAVED),
    "runs": (compare(runs=3), f"`runs` {PATH}. Got 3"),
    "options": (compare(options=3), OPTIONS),
    "options of a method": (compare(options={"closed-form": 3}), OPTIONS),
    "method by number": (compare(options={3: {}}), "There is no method '3'. Known: harmonrank"),
    "recalibrate": (compare(recalibrate="a"), "`recalibrate` must be True or False. Got 'a'"),
    "methods": (compare(5), METHODS),
    "name": (compare([5]), METHODS),
    "world": (lambda: hr.world(3), "There is no world 3. Known: elive"),
    "redraw": (
        lambda: hr.world("elive", redraw="a"),
        "`redraw` must be a whole number from 0 up. Got 'a'",
    ),
    "rows of a world": (
        lambda: hr.world("elive").sample("a", seed=0),
        "`rows` must be a whole number from 0 up. Got 'a'",
    ),
    "sample weight": (
        lambda: hr.auc([0.1, 0.2], [0, 1], sample_weight="a"),
        "`sample_weight` must be numbers, with an entry per row. Got 'a'",
    ),
    "ragged scores": (lambda: hr.auc([[1], [1, 2]], [0, 1]), "`scores` must be an array"),
    "option of a method": (
        lambda: hr.HarmonRankPaper(width="x"),
        "Option 'width' of harmonrank-paper must be a whole number",
    ),
    "network": (lambda: hr.Network(3), "`config` must be a NetworkConfig.* Got 3"),
    "scores of a network": (
        lambda: hr.Network(hr.NetworkConfig(objectives=2, scale="logit"), scores="a"),
        r"`scores` must be \(rows, 2\). Got \(\)",
    ),
    "objectives": (size(objectives="a"), "Option 'objectives' of NetworkConfig must be a whole"),
    "width": (size(width="a"), "Option 'width' of NetworkConfig must be a whole number"),
    "slots": (size(context_slots=3), "Option 'context_slots' of NetworkConfig must be a list"),
    "encoder before a fit": (lambda: hr.HarmonRank().fitted.encoder, UNFITTED),
    "network before a fit": (lambda: hr.HarmonRankPaper().network, UNFITTED),
    "facts before a fit": (lambda: hr.HarmonRankPaper().explain(), UNFITTED),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_type_gives_our_error(case):
    call, message = WRONG[case]
    with pytest.raises((UsageError, DataError), match=message) as told:
        call()
    assert "\n" not in str(told.value)


def test_a_wrong_option_is_told_before_any_method_is_fitted():
    heard = []
    options = {"prevalence-weights": {"widht": 3}}
    with pytest.raises(UsageError, match="prevalence-weights has no option 'widht'"):
        compare(["closed-form", "prevalence-weights"], options=options, on_event=heard.append)()
    assert heard == []


def test_methods_may_come_from_a_generator():
    names = ["closed-form", "prevalence-weights"]
    board = compare(name for name in names)()
    assert sorted(entry.name for entry in board.entries) == names


def test_one_name_does_for_a_list_of_names():
    assert SCHEMA.subset("buy").names == ("buy",)


@pytest.mark.parametrize("three", [3, np.int32(3), np.array(3), torch.tensor(3)])
def test_a_whole_number_may_be_of_any_integer_type(three):
    assert checked_whole("k", three) == 3


@pytest.mark.parametrize("other", [True, 3.0, "3", None, -1, int, np.arange(3), 1j])
def test_what_is_no_whole_number_from_0_up_is_refused(other):
    with pytest.raises(UsageError, match="`k` must be a whole number from 0 up. Got "):
        checked_whole("k", other)
