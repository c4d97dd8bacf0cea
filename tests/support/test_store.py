"""The one store of finished work: what is kept is exact, and what is damaged is absent."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonrank.support.storage import Store, digest, file_sums

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=8,
)  # fmt: skip


def same(content):
    return content


@settings(max_examples=40, deadline=None)
@given(content=JSON)
def test_what_is_put_is_found_exactly(tmp_path_factory, content):
    store = Store(tmp_path_factory.mktemp("store"))
    store.put("a", "key", [content, math.nan])
    assert store.find("a", "key", same) == [content, None]


def test_another_key_or_name_is_absent(tmp_path):
    store = Store(tmp_path / "not yet there")
    assert store.find("a", "key", same) is None
    store.put("a", "key", 1)
    assert store.find("a", "other", same) is None
    assert store.find("b", "key", same) is None


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"key": "key"}', "\x00", "3"])
def test_a_record_that_cannot_be_read_or_was_changed_is_absent(tmp_path, damage):
    store = Store(tmp_path)
    store.put("a", "key", {"auc": 0.75})
    whole = store.path("a").read_text()
    store.path("a").write_text(damage)
    assert store.find("a", "key", same) is None
    store.path("a").write_text(whole.replace("0.75", "0.76"))
    assert store.find("a", "key", same) is None


@pytest.mark.parametrize("error", [KeyError, TypeError, ValueError, IndexError, AttributeError])
def test_what_cannot_be_decoded_is_absent_and_can_be_put_again(tmp_path, error):
    def decode(_):
        raise error("no")

    store = Store(tmp_path)
    store.put("a", "key", 1)
    assert store.find("a", "key", decode) is None
    store.put("a", "key", 2)
    assert store.find("a", "key", same) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_every_file_of_an_output_has_a_checksum(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_text("x")
    (tmp_path / "d").write_text("x")
    sums = file_sums(tmp_path, ["a", "d"])
    assert list(sums) == ["a/b/c", "d"]
    assert len(set(sums.values())) == 1
    assert digest(sums) != digest({})


def test_what_a_killed_writer_left_is_removed_when_its_record_is_found(tmp_path):
    Store(tmp_path).put("record", "key", 3)
    for left in (".record.json.0123abcd.partial", ".record.0123abcd.partial"):
        (tmp_path / left).mkdir()
    assert Store(tmp_path).find("record", "key", int) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]
