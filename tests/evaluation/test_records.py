"""Records with valid checksums and wrong content: their work is done again."""

import json

import pytest

from fuzzing_records import FITTED, cells, kept, stepped, table
from harmonrank.fusion import Quality
from harmonrank.support.errors import DataError
from harmonrank.support.storage.store import Store
from harmonrank_lab.paper_tables.report._folder import RESULTS, add_results


def changed(content, place, value):
    """Return JSON parts with another value at a place, or without it."""
    content = json.loads(json.dumps(content))
    *inner, last = place.split(".")
    part = content
    for name in inner:
        part = part[name]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return content


def test_a_kept_method_is_found_again(tmp_path):
    assert kept(tmp_path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("resampled", [1.0]),
        ("resampled", "x"),
        ("quality.auc", {}),
        ("quality.auc_sum", "x"),
        ("quality.exact_auc", [1]),
        ("quality.rows", "x"),
        ("quality.weights", 3),
        ("quality.ceiling", "x"),
        ("quality.ci", [0.5]),
        ("fit_seconds", "x"),
        ("as_fitted", {"rows": 1}),
        ("quality", None),
    ],
)
def test_a_kept_method_with_wrong_content_is_fitted_again(tmp_path, place, value):
    assert not kept(tmp_path, lambda content: changed(content, place, value))


def test_an_interval_without_ends_survives_json():
    numbers = {"buy": 0.5}
    parts = {
        "rows": 3, "weights": numbers, "auc": numbers, "auc_ci": {"buy": [None, None]},
        "auc_sum": 0.5, "ci": [None, None], "request_auc": {"buy": None}, "prevalence": numbers,
        "effective_weights": numbers, "exact_auc": None, "exact_auc_sum": None, "ceiling": None,
    }  # fmt: skip
    quality = Quality.from_dict(parts)
    assert str(quality.auc_sum) == "– – –"
    with pytest.raises(DataError, match="^A quality: expected numbers of the same objectives"):
        Quality.from_dict({**parts, "auc": {"like": 0.5}})


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("seconds", None),
        ("seconds", "x"),
        ("facts", None),
        ("facts", {"rows": "x"}),
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
        found = Store(tmp_path).find("cell", "key", cell.decoded)
        assert found == json.loads(json.dumps(result))


@pytest.mark.parametrize(
    ("number", "place", "value"),
    [
        (0, "auc", [0.5]),
        (0, "auc", "x"),
        (0, "positives", None),
        (0, "attention", [[1.0]]),
        (0, "attention", None),
        (0, "history", [[1.0]]),
        (0, "resampled", [1.0]),
        (0, "points", FITTED["attention"]),
        (0, "error", 3),
        (1, "labels", []),
        (1, "latent", [[1.0]]),
        (2, "rates", {}),
        (2, "rates.harmonrank", [1.0]),
        (2, "sizes", {"parameters": 3}),
        (3, "objectives", ["buy"]),
        (3, "exact", []),
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
