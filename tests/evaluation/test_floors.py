"""Floors under AUCs: worlds whose best guarded trade-off is known."""

from dataclasses import replace
from itertools import combinations
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.evaluation import Floor, Sweep, guarded_by
from harmonrank.fusion.baselines.closed_form import PrevalenceWeights
from harmonrank.fusion.method import changed
from harmonrank.metrics import auc, auc_sum_interval, expected_grouped_auc
from harmonrank.support import UsageError
from harmonrank.worlds import as_frame, world, world_schema

NAMES = ("buy", "like", "view")


def known_sweep(p, weights=None):
    """Return the sweep of a world whose scores are the true probabilities, which are also known."""
    rng, names = np.random.default_rng(0), NAMES[: p.shape[1]]
    labels = rng.random(p.shape) < p
    labels[0], labels[1] = False, True
    columns = {name: labels[:, m].astype(np.uint8) for m, name in enumerate(names)}
    columns |= {f"p_{name}": p[:, m] for m, name in enumerate(names)}
    columns |= {f"true_{name}": p[:, m] for m, name in enumerate(names)}
    schema = hr.Schema(
        {name: f"p_{name}" for name in names},
        truth={name: f"true_{name}" for name in names},
        weights=weights or {},
    )
    table = pl.DataFrame(columns)
    fit = PrevalenceWeights().fit(table, schema)
    endless = replace(fit.fitted, prevalence=p.mean(axis=0).round(12))  # as if of endless rows
    model = changed(fit, schema=schema, fitted=endless)
    return Sweep.of(model, table)


def floors(sweep, *texts):
    return [Floor.parse(text, sweep.names) for text in texts]


def symmetric(rows=300, seed=0):
    """Return probabilities in which objectives can be exchanged: every permutation is there."""
    z = np.random.default_rng(seed).normal([-1.0, -1.0], 1.2, (rows, 2))
    z[:, 1] -= 0.9 * z[:, 0]
    p = 1 / (1 + np.exp(-z))
    return np.concatenate([p, p[:, ::-1]])


def all_rankings(parts):
    """Yield a weight of the first objective in each interval in which the ranking is the same."""
    x, y = parts.T
    ends = {0.0, 1.0}
    for i, j in combinations(range(len(parts)), 2):
        dx, dy = x[i] - x[j], y[i] - y[j]
        if dx * dy < 0:
            ends.add(dy / (dy - dx))
    ends = np.sort(list(ends))
    yield from (ends[1:] + ends[:-1]) / 2


@pytest.fixture(scope="module")
def enumerated():
    """Return a small world and the AUCs of every ranking that weights can make of it."""
    rng = np.random.default_rng(3)
    z = rng.normal([-1.5, -0.5], 1.0, (120, 2))
    z[:, 1] -= 0.6 * z[:, 0]
    sweep = known_sweep(1 / (1 + np.exp(-z)))
    points = [sweep.areas(np.array([t, 1 - t])) for t in all_rankings(sweep.parts)]
    return sweep, np.array(points)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", ["buy", "like"])
def test_the_best_of_all_rankings_that_hold_the_floor_is_found(enumerated, name, share):
    sweep, points = enumerated
    m = NAMES.index(name)
    now = sweep.areas(sweep.weights)
    least = float(now[m] + share * (points[:, m].max() - now[m]))
    best = points[points[:, m] >= least].sum(axis=1).max()
    guarded = guarded_by(sweep, floors(sweep, f"{name}>={least:.17g}"), level=0)
    assert guarded.feasible
    assert guarded.point.areas[m] >= least
    assert guarded.point.total <= best + 1e-12
    assert guarded.point.total == pytest.approx(best, abs=2e-4)


def test_a_floor_that_holds_already_changes_nothing(enumerated):
    sweep, _ = enumerated
    guarded = guarded_by(sweep, floors(sweep, "buy>=current-0.01", "like>=0.5"), level=0)
    np.testing.assert_allclose(guarded.point.weights, 1)
    assert guarded.point.total == pytest.approx(sweep.areas(np.ones(2)).sum())
    assert guarded.prices == {"buy": 0, "like": 0}
    assert "+0.0000 against now" in guarded.sentence()


def test_in_a_symmetric_world_the_nearest_point_is_the_middle_and_the_shortfall_is_known():
    sweep = known_sweep(symmetric())
    middle = sweep.areas(np.ones(2))
    assert middle[0] == pytest.approx(middle[1], abs=1e-12)
    for beyond in (0.005, 0.05):
        least = f"{middle[0] + beyond:.12g}"
        both = floors(sweep, f"buy>={least}", f"like>={least}")
        guarded = guarded_by(sweep, both, level=0)
        assert not guarded.feasible
        assert guarded.conflict == tuple(both)
        assert guarded.short == pytest.approx(beyond, abs=2e-4)
        assert guarded.point.weights == pytest.approx([1, 1], abs=0.05)
        assert f"lowered by {guarded.short:.4f}" in guarded.sentence()
    both = floors(sweep, *(f"{name}>={middle[0] - 1e-4:.12g}" for name in ("buy", "like")))
    assert guarded_by(sweep, both, level=0).feasible


def test_only_the_floors_that_conflict_are_named():
    rng = np.random.default_rng(5)
    z = rng.normal(-1.0, 1.2, (600, 3))
    z[:, 1] = -0.8 * z[:, 0] + 0.5 * z[:, 1]
    sweep = known_sweep(1 / (1 + np.exp(-z)))
    ends = [sweep.areas(end)[m] for m, end in enumerate(np.eye(3))]
    wanted = floors(sweep, f"view>={0.55}", f"buy>={ends[0] - 0.002}", f"like>={ends[1] - 0.002}")
    guarded = guarded_by(sweep, wanted, level=0)
    assert [floor.objective for floor in guarded.conflict] == ["buy", "like"]
    assert "cannot hold together" in guarded.sentence()
    alone = guarded_by(sweep, floors(sweep, "view>=0.3", f"like>={ends[1] + 0.01}"), level=0)
    assert [floor.objective for floor in alone.conflict] == ["like"]
    assert "cannot hold at all" in alone.sentence()
    assert alone.short == pytest.approx(0.01, abs=3e-4)


def test_a_price_is_what_lowering_the_floor_brings():
    z = np.random.default_rng(6).normal(-1.0, 1.2, (20_000, 3))
    z[:, 1] -= 0.8 * z[:, 0]
    sweep = known_sweep(1 / (1 + np.exp(-z)))
    least, step = sweep.areas(np.ones(3))[1] + 0.03, 0.004

    def total(extra):
        guarded = guarded_by(sweep, floors(sweep, f"like>={least + extra:.12g}"), level=0)
        return guarded.point.total, guarded.prices["like"]

    (low, price), (high, _) = total(0.0), total(-step)
    assert (high - low) / step == pytest.approx(price, rel=0.1)
    # Only the weight of the objective with a floor has risen.
    guarded = guarded_by(sweep, floors(sweep, f"like>={least:.12g}"), level=0)
    assert guarded.point.weights[0] == pytest.approx(guarded.point.weights[2])
    assert guarded.point.weights[1] > guarded.point.weights[0]


def test_several_floors_that_bind_at_once_all_just_hold():
    z = np.random.default_rng(7).normal(-1.0, 1.2, (20_000, 3))
    z[:, 1] -= 0.8 * z[:, 0]
    sweep = known_sweep(1 / (1 + np.exp(-z)), {"view": 4})
    aim = sweep.areas(np.array([1.0, 1.4, 0.9]))
    wanted = floors(sweep, f"buy>={aim[0]:.12g}", f"like>={aim[1]:.12g}", "like>=current")
    guarded = guarded_by(sweep, wanted, level=0)
    assert guarded.feasible
    np.testing.assert_allclose(guarded.point.areas, aim, atol=2e-3)
    assert (guarded.point.areas[:2] >= aim[:2] - 1e-12).all()


# With labels alone


@pytest.mark.parametrize(
    ("request_id", "like", "comment"), [(None, 0.02, -0.005), ("request_id", 0.01, -0.01)]
)
def test_floors_with_their_margin_hold_on_rows_that_the_search_has_not_seen(
    request_id, like, comment
):
    place = world("conflict")
    schema = world_schema(place).subset(["comment", "like", "long_view"])
    schema = replace(schema, request=request_id)
    model = hr.HarmonRank().fit(as_frame(place, place.sample(40_000, seed=1)), schema)
    truth = Sweep.of(model, as_frame(place, place.sample(100_000, seed=9)))

    def areas(weights):
        if request_id is None:
            return truth.areas(weights)
        return expected_grouped_auc(truth.fused(weights), truth.log.truth, truth.log.request)

    now, held = areas(truth.weights), 0
    for seed in range(12):
        rows = place.sample(15_000, seed=100 + seed, with_truth=False)
        sweep = Sweep.of(model, as_frame(place, rows))
        wanted = floors(sweep, f"like>=current+{like}", f"comment>=current{comment}")
        guarded = guarded_by(sweep, wanted)
        assert guarded.feasible
        moved = areas(guarded.point.weights) - now
        held += bool(moved[1] >= like and moved[0] >= comment)
    # Each lower end covers with 97.5 %; both together with 95 % or more.
    assert held >= 10


@pytest.mark.parametrize("request_id", [None, "request_id"])
def test_the_margin_is_the_lower_end_of_the_paired_interval(request_id):
    place = world("conflict")
    schema = world_schema(place).subset(["comment", "like", "long_view"])
    schema = replace(schema, request=request_id)
    table = as_frame(place, place.sample(6000, seed=1, with_truth=False))
    sweep = Sweep.of(hr.ClosedForm().fit(table, schema), table)
    guarded = guarded_by(sweep, floors(sweep, "like>=current", "comment>=0.3"), level=0.9)
    pair = [sweep.fused(weights) for weights in (guarded.point.weights, sweep.weights)]
    low = low_of_pair(*pair, sweep.log, level=0.9)
    assert guarded.point.slack[0] == pytest.approx(low, abs=1e-9)
    assert low >= 0


def low_of_pair(new, old, log, level):
    """Return the lower end of the change of the AUC of 'like', by a loop over requests."""
    y = log.known_labels()[:, 1]
    if log.request is None:
        return auc_sum_interval(new, y, minus=old, level=level).low
    changes, sizes = [], []
    for request in np.unique(log.request):
        here = log.request == request
        if 0 < y[here].sum() < here.sum():
            changes.append(float(auc(new[here], y[here]) - auc(old[here], y[here])))
            sizes.append(here.sum())
    share, changes, n = np.array(sizes) / sum(sizes), np.array(changes), len(sizes)
    mean = share @ changes
    error = np.sqrt(n / (n - 1) * ((share * (changes - mean)) ** 2).sum())
    return mean - NormalDist().inv_cdf(0.5 + level / 2) * error


# What ranks today


def today_sweep(factor=None):
    place = world("conflict")
    schema = world_schema(place).subset(["comment", "like", "long_view"])
    table = as_frame(place, place.sample(8000, seed=1, with_truth=False))
    model = hr.ClosedForm().fit(table, schema)
    score = table["p_comment"].to_numpy() + 0.3 * table["p_like"].to_numpy()
    if factor is not None:
        score = score * factor[table["request_id"].rank("dense").to_numpy().astype(int)]
    table = table.with_columns(today_score=pl.Series(score))
    return Sweep.of(model, table, baseline="today_score")


def test_floors_against_today_are_kept_and_a_user_factor_changes_none():
    plain = today_sweep()
    scaled = today_sweep(np.random.default_rng(0).lognormal(0, 2, 10_000))
    assert plain.within
    wanted = ("comment>=today-0.05", "like>=today-0.05")
    guarded, same = (guarded_by(each, floors(each, *wanted), level=0.9) for each in (plain, scaled))
    assert guarded.feasible
    np.testing.assert_array_equal(same.point.weights, guarded.point.weights)
    low = low_of_pair(plain.fused(guarded.point.weights), plain.today.scores, plain.log, 0.9)
    assert guarded.point.slack[1] == pytest.approx(low + 0.05, abs=1e-9)
    assert low >= -0.05
    assert (plain.areas(None) != scaled.areas(None)).all()
    assert "can be kept: AUC-sum within requests" in guarded.sentence()


def test_floors_on_events_are_kept_with_the_margin_of_their_requests():
    sweep = today_sweep()
    wanted = ("comment@3>=today-0.02", "like@5>=current", "like>=current-0.03")
    guarded = guarded_by(sweep, floors(sweep, *wanted), level=0.9)
    assert guarded.feasible
    m, k, n = 0, 3, len(np.unique(sweep.log.request))
    each = [
        events_of_requests(score, sweep.log, m, k)
        for score in (sweep.fused(guarded.point.weights), sweep.today.scores)
    ]
    assert guarded.point.figures[0] == pytest.approx(each[0].mean())
    assert guarded.today[0] == pytest.approx(each[1].mean())
    change = each[0] - each[1]
    low = change.mean() - NormalDist().inv_cdf(0.95) * change.std(ddof=1) / np.sqrt(n)
    assert guarded.point.slack[0] == pytest.approx(low + 0.02)
    assert guarded.point.worst >= 0
    assert guarded.prices == {}
    assert guarded.to_dict()["floors"][0]["k"] == 3
    few = guarded_by(sweep, floors(sweep, "comment@3>=3"), level=0)
    assert "comment@3>=3 cannot hold at all" in few.sentence()


def events_of_requests(score, log, m, k):
    """Return the events among the first k of every request, whose scores are all different."""
    y = log.known_labels()[:, m].astype(float)
    return np.array(
        [
            y[here][np.argsort(-score[here])][:k].sum()
            for here in (log.request == request for request in np.unique(log.request))
        ]
    )


def test_events_need_requests(enumerated):
    sweep, _ = enumerated
    with pytest.raises(UsageError, match="Events in the first k need requests"):
        guarded_by(sweep, floors(sweep, "buy@3>=0.1"))


def test_rows_of_a_baseline_are_those_that_are_measured():
    sweep = today_sweep()
    table = as_frame(world("conflict"), world("conflict").sample(8000, seed=1, with_truth=False))
    table = table.with_columns(keep=pl.int_range(pl.len()) % 3)
    schema = replace(sweep.model.schema, sample_weight="keep")
    model = hr.ClosedForm().fit(table, schema)
    some = Sweep.of(model, table, rows=3000, baseline="2*p_comment")
    np.testing.assert_allclose(some.fused(None), 2 * some.log.scores[:, 0])
    assert 2500 < some.log.rows <= 3000


def test_today_must_be_named(enumerated):
    sweep, _ = enumerated
    with pytest.raises(UsageError, match="What ranks today is not known; name it by --baseline"):
        guarded_by(sweep, floors(sweep, "buy>=today"))


def test_the_sum_counts_aucs_as_told_and_current_is_the_model():
    sweep = known_sweep(symmetric())
    counted = Sweep.of(sweep.model, sweep.log, count={"buy": 3, "like": 1})
    guarded = guarded_by(counted, floors(counted, "like>=current-0.01"), level=0)
    now = sweep.areas(np.ones(2))
    assert guarded.point.areas[1] == pytest.approx(now[1] - 0.01, abs=3e-4)
    assert guarded.point.areas[0] > now[0]
    assert guarded.point.total == pytest.approx(guarded.point.areas @ [3, 1])
    np.testing.assert_allclose(guarded.current.areas, now)


# What can be wrong


@pytest.mark.parametrize(
    ("text", "floor"),
    [
        ("buy>=0.75", Floor("buy", 0.75, False)),
        (" buy >= .75 ", Floor("buy", 0.75, False)),
        ("buy>=current", Floor("buy", 0.0, True)),
        ("buy >= current - 0.002", Floor("buy", -0.002, True)),
        ("buy>=current+1e-3", Floor("buy", 0.001, True)),
        ("buy>=today", Floor("buy", 0.0, True, against="today")),
        ("buy >= today - .002", Floor("buy", -0.002, True, against="today")),
        ("a >= b>=0.5", Floor("a >= b", 0.5, False)),
        ("buy@10>=today", Floor("buy", 0.0, True, against="today", k=10)),
        ("buy @ 3 >= 2.5", Floor("buy", 2.5, False, k=3)),
        ("at@7>=0.5", Floor("at@7", 0.5, False)),
    ],
)
def test_a_floor_is_read_as_people_write_it(text, floor):
    names = ["buy", "a >= b", "at@7"]
    assert Floor.parse(text, names) == floor
    assert Floor.parse(str(floor), names) == floor


@pytest.mark.parametrize(
    "text",
    [
        *("buy", "buy>0.7", "buy>=", "buy>=1.5", "buy>=-0.1", "buy>=current0.1", "buy>=current-2"),
        *(
            "buy@3>=-1",
            "buy@3",
            "buy>=currently",
            "buy>=today0.1",
            "buy>=0.7.1",
            ">=0.5",
            "buy>=nan",
            "buy=0.5",
            "",
        ),
    ],
)
def test_what_is_no_floor_is_refused(text):
    with pytest.raises(UsageError, match=r"--keep takes floors such as buy>=0\.75 or like>=curren"):
        Floor.parse(text, ["buy"])


def test_an_unknown_objective_or_level_is_named(enumerated):
    sweep, _ = enumerated
    with pytest.raises(UsageError, match="unknown objective 'bui'. Did you mean 'buy'"):
        Floor.parse("bui>=0.5", sweep.names)
    with pytest.raises(UsageError, match="must be from 0 to below 1. Got 1"):
        guarded_by(sweep, floors(sweep, "buy>=0.5"), level=1)
    with pytest.raises(UsageError, match="at least one floor"):
        guarded_by(sweep, [])


def test_areas_of_the_enumeration_are_those_of_the_metric(enumerated):
    sweep, points = enumerated
    fused = sweep.parts @ np.array([1.0, 1.0])
    np.testing.assert_allclose(sweep.areas(np.ones(2)), auc(fused, sweep.labels))
    assert len(points) > 1000
