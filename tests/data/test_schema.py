import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harmonrank import Schema
from harmonrank.support import DataError, UsageError

TWO = {"buy": "p_buy", "like": "p_like"}


def test_names_and_columns_keep_their_order():
    schema = Schema({"like": "p_like", "buy": "p_buy"})
    assert schema.names == ("like", "buy")
    assert schema.score_columns == ("p_like", "p_buy")


def test_weights_are_one_where_not_given_and_can_be_changed():
    schema = Schema(TWO, weights={"like": 3})
    np.testing.assert_array_equal(schema.weight_vector, [1, 3])
    np.testing.assert_array_equal(schema.weights_with({"buy": 2}), [2, 3])


def test_one_context_column_may_be_given_as_text():
    assert Schema(TWO, context="hour").context == ("hour",)


def test_subset_leaves_other_objectives_out_everywhere():
    schema = Schema(TWO, ["hour"], "r", {"buy": 2, "like": 3}, "w", {"buy": "t1", "like": "t2"})
    part = schema.subset(["like"])
    assert part == Schema({"like": "p_like"}, ["hour"], "r", {"like": 3}, "w", {"like": "t2"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objectives": {}}, "at least one label"),
        ({"objectives": ["buy"]}, r"`objectives` must map objectives, as in .*p_buy"),
        ({"objectives": {"buy": 3}}, "`objectives` must name columns by text. Got 3"),
        ({"objectives": {"buy": "p", "like": "p"}}, "score column 'p' is named twice"),
        ({"objectives": {"buy": "like", "like": "p"}}, "'like' cannot be both a label and a score"),
        ({"context": ["hour", "hour"]}, "context column 'hour' is named twice"),
        ({"context": ["hour", "buy"]}, "'buy' cannot be both a label and a context column"),
        ({"context": ["t"], "truth": {"buy": "t"}}, "'t' cannot be both a truth column and a con"),
        ({"context": 5}, "`context` must be a list of column names. Got 5"),
        ({"request": 5}, "`request` must name columns by text. Got 5"),
        ({"weights": {"bay": 2}}, "unknown objective 'bay'. Did you mean 'buy'?"),
        ({"weights": {"buy": float("nan")}}, "weight of 'buy' must be a finite number. Got nan"),
        ({"weights": {"buy": "2"}}, "weight of 'buy' must be a finite number"),
        ({"unwanted": ["bye"]}, "`unwanted` names an unknown objective 'bye'. Did you mean 'buy'"),
        ({"unwanted": ["buy"], "value": {"buy": 2}}, "'buy' is unwanted, so an event of it must"),
        ({"weights": {"buy": 0, "like": 0}}, "needs a weight other than 0"),
        ({"truth": {"bay": "t"}}, "`truth` names an unknown objective 'bay'"),
    ],
)
def test_a_schema_that_cannot_be_meant_is_refused(change, message):
    with pytest.raises(UsageError, match=message):
        Schema(**{"objectives": TWO, **change})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bay": 1}, "unknown objective 'bay'. Did you mean 'buy'?"),
        ({"buy": float("inf")}, "must be a finite number"),
        ({"buy": 0, "like": 0}, "other than 0"),
    ],
)
def test_changed_weights_are_checked_like_first_ones(changes, message):
    with pytest.raises(UsageError, match=message):
        Schema(TWO).weights_with(changes)


word = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(
    st.dictionaries(word, st.floats(0.5, 1e9), min_size=1, max_size=4),
    st.lists(st.text(string.printable, min_size=1), unique=True, max_size=3),
)
def test_toml_text_gives_the_same_schema_whatever_the_names(tmp_path_factory, weights, context):
    schema = Schema(
        {name: f"score {name}" for name in weights},
        [f"context {name}" for name in context],
        request="r",
        weights=weights,
        truth={name: f"truth {name}" for name in weights},
    )
    path = tmp_path_factory.mktemp("schema") / "schema.toml"
    path.write_text(schema.to_toml(), encoding="utf-8", newline="")
    assert Schema.read(path) == schema
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("objectives = {buy = 'p'}\ncontxt = ['h']", "no part 'contxt'. Did you mean 'context'?"),
        ("context = ['hour']", r"needs \[objectives\] with lines such as buy"),
        ("objectives = 'buy'", r"needs \[objectives\]"),
        ("objectives = {buy = 'p'}\nweights = {buy = 'x'}", "must be a finite number. Got 'x'"),
        ("objectives = {buy = 'p', like = 'p'}", "score column 'p' is named twice"),
        ("[objectives\nbuy", "cannot be read as a TOML schema"),
        ("\x00", "cannot be read as a TOML schema"),
        (f"x = {'9' * 5000}", "cannot be read as a TOML schema"),
    ],
)
def test_a_wrong_schema_file_is_named_in_the_error(tmp_path, text, message):
    path = tmp_path / "schema.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message) as caught:
        Schema.read(path)
    assert "schema.toml" in str(caught.value)


def test_a_missing_schema_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(DataError, match="There is no schema file '.*nothing.toml'"):
        Schema.read(tmp_path / "nothing.toml")


def test_a_folder_is_no_schema_file(tmp_path):
    with pytest.raises(DataError, match="cannot be read as a TOML schema"):
        Schema.read(tmp_path)
