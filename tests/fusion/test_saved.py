import json
import os
from dataclasses import replace

import numpy as np
import pytest

import harmonrank as hr
from harmonrank.support import DataError, ModelFileError, OutputError, UsageError
from saving import rewrite, rewrite_arrays

PI = "fitted/prevalence"
FILES = ["checksums.json", "model.json", "weights.safetensors"]


@pytest.fixture
def model(table, schema):
    return hr.ClosedForm().fit(table, schema, valid=table)


@pytest.fixture
def saved(model, tmp_path):
    model.save(tmp_path / "m")
    return tmp_path / "m"


def test_a_loaded_model_is_the_saved_one_bit_for_bit(table, schema, tmp_path):
    schema = replace(schema, weights={"buy": 2})
    model = hr.ClosedForm(calibration="isotonic").fit(table, schema)
    model.save(tmp_path / "m")
    again = hr.load(str(tmp_path / "m"))
    np.testing.assert_array_equal(again.score(table), model.score(table))
    assert again.schema == schema
    assert type(again) is type(model)


def test_a_saved_model_is_json_and_safetensors_and_nothing_else(saved):
    assert sorted(path.name for path in saved.iterdir()) == FILES
    document = json.loads((saved / "model.json").read_text())
    assert document["format"] == 4
    assert document["method"] == "closed-form"
    assert document["harmonrank"] == hr.__version__


def test_saving_twice_writes_the_same_bytes(model, saved, tmp_path):
    model.save(tmp_path / "again")
    for name in FILES:
        assert (saved / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_is_found_wherever_it_is(saved, name):
    whole = (saved / name).read_bytes()
    for place in {*range(0, len(whole), 7), len(whole) - 1}:
        damaged = bytearray(whole)
        damaged[place] ^= 1
        (saved / name).write_bytes(damaged)
        with pytest.raises(ModelFileError, match="damaged"):
            hr.load(saved)
    (saved / name).write_bytes(whole)
    hr.load(saved)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_or_gone_is_found(saved, name):
    (saved / name).write_bytes((saved / name).read_bytes()[:-9])
    with pytest.raises(ModelFileError, match="damaged"):
        hr.load(saved)
    (saved / name).unlink()
    with pytest.raises(ModelFileError, match=f"m' is not a saved model: it has no {name}"):
        hr.load(saved)


@pytest.mark.parametrize(("number", "remedy"), [(5, "update it"), (3, "fit it again")])
def test_another_format_says_what_to_do(saved, number, remedy):
    rewrite(saved, format=number, harmonrank="9.9.9")
    with pytest.raises(
        ModelFileError,
        match=rf"m' has model format {number}, written by harmonrank 9.9.9; harmonrank .* reads "
        f"format 4, so {remedy}",
    ):
        hr.load(saved)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"method": "future"}, "There is no method 'future'"),
        ({"config": {"calibration": "platt"}}, "'calibration' of closed-form must be"),
        ({"config": {"depth": 3}}, "closed-form has no option 'depth'"),
        ({"schema": {"objectives": {}}}, "at least one label"),
        ({"fitted": None}, "missing required field fitted"),
        ({"schema": 5}, "expected object, got int at schema"),
        ({"more": 5}, "unknown field more"),
        ({"state": {"logistic": None, "isotonic": [], "more": 5}}, "'more' is not expected"),
    ],
)
def test_parts_that_do_not_fit_are_named(saved, changes, reason):
    rewrite(saved, **changes)
    with pytest.raises(ModelFileError, match=reason) as caught:
        hr.load(saved)
    assert "so use that version or fit it again." in str(caught.value)


def test_checksums_of_no_file_are_refused(saved):
    (saved / "checksums.json").write_text("{}")
    with pytest.raises(ModelFileError, match="does not match its checksum"):
        hr.load(saved)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda a: a | {PI: a[PI][:1]}, r"must be float64 of shape \(2\), got .*\(1\)"),
        (lambda a: a | {PI: a[PI].astype(np.float32)}, "must be float64 .* got float32"),
        (lambda a: a | {PI: a[PI] * np.nan}, "must lie in .* got nan to nan"),
        (lambda a: a | {PI: a[PI] * 0 + 1}, "must lie in .* got 1 to 1"),
        (lambda a: {k: v for k, v in a.items() if k != PI}, f"array '{PI}' is missing"),
        (lambda a: a | {"more": a[PI]}, "array 'more' is not expected"),
    ],
    ids=["shape", "dtype", "nan", "range", "missing", "more"],
)
def test_arrays_that_are_not_as_declared_are_named(saved, change, reason):
    rewrite_arrays(saved, change)
    with pytest.raises(ModelFileError, match=reason):
        hr.load(saved)


def test_saved_files_have_the_permissions_that_the_umask_leaves(model, tmp_path):
    before = os.umask(0o027)
    try:
        model.save(tmp_path / "m")
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "m").iterdir()} == {0o640}


def test_what_is_not_a_saved_model_is_told_apart(tmp_path):
    with pytest.raises(ModelFileError, match="There is no saved model '.*nothing'"):
        hr.load(tmp_path / "nothing")
    with pytest.raises(ModelFileError, match="is not a saved model: it has no model.json"):
        hr.load(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ModelFileError, match="is not a saved model"):
        hr.load(tmp_path / "file")


def test_an_existing_model_is_replaced_only_when_asked(model, saved, table):
    with pytest.raises(OutputError, match="m' exists already; .* overwrite=True"):
        model.save(saved)
    model.save(saved, overwrite=True)
    np.testing.assert_array_equal(hr.load(saved).score(table), model.score(table))


def test_scores_that_are_not_finite_are_refused(model, table, monkeypatch):
    monkeypatch.setattr(type(model.state), "probabilities", lambda *_: np.array([[1.0, np.inf]]))
    with pytest.raises(DataError, match="Some fused scores are not finite: the weights are too la"):
        model.score(table)
    with pytest.raises(
        UsageError, match="The weight of 'buy' must be at most 1e\\+100 in size, so"
    ):
        model.score(table, weights={"buy": 1e308})
