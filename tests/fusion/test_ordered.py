import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data.rows.log_blocks import FileBlocks

SCHEMA = hr.Schema({"click": "p_click", "buy": "p_buy"}, context=["what"], request="request")
ROWS, VALUES = 12_000, 2_000


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def drawn(effect, values=VALUES, seed=0):
    """Return rows with whole numbers in a column, each of which adds its effect to both logits."""
    rng = np.random.default_rng(seed)
    what = rng.integers(0, values, ROWS)
    z = rng.normal(size=(ROWS, 2)) - 1.0
    labels = rng.random((ROWS, 2)) < sigmoid(z + effect(what)[:, None])
    columns = {"p_click": sigmoid(z[:, 0]), "p_buy": sigmoid(z[:, 1]), "what": what}
    columns |= {"click": labels[:, 0].astype(int), "buy": labels[:, 1].astype(int)}
    return pl.DataFrame({**columns, "request": np.arange(ROWS) // 10})


def by_size(what):
    return 1.5 * np.sin(5 * what / VALUES)


def by_name(what):
    return np.random.default_rng(9).normal(size=VALUES)[what]


def kind_of(model):
    return model.fitted.encoder.features[0].kind


def test_whole_numbers_whose_size_counts_are_learned_as_fractions_are():
    table = drawn(by_size)
    whole = hr.HarmonRank().fit(table, SCHEMA)
    fractions = table.with_columns(pl.col("what").cast(pl.Float64))
    same = hr.HarmonRank().fit(fractions, SCHEMA)
    assert kind_of(whole) == "number"
    np.testing.assert_array_equal(whole.score(table), same.score(fractions))
    np.testing.assert_array_equal(whole.score(table), whole.score(fractions))


def test_whole_numbers_that_are_names_stay_categories():
    assert kind_of(hr.HarmonRank().fit(drawn(by_name), SCHEMA)) == "integer"


def test_few_whole_numbers_stay_categories_whatever_their_size_says():
    model = hr.HarmonRank().fit(drawn(lambda what: 0.05 * what, values=50), SCHEMA)
    assert kind_of(model) == "integer"


def test_text_stays_a_category():
    table = drawn(by_size).with_columns(pl.col("what").cast(pl.String))
    assert kind_of(hr.HarmonRank().fit(table, SCHEMA)) == "text"


@pytest.mark.parametrize("seed", [2, 3])
def test_moods_that_the_rows_of_a_request_share_make_no_names_of_sizes(seed):
    # Eight requests have a value, so that the mean of their moods looks like its effect.
    rng = np.random.default_rng(seed)
    table = drawn(by_size, seed=seed).with_columns(what=pl.col("request") % 150)
    p = table["p_click"].to_numpy()
    mood = np.repeat(rng.normal(size=ROWS // 10), 10)
    z = np.log(p / (1 - p)) + mood + 0.8 * np.sin(table["what"].to_numpy() / 30)
    table = table.with_columns(click=pl.Series(rng.random(ROWS) < sigmoid(z)).cast(pl.Int64))
    assert kind_of(hr.HarmonRank().fit(table, SCHEMA)) == "number"


@pytest.mark.parametrize("effect", [by_size, by_name])
def test_blocks_and_memory_choose_alike(effect, tmp_path):
    table = drawn(effect)
    table.write_parquet(tmp_path / "log.parquet")
    model = hr.HarmonRank()
    model.fit(FileBlocks(tmp_path, SCHEMA, size=2_500), SCHEMA)
    whole = hr.HarmonRank().fit(table, SCHEMA)
    assert model.fitted.encoder == whole.fitted.encoder


def test_a_saved_model_keeps_its_parts(tmp_path):
    table = drawn(by_size)
    model = hr.HarmonRank().fit(table, SCHEMA)
    model.save(tmp_path / "model")
    again = hr.load(tmp_path / "model")
    np.testing.assert_array_equal(again.score(table), model.score(table))
    one = table.head(1)
    np.testing.assert_array_equal(again.score(one), model.score(table)[:1])
