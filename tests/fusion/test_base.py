from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from harmonrank import ClosedForm, HarmonRankPaper, Schema
from harmonrank.data import read_log
from harmonrank.data.rows.log_blocks import MemoryBlocks
from harmonrank.fusion import method_class
from harmonrank.fusion.fit import _set_aside
from harmonrank.support import DataError, UsageError
from logs import small_table

SMALL = {"epochs": 2, "batch_rows": 200, "buckets": 8}


def sources(folder):
    table = pl.read_parquet(folder / "train.parquet")
    table.write_csv(folder / "t.csv")
    table.write_ipc(folder / "t.arrow")
    table.write_ipc(folder / "t.feather", compression="lz4")
    return {
        "path": folder / "train.parquet",
        "text path": str(folder / "train.parquet"),
        "csv": folder / "t.csv",
        "arrow": folder / "t.arrow",
        "feather": folder / "t.feather",
        "lazy": table.lazy(),
        "pandas": table.to_pandas(),
        "pyarrow": table.to_arrow(),
    }


def test_a_table_of_any_kind_gives_the_same_fit(folder, schema):
    table = pl.read_parquet(folder / "train.parquet")
    expected = ClosedForm().fit(table, schema, valid=folder / "valid.parquet").score(table)
    for name, source in sources(folder).items():
        model = ClosedForm().fit(source, schema, valid=folder / "valid.parquet")
        np.testing.assert_array_equal(model.score(source), expected, err_msg=name)


def test_what_is_not_fitted_says_so(table, tmp_path):
    for verb in (
        lambda: ClosedForm().score(table),
        lambda: ClosedForm().evaluate(table),
        lambda: ClosedForm().rank(table),
        lambda: ClosedForm().save(tmp_path / "m"),
        lambda: ClosedForm().effective_weights,
    ):
        with pytest.raises(UsageError, match="This closed-form is not fitted; call fit or load"):
            verb()
    assert list(tmp_path.iterdir()) == []


def test_rank_gives_the_best_k_of_every_request_best_first(table, schema):
    model = ClosedForm().fit(table, schema, valid=table)
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
    best = model.rank(shuffled, k=3)
    assert best.columns == [*shuffled.columns, "fused", "place"]
    assert best.height == 3 * 60
    assert best["request_id"].is_sorted()
    everything = table.with_columns(fused=model.score(table))
    for request in (0, 31, 59):
        rows = everything.filter(request_id=request).sort("fused", descending=True)
        chosen = best.filter(request_id=request)
        assert chosen["place"].to_list() == [1, 2, 3]
        assert chosen["fused"].to_list() == rows["fused"].head(3).to_list()
        assert chosen["p_buy"].to_list() == rows["p_buy"].head(3).to_list()


def test_rank_takes_what_there_is_where_a_request_is_short(table, schema):
    model = ClosedForm().fit(table, schema, valid=table)
    assert model.rank(table, k=999).height == table.height
    assert model.rank(table.lazy(), k=1).height == 60


def test_rows_without_a_request_compete_with_no_other(table, schema):
    model = ClosedForm().fit(table, schema, valid=table)
    some = table.with_columns(request_id=pl.when(pl.int_range(600) >= 50).then("request_id"))
    best = model.rank(some, k=2)
    assert best.height == 50 + 55 * 2
    assert best.filter(pl.col("request_id").is_null())["place"].unique().to_list() == [1]


def test_a_table_without_rows_has_no_scores_and_no_best_rows(table, schema):
    model = ClosedForm().fit(table, schema, valid=table)
    empty = table.clear()
    assert model.score(empty).shape == (0,)
    assert model.score(empty.to_pandas(), weights={"buy": 3}).shape == (0,)
    assert model.probabilities(empty).shape == (0, 2)
    assert model.rank(empty).columns == [*table.columns, "fused", "place"]
    with pytest.raises(DataError, match="has no rows"):
        model.drift(empty)
    with pytest.raises(DataError, match="has no rows"):
        model.evaluate(empty)


def test_a_pandas_table_is_ranked_to_a_pandas_table_that_keeps_index_and_types(table, schema):
    model = ClosedForm().fit(table, schema, valid=table)
    frame = table.to_pandas().astype({"age": "category"})
    frame["note"] = [object()] * len(frame)  # a column that no ranking needs
    frame.index = [f"row {i}" for i in range(len(frame))]
    best, expected = model.rank(frame, k=3), model.rank(table, k=3)
    assert list(best.columns) == [*table.columns, "note", "fused", "place"]
    assert best["age"].dtype == "category"
    np.testing.assert_array_equal(best["fused"], expected["fused"])
    np.testing.assert_array_equal(best["place"], expected["place"])
    first = best.iloc[0]
    assert frame.loc[best.index[0], "p_buy"] == first["p_buy"]
    assert list(frame.columns) == [*table.columns, "note"]
    assert list(model.rank(frame.iloc[:0]).columns) == list(best.columns)


def test_rank_follows_other_weights_and_another_request_column(table, schema):
    model = ClosedForm().fit(table, replace(schema, request=None), valid=table)
    renamed = table.rename({"request_id": "session"})
    best = model.rank(renamed, k=1, request="session", weights={"buy": 9})
    fused = model.score(renamed, weights={"buy": 9})
    largest = renamed.with_columns(fused=fused).group_by("session").agg(pl.max("fused"))
    assert best["fused"].to_list() == largest.sort("session")["fused"].to_list()


def test_rank_refuses_what_it_cannot_do(table, schema):
    model = ClosedForm().fit(table, schema, valid=table)
    with pytest.raises(UsageError, match="`k` must be a whole number from 1 up. Got 0"):
        model.rank(table, k=0)
    with pytest.raises(UsageError, match="has a column 'fused' already; drop or rename it"):
        model.rank(table.with_columns(fused=0.5))
    with pytest.raises(DataError, match="has no column 'request_id'"):
        model.rank(table.drop("request_id"))
    plain = ClosedForm().fit(table, replace(schema, request=None), valid=table)
    with pytest.raises(UsageError, match="`rank` needs requests; name the request column"):
        plain.rank(table)


def test_a_method_that_cannot_change_weights_says_so(table, schema):
    model = HarmonRankPaper(**SMALL).fit(table, schema)
    with pytest.raises(UsageError, match="cannot change its weights after the fit"):
        model.score(table, weights={"buy": 2})


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"widht": 3}, "harmonrank-paper has no option 'widht'. Did you mean 'width'?"),
        (
            {"epochs": "many"},
            "Option 'epochs' of harmonrank-paper must be a whole number .* or null. Got",
        ),
        ({"epochs": 2.5}, "'epochs' of .* must be a whole number .* or null. Got 2.5"),
        ({"epochs": True}, "'epochs' of .* must be a whole number .* or null. Got True"),
        ({"buckets": "none"}, "'buckets' of .* must be a whole number .* or null. Got 'none'"),
        ({"gate": 1}, "'gate' of .* must be true or false. Got 1"),
        ({"learning_rate": "low"}, "'learning_rate' of .* must be a number"),
        ({"optimizer": "lbfgs"}, "'optimizer' of .* must be 'adam' or 'sgd'"),
    ],
)
def test_a_wrong_option_is_refused_before_any_work(option, message):
    with pytest.raises(UsageError, match=message):
        HarmonRankPaper(**option)


def test_a_whole_number_serves_as_a_number_and_null_where_allowed():
    config = HarmonRankPaper(learning_rate=1, buckets=None).config
    assert (config.learning_rate, config.buckets) == (1, None)


def test_an_objective_without_a_positive_is_refused_in_fit_and_evaluate(table, schema):
    none = table.with_columns(buy=pl.lit(0))
    with pytest.raises(DataError, match="'buy' has no positive label among the 600 training rows"):
        ClosedForm().fit(none, schema)
    model = ClosedForm().fit(table, schema)
    with pytest.raises(DataError, match="'buy' has no positive label among the 600 evaluated rows"):
        model.evaluate(none)


def test_rows_that_are_set_aside_are_whole_requests_drawn_by_the_seed(table, schema):
    blocks = MemoryBlocks(read_log(table, schema))
    _, rest, valid = _set_aside(blocks, seed=0)
    kept, aside = (set(blocks[0].request.tolist()) for blocks in (rest, valid))
    assert kept | aside == set(blocks[0].request.tolist())
    assert not kept & aside
    assert 0 < valid[0].rows < 200
    again, other = (_set_aside(blocks, seed)[2][0].request for seed in (0, 1))
    np.testing.assert_array_equal(again, valid[0].request)
    assert set(other.tolist()) != aside


@pytest.mark.parametrize("request_column", ["request_id", None])
def test_the_only_positive_is_never_set_aside(schema, request_column):
    schema = replace(schema, request=request_column)
    for seed in range(30):
        frame = small_table(60, seed).with_columns(buy=pl.lit(0))
        frame[seed, "buy"] = 1
        model = method_class("logistic")().fit(frame, schema, seed=seed)
        assert model.prevalence[0] == pytest.approx(1 / model.training.rows)
        assert model.training.rows + model.training.valid_rows == 60
        assert model.training.valid_rows > 0


def test_too_few_rows_to_set_some_aside_ask_for_validation_rows():
    frame = pl.DataFrame({"p": [0.1, 0.9], "y": [0, 1]})
    with pytest.raises(UsageError, match="2 training rows have too few requests .* pass `valid`"):
        HarmonRankPaper(**SMALL).fit(frame, Schema({"y": "p"}))
    assert ClosedForm().fit(frame, Schema({"y": "p"}), valid=frame).score(frame)[1] > 0.5


@pytest.mark.parametrize("name", ["harmonrank", "closed-form", "logistic"])
def test_only_ratios_of_sample_weights_matter(name, table, schema):
    schema = replace(schema, sample_weight="v")
    scores = []
    for unit in (1.0, 1000.0):
        frame = table.with_columns(v=pl.int_range(1, pl.len() + 1) % 3 * unit)
        scores.append(method_class(name)().fit(frame, schema).score(frame))
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6)


def test_a_fit_that_looks_at_no_validation_rows_sets_none_aside(table, schema):
    alone = method_class("harmonrank")().fit(table, schema)
    beside = method_class("harmonrank")().fit(table, schema, valid=table.head(50))
    np.testing.assert_array_equal(alone.score(table), beside.score(table))


def test_evaluate_and_explain_agree_on_effective_weights(table, schema):
    model = method_class("harmonrank")().fit(table.head(300), schema)
    quality = model.evaluate(table.tail(300))
    assert quality.effective_weights == pytest.approx(model.explain()["effective_weight"])
