"""Explanations of a model and of a row, and their page in a real browser."""

from dataclasses import replace

import numpy as np
import pytest

from harmonrank.reports import explanation_table, run_of
from harmonrank.reports.explanation import (
    context_pull_table,
    explain_model,
    explain_row,
    explanation_page,
    pull_table,
    row_table,
)
from harmonrank.support.errors import UsageError


@pytest.fixture(scope="module")
def model(models):
    return models["harmonrank"]


@pytest.fixture(scope="module")
def found(model, logs):
    return explain_model(model, logs[1])


@pytest.fixture(scope="module")
def row(model, logs):
    return explain_row(model, logs[1], 7)


def test_the_tables_show_every_objective_and_every_context_value(found, row):
    assert [line[0] for line in pull_table(found).rows] == list(found.names)
    values = sum(len(values) for values in found.by_context.values())
    assert len(context_pull_table(found).rows) == values > 20
    *parts, total = row_table(row).rows
    assert [line[0] for line in parts] == list(found.names)
    assert total[0] == "fused"
    assert total[3] == pytest.approx(sum(line[3] for line in parts))


def test_a_row_among_equals_has_the_first_place_that_is_left(model, logs):
    log = logs[1]
    same = log.take(np.zeros(4, np.int64))
    places = [explain_row(model, same, row).place for row in range(4)]
    assert places == [1, 2, 3, 4]


def test_rows_without_requests_are_ranked_with_all_others(model, logs):
    alone = replace(logs[1].take(np.arange(50)), request=None)
    assert explain_row(model, alone, 3).candidates == 50
    with pytest.raises(UsageError, match="Rows are counted from 0 to 49. Got 50"):
        explain_row(model, alone, 50)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_draws_without_an_error_and_fits(seen, model, found, row, tmp_path, width):
    table, path = explanation_table(model.name, model.explain()), tmp_path / "explained.html"
    page = explanation_page("Why", table, found, run_of("x"), row, ["a note"])
    path.write_text(page, encoding="utf-8")
    assert seen(path, width) == 2 + 1 + len(found.by_context) + len(found.names)
