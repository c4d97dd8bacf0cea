"""Explanations of a model and of a row, and their page in a real browser."""

import polars as pl
import pytest

import harmonrank as hr
from harmonrank import explain
from harmonrank.support import UsageError
from logs import rare_table


@pytest.fixture(scope="module")
def model(models):
    return models["harmonrank"]


@pytest.fixture(scope="module")
def rows(world_folder):
    return pl.read_parquet(world_folder / "test.parquet")


@pytest.fixture(scope="module")
def explained(model, rows):
    return explain(model, rows, row=7)


def test_the_tables_show_every_objective_and_every_context_value(model, rows, explained):
    names = list(model.schema.names)
    learned, responses, by_context = explain(model, rows).tables
    assert [line[0] for line in learned.rows] == [line[0] for line in responses.rows] == names
    heads = [column.title for column in (*learned.columns, *responses.columns)]
    assert heads[1] == "influence"
    assert not {"effective weight", "moves"} & set(heads)
    values = sum(len(values) for values in explained.rows.by_context.values())
    assert len(by_context.rows) == values > 20
    *parts, total = explained.tables[-1].rows
    assert [line[0] for line in parts] == names
    assert total[0] == "fused"
    assert total[3] == pytest.approx(sum(line[3] for line in parts))


def test_a_row_among_equals_has_the_first_place_that_is_left(model, rows):
    same = pl.concat([rows.head(1)] * 4)
    assert [explain(model, same, row=row).row.place for row in range(4)] == [1, 2, 3, 4]


def test_rows_without_requests_are_ranked_with_all_others(model, rows):
    alone = rows.head(50).drop("request_id")
    assert explain(model, alone, row=3).row.candidates == 50
    with pytest.raises(UsageError, match="Rows are counted from 0 to 49. Got 50"):
        explain(model, alone, row=50)


def test_an_objective_that_rules_is_said_first_with_weights_of_equal_influence(tmp_path):
    table = rare_table(4000)
    names = ("buy", "like", "view")
    schema = hr.Schema({name: f"p_{name}" for name in names}, request="request_id")
    explained = explain(hr.ClosedForm().fit(table, schema), table)
    shares = explained.rows.influence.shares
    assert [line[1] for line in explained.tables[0].rows] == list(shares.values())
    assert shares["buy"] > 0.5
    assert explained.caution.startswith(f"All weights are equal, yet 'buy' has {shares['buy']:.0%}")
    assert "AUC within requests would go: buy" in explained.caution
    assert explained.to_dict()["influence"]["shares"] == shares
    unlabelled = explain(explained.model, table.drop(names))
    assert unlabelled.rows.influence.shares == pytest.approx(shares)
    assert unlabelled.caution.endswith("what that costs, rows with labels tell.")
    explained.report(tmp_path / "e.html")
    page = (tmp_path / "e.html").read_text(encoding="utf-8")
    assert "yet &#39;buy&#39; has" in page
    assert "influence on the order" in page
    assert (
        explain(explained.model.reweighted(explained.rows.influence.proposal), table).caution == ""
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_draws_without_an_error_and_fits(seen, explained, tmp_path, width):
    path, rows = tmp_path / "explained.html", explained.rows
    explained.report(path, "Why")
    assert seen(path, width) == 2 + 1 + len(rows.by_context) + len(rows.names)
