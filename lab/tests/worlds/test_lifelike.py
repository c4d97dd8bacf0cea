"""Each world that does not flatter has what its name says."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from harmonrank.metrics import auc, best_score, logit
from harmonrank.worlds import world
from harmonrank_lab.worlds import logs_of, simulate

ROWS = 100_000
REDRAWS = (None, 1)
LIFELIKE = ("clustered", "drifting", "three-way", "nested", "skewed-lists")


def excess_of_squares(residual, variance, group):
    """Return how far squared sums over groups exceed what independent rows have, per row, and z."""
    sums, usual = (np.bincount(group, values) for values in (residual, variance))
    gap = sums**2 - usual
    return gap.sum() / len(residual), gap.sum() / np.sqrt((gap**2).sum())


@pytest.mark.parametrize("name", LIFELIKE)
def test_the_auc_of_the_best_score_is_that_of_labels(name):
    sample = world(name).sample(4 * ROWS, seed=2)
    best = best_score(sample.truth)
    for m in range(5):
        y = sample.labels[:, [m]]
        error = 0.6 / np.sqrt(y.sum())
        assert auc(best, y)[0] == pytest.approx(auc(best, sample.truth[:, [m]])[0], abs=4 * error)


@pytest.mark.parametrize("redraw", REDRAWS)
def test_labels_of_a_user_and_of_a_request_depend_on_each_other_in_clustered(redraw):
    place = world("clustered", redraw=redraw)
    sample = place.sample(3 * ROWS, seed=1)
    for m in (3, 4):
        p = sample.truth[:, m]
        residual, variance = sample.labels[:, m] - p, p * (1 - p)
        _, requests = np.unique(sample.request, return_inverse=True)
        for group in (requests, place.users.of(sample.request)):
            assert excess_of_squares(residual, variance, group)[1] > 4
    plain = world("elive", redraw=redraw).sample(3 * ROWS, seed=1)
    p = plain.truth[:, 4]
    residual, (_, group) = plain.labels[:, 4] - p, np.unique(plain.request, return_inverse=True)
    assert abs(excess_of_squares(residual, p * (1 - p), group)[1]) < 3


@pytest.mark.parametrize("redraw", REDRAWS)
def test_scores_say_nothing_of_the_effects_of_clustered(redraw):
    place = world("clustered", redraw=redraw)
    quiet = replace(place.requests, hidden=0 * place.requests.hidden)
    a, b = (w.sample(ROWS, seed=1) for w in (place, replace(place, requests=quiet)))
    np.testing.assert_array_equal(a.scores, b.scores)
    assert (a.labels != b.labels).mean() > 0.01


@pytest.mark.parametrize("name", ["clustered", "skewed-lists"])
def test_the_truth_is_the_mean_over_what_is_hidden(name):
    place = world(name)
    sample = place.sample(500, seed=1)
    x, w = np.polynomial.hermite_e.hermegauss(40)
    given = [replace(place, hidden_at=node).sample(500, seed=1).truth for node in x]
    np.testing.assert_allclose(np.tensordot(w / w.sum(), given, 1), sample.truth, rtol=1e-8)


def test_users_come_back_some_far_more_often_and_keep_their_columns():
    place = world("clustered")
    first, later = (place.sample(ROWS, seed=1, start=start) for start in (0, 3 * ROWS))
    users = [place.users.of(sample.request) for sample in (first, later)]
    requests = [
        np.bincount(place.users.of(np.unique(s.request)), minlength=1000) for s in (first, later)
    ]
    assert np.isin(users[1], users[0]).mean() > 0.95
    assert requests[0].max() > 4 * np.median(requests[0]) > 4
    for name in place.users.columns:
        of_user = np.zeros(1000, int)
        for user, sample in zip(users, (first, later), strict=True):
            of_user[user] = sample.context[name]
        for user, sample in zip(users, (first, later), strict=True):
            np.testing.assert_array_equal(of_user[user], sample.context[name])
    hours = first.context["hour"][users[0] == users[0][0]]
    assert len(np.unique(hours)) > 1


@pytest.mark.parametrize("redraw", REDRAWS)
def test_upstream_does_not_follow_the_drift(redraw):
    place = world("drifting", redraw=redraw)
    a, b = (w.sample(ROWS, seed=1) for w in (place, replace(place, drift=None)))
    np.testing.assert_array_equal(a.scores, b.scores)
    start, late = a.time < 0.02, a.time > 0.8
    np.testing.assert_allclose(a.truth[start].mean(0), b.truth[start].mean(0), rtol=0.05)
    moved = logit(a.truth[late]) - logit(b.truth[late])
    # All rows of a context move alike, and contexts apart.
    assert (abs(moved.mean(0)) > 0.05).sum() >= 3
    assert (moved.std(0) > 0.2).all()


@pytest.mark.parametrize("redraw", REDRAWS)
def test_effects_of_three_inputs_are_no_sum_of_effects_of_two(redraw):
    place = world("three-way", redraw=redraw)
    parts = place.interactions
    rng = np.random.default_rng(0)
    deviation = rng.standard_normal((400, 5)) * parts.spread
    here = {name: np.zeros(400, int) for name in place.context}

    def h(context, scores):
        return parts.at(deviation * scores, {**here, **context})

    def mixed(changes):
        """Differences in three inputs at once; those of sums of two inputs vanish."""
        total = 0.0
        for corner in np.ndindex(2, 2, 2):
            context, scores = {}, np.ones(5)
            for on, change in zip(corner, changes, strict=True):
                if isinstance(change, str):
                    context[change] = np.full(400, on)
                else:
                    scores[change] = on
            total = total + (-1) ** sum(corner) * h(context, scores)
        return np.sqrt((total**2).mean())

    assert mixed((*parts.pairs[0], "age")) > 0.03
    assert mixed((0, "age", "region")) > 0.1
    assert mixed((0, 1, 2)) == pytest.approx(0, abs=1e-12)
    assert mixed(("age", "gender", "region")) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("redraw", REDRAWS)
def test_cities_lie_in_regions_and_mostly_share_their_effects(redraw):
    place = world("nested", redraw=redraw)
    sample = place.sample(ROWS, seed=1)
    city, region = sample.context["city"], sample.context["region"]
    parent = np.full(5000, -1)
    parent[city] = region
    np.testing.assert_array_equal(parent[city], region)
    counts = np.sort(np.bincount(city, minlength=5000))[::-1]
    assert counts[:50].sum() > 0.2 * ROWS
    assert np.median(counts) < 20
    _, codes = place.nested["city"]
    effect, share = place.mu.effects["city"], place.categories["city"]
    size = np.bincount(codes, share)[:, None]
    of_region = np.stack([np.bincount(codes, share * e) for e in effect.T], axis=1) / size
    between, whole = of_region[codes], effect - share @ effect
    assert (share @ between**2 > 0.1 * (share @ whole**2)).all()
    assert (share @ (effect - between) ** 2 > 0.02).all()


@pytest.mark.parametrize("redraw", REDRAWS)
def test_lists_are_long_have_item_columns_and_about_one_click(redraw):
    place = world("skewed-lists", redraw=redraw)
    sample = place.sample(ROWS, seed=1)
    starts = np.flatnonzero(np.diff(sample.request, prepend=-1))
    assert 1000 < len(starts) < 3000
    clicks = np.add.reduceat(sample.labels[:, 0].astype(int), starts)
    assert 0.7 < clicks.mean() < 1.3
    same = {name: (np.diff(sample.context[name]) == 0).mean() for name in place.item_columns}
    assert same["stars"] < 0.5 < same["place"] < 0.9
    assert (np.diff(sample.context["platform"]) != 0).mean() < 0.03
    # Upstream knows most of what the columns tell: the offset takes off the rest.
    for name in place.item_columns:
        known = 1 + place.b.effects[name] / (place.a * place.mu.effects[name])
        assert ((known > 0.6) & (known < 0.95)).all()


def test_written_logs_tell_users_and_time(tmp_path):
    simulate(world("clustered"), 2000, tmp_path / "a", seed=1)
    simulate(world("drifting"), 2000, tmp_path / "b", seed=1)
    users = [pl.read_parquet(tmp_path / "a" / f"{part}.parquet") for part in ("train", "test")]
    assert users[1]["user_id"].is_in(users[0]["user_id"].to_list()).mean() > 0.01
    assert 'user = "user_id"' in (tmp_path / "a" / "schema.toml").read_text()
    assert "user" not in (tmp_path / "b" / "schema.toml").read_text()
    times = [
        pl.read_parquet(tmp_path / "b" / f"{part}.parquet")["time"]
        for part in ("train", "valid", "test")
    ]
    assert times[0].max() <= times[1].min() <= times[1].max() <= times[2].min() < 1
    assert 'time = "time"' in (tmp_path / "b" / "schema.toml").read_text()


def test_the_log_of_a_world_that_drifts_tells_its_time_and_no_other_does():
    train, _, test = logs_of(world("drifting"), 4000, 1)
    assert train.schema.time == "time"
    assert train.time.max() <= test.time.min()
    assert logs_of(world("elive"), 4000, 1)[0].time is None
