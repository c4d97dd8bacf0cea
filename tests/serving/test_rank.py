import numpy as np
import polars as pl
import pytest
from service import application, ask, expected, order_of, rank_body

import harmonrank as hr
from harmonrank.registry import Guardrails, Registry
from harmonrank.serving.rank import best
from harmonrank.support import UsageError
from logs import small_table


def test_the_best_come_first_with_the_scores_of_a_table(app, default_model, table):
    status, answer = ask(app, "POST", "/v1/rank", rank_body(table))
    assert status == 200
    best, fused = expected(default_model, table)
    assert order_of(answer) == best
    assert [row["fused"] for row in answer["ranked"]] == fused
    assert answer["version"] == app.live.runtime.version


def test_a_context_that_all_share_gives_the_same_as_one_for_each(app, table):
    body = rank_body(table)
    body["context"] = {"hour": 3, "age": "old"}
    one = ask(app, "POST", "/v1/rank", body)[1]
    body["context"] = {"hour": [3] * 20, "age": "old"}
    assert ask(app, "POST", "/v1/rank", body)[1] == one


def test_weights_and_operating_points_change_the_order(app, default_model, table):
    status, answer = ask(app, "POST", "/v1/rank", rank_body(table, weights={"buy": 9}))
    assert status == 200
    assert order_of(answer) == expected(default_model, table, weights={"buy": 9})[0]
    point = ask(app, "POST", "/v1/rank", rank_body(table, point="sales"))[1]
    assert order_of(point) == expected(default_model, table, weights={"buy": 3, "like": 0.5})[0]
    both = ask(app, "POST", "/v1/rank", rank_body(table, point="sales", weights={"like": 9}))[1]
    assert order_of(both) == expected(default_model, table, weights={"buy": 3, "like": 9})[0]


def test_values_of_events_rank_in_place_of_weights(app, default_model, table):
    worth = {"buy": 2, "like": -3}
    status, answer = ask(app, "POST", "/v1/rank", rank_body(table, value=worth, shares=True))
    fused = default_model.score(table.head(20), value=worth)
    assert status == 200
    assert order_of(answer) == np.argsort(-fused, kind="stable")[:5].tolist()
    first = answer["ranked"][0]
    parts = {name: v * first["probabilities"][name] for name, v in worth.items()}
    size = sum(map(abs, parts.values()))
    assert first["shares"] == pytest.approx({name: part / size for name, part in parts.items()})


def test_shares_add_up_and_follow_the_weights(app, default_model, table):
    answer = ask(app, "POST", "/v1/rank", rank_body(table, shares=True, k=None))[1]
    assert len(answer["ranked"]) == 20
    p = default_model.probabilities(table.head(20))
    for row in answer["ranked"]:
        assert row["probabilities"]["buy"] == p[row["index"], 0]
        assert sum(row["shares"].values()) == pytest.approx(1)
    heavy = ask(app, "POST", "/v1/rank", rank_body(table, shares=True, weights={"buy": 99}))[1]
    assert all(row["shares"]["buy"] > 0.9 for row in heavy["ranked"])


def test_a_score_that_is_null_is_missing(app, default_model, table):
    part = table.head(20).with_columns(
        p_buy=pl.when(pl.int_range(20) > 2).then("p_buy"),
        p_like=pl.when(pl.int_range(20) != 1).then("p_like"),
    )
    fused = default_model.score(part)
    body = rank_body(part, k=None, shares=True)
    assert body["scores"]["p_buy"][:3] == [None] * 3
    status, answer = ask(app, "POST", "/v1/rank", body)
    assert status == 200, answer
    result = sorted(answer["ranked"], key=lambda row: row["index"])
    assert [row["fused"] for row in result] == fused.tolist()
    p = default_model.probabilities(part)
    assert [row["probabilities"]["like"] for row in result] == p[:, 1].tolist()


def test_ids_name_the_candidates(app, table):
    ids = [f"item {n}" for n in range(20)]
    answer = ask(app, "POST", "/v1/rank", rank_body(table, ids=ids))[1]
    assert [row["id"] for row in answer["ranked"]] == [ids[n] for n in order_of(answer)]


def test_many_requests_are_answered_as_one_by_one(app, table):
    bodies = [rank_body(table, k=k, rows=rows) for k, rows in ((3, 20), (1, 5), (40, 7))]
    many = ask(app, "POST", "/v1/rank", {"requests": bodies})[1]
    single = [ask(app, "POST", "/v1/rank", body)[1]["ranked"] for body in bodies]
    assert [part["ranked"] for part in many["results"]] == single


def test_of_equals_the_first_stays_first(app):
    n = 200
    body = {"scores": {"p_buy": [0.5] * n, "p_like": [0.5] * n}, "k": 3}
    body["context"] = {"hour": None, "age": None}
    assert order_of(ask(app, "POST", "/v1/rank", body)[1]) == [0, 1, 2]


@pytest.mark.parametrize("k", [1, 7, 64, 65, 300, None])
def test_the_best_are_those_of_a_stable_sort_ties_included(k):
    rng = np.random.default_rng(0)
    for size in (1, 5, 80, 3000):
        for fused in (rng.random(size), rng.integers(0, 9, size).astype(float), np.zeros(size)):
            assert best(fused, k).tolist() == np.argsort(-fused, kind="stable")[:k].tolist()


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"", 400, "The request is not JSON"),
        (b"{", 400, "The request is not JSON"),
        (b"[]", 400, "expected object, got array"),
        (b"\xff\xfe", 400, "is not JSON"),
        (b"[" * 100_000, 400, "The request"),
        ({}, 400, "missing required field scores"),
        ({"scores": {"p_buy": [0.1]}}, 400, "Score 'p_like' is missing. Got 'p_buy'."),
        ({"scores": {"p_buy": [0.1], "p_like": [2.0]}, "context": {}}, 400, "lie in [0, 1]"),
        ({"scores": {"p_buy": [0.1], "p_like": []}}, 400, "must have the same length"),
        ({"scores": {"p_buy": [], "p_like": []}}, 400, "from 1 up"),
        ({"scores": {"p_buy": ["x"], "p_like": [0.1]}}, 400, "expected float | null, got str"),
        ({"scores": {"p_buy": [0.1], "p_like": [0.1]}}, 400, "The context lacks 'hour'"),
        ({"scores": {"p_buy": [0.1], "p_like": [0.1], "x": [1]}}, 400, "no score 'x'"),
        ({"requests": []}, 400, "length >= 1"),
        ({"requests": 3}, 400, "expected array"),
    ],
)
def test_a_mistake_is_one_sentence(app, body, status, sentence):
    result, answer = ask(app, "POST", "/v1/rank", body)
    assert result == status
    assert sentence in answer["error"]
    assert "\n" not in answer["error"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"context": {"hour": "noon", "age": "old"}}, "was integer in training"),
        ({"context": {"hour": 3, "age": ["old", 3] * 10}}, "text or numbers"),
        ({"context": {"hour": 3, "age": ["old"]}}, "one value for each candidate"),
        ({"context": {"hour": 3, "age": "old", "moon": 1}}, "no context column 'moon'"),
        ({"k": 0}, "expected int >= 1"),
        ({"ids": [1]}, "`ids` must have one value for each of 20"),
        ({"weights": {"bye": 1}}, "Did you mean 'buy'?"),
        ({"weights": {"buy": 1}, "value": {"buy": 1}}, "Give either `weights` or `value`, not b"),
        ({"weights": {"buy": 1e300}}, "must be at most"),
        ({"point": "sale"}, "Did you mean 'sales'?"),
        ({"kk": 1}, "unknown field kk"),
    ],
)
def test_a_mistake_in_a_part_is_one_sentence(app, table, change, sentence):
    status, answer = ask(app, "POST", "/v1/rank", rank_body(table) | change)
    assert status == 400
    assert sentence in answer["error"]


def test_too_many_rows_and_unknown_types_are_refused(default_model, tmp_path, table):
    default_model.save(tmp_path / "m")
    app = application(tmp_path / "m", tmp_path / "s", max_rows=10)
    for body in (rank_body(table), {"requests": [rank_body(table, rows=6)] * 2}):
        assert ask(app, "POST", "/v1/rank", body)[0] == 413
    assert ask(app, "POST", "/v1/rank", b"", {"content-type": "text/csv"})[0] == 415


def test_a_method_without_probabilities_still_ranks(tmp_path, table, schema):
    from harmonrank.fusion.baselines.formula_search import FormulaGrid

    model = FormulaGrid().fit(table, schema)
    assert not isinstance(model, hr.ClosedForm)
    model.save(tmp_path / "m")
    app = application(tmp_path / "m", tmp_path / "s")
    assert order_of(ask(app, "POST", "/v1/rank", rank_body(table))[1]) == expected(model, table)[0]
    status, answer = ask(app, "POST", "/v1/rank", rank_body(table, shares=True))
    assert status == 400
    assert "gives no probability" in answer["error"]


@pytest.fixture
def timed(tmp_path):
    """Return the service of a model that reads percent scores and hours of times, and its rows."""
    table = small_table().with_columns(
        at=pl.from_epoch(1_793_500_000 + pl.int_range(pl.len()) * 900), p_buy=pl.col("p_buy") * 100
    )
    schema = hr.Schema.of(
        {
            "objectives": {"buy": "p_buy", "like": "p_like"},
            "context": ["age", "at:hour"],
            "scale": {"p_buy": "percent"},
        }
    )
    model = hr.HarmonRank().fit(table, schema)
    model.save(tmp_path / "timed")
    return application(tmp_path / "timed", tmp_path / "state"), model, table.head(20)


def test_a_request_may_give_its_time_and_scores_on_their_scale(timed):
    app, model, rows = timed
    fused = np.sort(model.score(rows))[::-1].tolist()
    scores = {name: rows[name].to_list() for name in ("p_buy", "p_like")}
    times = rows["at"].dt.to_string("%Y-%m-%dT%H:%M:%S").to_list()
    hours = rows["at"].dt.hour().to_list()
    for given in ({"at": times}, {"at": rows["at"].dt.epoch("s").to_list()}, {"at:hour": hours}):
        body = {"scores": scores, "context": {"age": rows["age"].to_list(), **given}, "k": None}
        status, answer = ask(app, "POST", "/v1/rank", body)
        assert status == 200, answer
        assert [row["fused"] for row in answer["ranked"]] == fused
    shared = {"scores": scores, "context": {"age": "old", "at": times[0]}, "k": None}
    same = rows.with_columns(age=pl.lit("old"), at=pl.lit(rows["at"][0]))
    answer = ask(app, "POST", "/v1/rank", shared)[1]
    assert [row["fused"] for row in answer["ranked"]] == np.sort(model.score(same))[::-1].tolist()
    status, answer = ask(app, "POST", "/v1/rank", {**shared, "context": {"age": 1, "at": "soon"}})
    assert status == 400
    assert "A time must be one of dates, times, ISO text" in answer["error"]
    status, answer = ask(
        app, "POST", "/v1/rank", {**shared, "scores": {**scores, "p_buy": [101] * 20}}
    )
    assert status == 400
    assert "'buy', of scale percent, must lie in [0, 100]. Got 101" in answer["error"]


def test_a_service_knows_the_operating_points_of_its_model(default_model, table, tmp_path):
    kept = default_model.with_point("likes", {"buy": 0.1, "like": 5}).with_point("sales", {})
    kept.save(tmp_path / "kept")
    app = application(tmp_path / "kept", tmp_path / "state", points={"sales": {"buy": 3}})
    result = ask(app, "POST", "/v1/rank", rank_body(table, point="likes"))[1]
    assert order_of(result) == expected(default_model, table, weights={"buy": 0.1, "like": 5})[0]
    facts = ask(app, "GET", "/v1/model")[1]
    # What the service was told wins over what the model says.
    assert facts["points"] == {"likes": {"buy": 0.1, "like": 5.0}, "sales": {"buy": 3}}


def test_a_service_at_a_point_ranks_by_its_weights_where_no_others_are_asked_for(
    default_model, table, tmp_path
):
    likes = {"buy": 0.1, "like": 5.0}
    default_model.with_point("likes", likes).save(tmp_path / "kept")
    app = application(tmp_path / "kept", tmp_path / "state", at="likes")
    result = ask(app, "POST", "/v1/rank", rank_body(table))[1]
    assert order_of(result) == expected(default_model, table, weights=likes)[0]
    with pytest.raises(UsageError, match="no operating point 'like'. Did you mean 'likes'"):
        application(tmp_path / "kept", tmp_path / "other", at="like")


def test_a_version_without_the_point_of_the_service_is_refused_and_the_old_one_goes_on(
    models, table, tmp_path
):
    rules = Guardrails(tolerance=0.1, calibration=None, shift=None, scale=None)
    registry = Registry.create(tmp_path / "points", rules)
    registry.publish(models[0].with_point("likes", {"like": 5}))
    app = application(registry.path, tmp_path / "state", at="likes")
    registry.publish(models[1])
    app.live.refresh()
    (event,) = app.events
    assert event[0] == "reload refused"
    assert "There is no operating point 'likes'" in event[1]["reason"]
    assert app.live.runtime.version == "1"
