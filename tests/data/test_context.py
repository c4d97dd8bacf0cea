import json

import numpy as np
import polars as pl
import pytest

from harmonrank.data import UNKNOWN, ContextEncoder
from harmonrank.support import DataError


def codes(trained, given):
    encoder = ContextEncoder.fit(pl.DataFrame({"c": trained}))
    return encoder.encode(pl.DataFrame({"c": given})).ravel().tolist()


@pytest.mark.parametrize(
    ("trained", "given", "expected"),
    [
        (["old", "young"], ["young", "old", "ageless", None], [2, 1, 0, 0]),
        ([7, 3, 3], [3, 7, 5, None], [1, 2, 0, 0]),
        ([True, False], [False, True, None], [1, 2, 0]),
        ([-5, 5], [-5, 5, 0], [1, 2, 0]),
        ([0.0, 1.0], [float("nan"), None], [0, 0]),
    ],
)
def test_a_value_never_seen_in_training_has_the_unknown_slot(trained, given, expected):
    assert codes(trained, given) == expected


def test_a_hash_beyond_int64_keeps_its_own_slot():
    hashes = pl.Series([2**63 + 1, 2**64 - 1, 4], dtype=pl.UInt64)
    assert sorted(codes(hashes, hashes)) == [1, 2, 3]
    assert codes(hashes, pl.Series([5, 2**63], dtype=pl.UInt64)) == [UNKNOWN, UNKNOWN]


def test_whole_numbers_that_became_fractions_keep_their_slots():
    # pandas does this to a column of whole numbers as soon as one value is missing.
    assert codes([3, 7], [7.0, 3.0, float("nan"), 3.5, float("inf")]) == [2, 1, 0, 0, 0]


def test_categories_and_plain_text_are_the_same():
    text = pl.Series(["b", "a", "b"])
    assert codes(text, text.cast(pl.Categorical)) == codes(text.cast(pl.Categorical), text)


def test_a_column_of_nulls_is_unknown_whatever_its_type():
    assert codes(["a"], pl.Series([None], dtype=pl.Int64)) == [UNKNOWN]
    assert codes([1], pl.Series([None], dtype=pl.String)) == [UNKNOWN]
    assert codes(pl.Series([None, None], dtype=pl.Null), [1, 2]) == [UNKNOWN, UNKNOWN]


def test_numbers_are_cut_into_parts_of_equal_size():
    values = np.random.default_rng(0).normal(size=32_000)
    counts = np.bincount(codes(values, values))
    assert counts[UNKNOWN] == 0
    assert len(counts) == 33
    assert counts[1:].min() >= 999


def test_infinite_numbers_join_the_outer_parts_and_can_be_saved():
    values = [-np.inf, 0.0, 1.0, 2.0, np.inf]
    encoder = ContextEncoder.fit(pl.DataFrame({"c": values}))
    given = encoder.encode(pl.DataFrame({"c": [-np.inf, -9.0, 9.0, np.inf]})).ravel()
    assert given[0] == given[1] == 1
    assert given[2] == given[3] == encoder.slots[0] - 1
    json.dumps(encoder.to_dict(), allow_nan=False)


def test_of_many_values_the_thousand_most_frequent_are_kept():
    rare, frequent = list(range(5000)), list(range(4000, 5000))
    encoder = ContextEncoder.fit(pl.DataFrame({"c": rare + frequent}))
    assert encoder.slots == (1001,)
    assert encoder.encode(pl.DataFrame({"c": [4000, 3999]})).ravel().tolist() == [1, UNKNOWN]


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"name": "d", "kind": "text", "values": []}, "`context` must be of .'c'., got .'d'."),
        ({"name": "c", "kind": "text", "values": ["a", "a"]}, "'c' must be distinct"),
        ({"name": "c", "kind": "integer", "values": [2, 1]}, "'c' must be distinct and rise"),
        (
            {"name": "c", "kind": "integer", "values": [2**63]},
            "expected int <= .* at features",
        ),
        ({"name": "c", "kind": "number", "values": ["1"]}, "expected float, got str"),
        ({"name": "c", "kind": "date", "values": []}, "invalid value 'date'"),
    ],
)
def test_stored_values_that_make_no_sense_are_refused(part, reason):
    with pytest.raises(DataError, match=reason):
        ContextEncoder.from_dict({"features": [part]}).require_columns(["c"])


def test_codes_have_names_for_people():
    frame = pl.DataFrame({"age": ["old", "young"], "price": [1.0, 2.0]})
    encoder = ContextEncoder.fit(frame)
    assert [encoder.label(0, code) for code in range(3)] == ["unknown", "old", "young"]
    assert encoder.label(1, 1).startswith("[-inf, ")
    assert encoder.label(1, encoder.slots[1] - 1).endswith(", inf)")


def test_a_type_that_is_neither_text_nor_number_is_refused():
    with pytest.raises(DataError, match=r"'c' must hold text or numbers. Got type List"):
        ContextEncoder.fit(pl.DataFrame({"c": [[1], [2]]}))


@pytest.mark.parametrize("values", [[3], [-7, 0, 12], [5, 6, 7, 900_000], [-(2**62), 0, 2**62]])
def test_whole_numbers_find_their_code_whether_close_or_far_apart(values):
    encoder = ContextEncoder.fit(pl.DataFrame({"hour": values}))
    asked = [*values, None, *(v + d for v in values for d in (-1, 1)), 2**63 - 1, -(2**63)]
    frame = pl.DataFrame({"hour": asked}, schema={"hour": pl.Int64})
    expected = [values.index(v) + 1 if v in values else 0 for v in asked]
    assert encoder.encode(frame).ravel().tolist() == expected


def test_an_encoder_grows_by_the_values_of_newer_rows_and_forgets_none():
    frame = pl.DataFrame({"c": [30, 10, 10], "t": ["b", "b", "d"], "x": [0.1, 0.5, 0.9]})
    newer = pl.DataFrame({"c": [20, 20, 40], "t": ["c", "a", "c"], "x": [7.0, 8.0, 9.0]})
    older = ContextEncoder.fit(frame)
    grown = older.grown(newer)
    assert [f.values for f in grown.features[:2]] == [(10, 20, 30, 40), ("a", "b", "c", "d")]
    assert grown.features[2] == older.features[2]
    for column, new_codes in enumerate(grown.recoding(older)):
        before, now = older.encode(frame)[:, column], grown.encode(frame)[:, column]
        assert np.array_equal(new_codes[before], now)
        assert new_codes[UNKNOWN] == UNKNOWN
    assert grown.grown(frame) == grown
    assert ContextEncoder.from_dict(grown.to_dict()) == grown


def test_of_new_values_the_most_frequent_find_room():
    older = ContextEncoder.fit(pl.DataFrame({"c": ["m"]}))
    grown = older.grown(pl.DataFrame({"c": ["a", "z", "z", "m", None]}), most_values=2)
    assert grown.features[0].values == ("m", "z")
    assert grown.grown(pl.DataFrame({"c": ["a", "a"]}), most_values=2) == grown


def test_a_column_without_a_value_takes_the_type_of_the_first_one_that_comes():
    older = ContextEncoder.fit(pl.DataFrame({"c": pl.Series([None, None], dtype=pl.Null)}))
    assert older.grown(pl.DataFrame({"c": pl.Series([None], dtype=pl.Int64)})) == older
    grown = older.grown(pl.DataFrame({"c": [5, 6]}))
    assert grown.features[0].kind == "integer"
    assert grown.recoding(older)[0].tolist() == [UNKNOWN]
    with pytest.raises(DataError, match="'c' was integer in training"):
        grown.grown(pl.DataFrame({"c": ["five"]}))
