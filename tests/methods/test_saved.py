import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

import harmonrank as hr
from harmonrank.errors import ModelFileError, OutputError

FILES = ["checksums.json", "model.json", "weights.safetensors"]


@pytest.fixture
def model(table, schema):
    return hr.ClosedForm().fit(table, schema, valid=table)


@pytest.fixture
def saved(model, tmp_path):
    model.save(tmp_path / "m")
    return tmp_path / "m"


def rewrite(saved, **changes):
    """Change parts of model.json and make its checksum right again."""
    document = json.loads((saved / "model.json").read_text())
    for key, value in changes.items():
        if value is None:
            del document[key]
        else:
            document[key] = value
    text = json.dumps(document).encode()
    (saved / "model.json").write_bytes(text)
    sums = json.loads((saved / "checksums.json").read_text())
    sums["model.json"] = hashlib.sha256(text).hexdigest()
    (saved / "checksums.json").write_text(json.dumps(sums))


@pytest.mark.parametrize(
    "kind",
    [
        hr.ClosedForm(),
        hr.ClosedForm(calibration="isotonic"),
        hr.HarmonRankPaper(epochs=1, batch_rows=300, buckets=8),
    ],
    ids=["logistic", "isotonic", "network"],
)
def test_a_loaded_model_is_the_saved_one_bit_for_bit(kind, table, schema, tmp_path):
    schema = replace(schema, weights={"buy": 2})
    model = kind.fit(table, schema)
    model.save(tmp_path / "m")
    again = hr.load(str(tmp_path / "m"))
    np.testing.assert_array_equal(again.score(table), model.score(table))
    assert again.schema == schema
    assert again.config == model.config
    assert again.effective_weights == model.effective_weights
    assert type(again) is type(model)


def test_a_saved_model_is_json_and_safetensors_and_nothing_else(saved):
    assert sorted(path.name for path in saved.iterdir()) == FILES
    document = json.loads((saved / "model.json").read_text())
    assert document["format"] == 1
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


def test_a_newer_format_says_to_update(saved):
    rewrite(saved, format=2, harmonrank="9.9.9")
    with pytest.raises(
        ModelFileError,
        match=r"m' has model format 2, written by harmonrank 9.9.9; harmonrank .* reads formats up "
        "to 1, so update it",
    ):
        hr.load(saved)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"method": "future"}, "There is no method 'future'"),
        ({"config": {"calibration": "platt"}}, "'calibration' of closed-form must be"),
        ({"config": {"depth": 3}}, "closed-form has no option 'depth'"),
        ({"schema": {"objectives": {}}}, "at least one label"),
        ({"prevalence": None}, "no 'prevalence'"),
        ({"schema": 5}, "cannot be loaded"),
    ],
)
def test_parts_that_do_not_fit_are_named(saved, changes, reason):
    rewrite(saved, **changes)
    with pytest.raises(ModelFileError, match=reason) as caught:
        hr.load(saved)
    assert "so use that version or fit it again." in str(caught.value)


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


def test_a_folder_that_is_no_model_is_not_replaced(model, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(OutputError, match="without model.json, so it is not overwritten"):
        model.save(tmp_path / "mine", overwrite=True)


def test_a_path_that_cannot_be_written_is_refused(model, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="'.*file' is not a folder"):
        model.save(tmp_path / "file" / "m")
