"""Records with valid checksums and wrong content: their work is done again."""

import pytest

from fuzzing import changed, kept
from harmonrank.fusion import Quality
from harmonrank.support import DataError


def test_a_kept_method_is_found_again(tmp_path):
    assert kept(tmp_path)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("drawn", [1.0]),
        ("drawn", {"events": [[1.0, 2.0]]}),
        ("drawn.events", "x"),
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
