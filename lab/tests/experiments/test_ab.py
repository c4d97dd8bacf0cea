import json
from math import isnan

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harmonrank.data import hash_bits, hash_shares
from harmonrank.support import DataError, UsageError
from harmonrank.support.storage.files import to_json
from harmonrank_lab.experiments.ab import Analysis, analyse, paired_log_ratio
from harmonrank_lab.experiments.ab._checks import (
    aa_p_values,
    holm,
    log_ratio,
    moments_of,
    sample_ratio,
    two_sided_p,
)
from reference import bootstrap_log_ratios


def experiment(users=4000, lift=0.0, rate=0.05, seed=0):
    """Return impressions, outcome sums and arm of users who differ in activity and in taste."""
    rng = np.random.default_rng(seed)
    treated = rng.random(users) < 0.5
    count = 1.0 + rng.poisson(np.exp(rng.standard_normal(users)) * 5)
    taste = rate * rng.gamma(2.0, 0.5, users) * np.where(treated, 1 + lift, 1.0)
    return count, rng.binomial(count.astype(int), np.minimum(taste, 1)).astype(float), treated


def ratio_of(count, sums, treated):
    groups = np.stack([~treated, treated])
    moments = [moments_of(group[None], count, sums[:, None]) for group in groups]
    ratio, error = log_ratio(*moments)
    return ratio.item(), error.item()


def log_of(users=300, seed=0, **columns):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "user_id": rng.integers(0, users, 10 * users),
            "buy": rng.integers(0, 2, 10 * users),
            "seconds": rng.exponential(10, 10 * users),
        }
    )
    arms = pl.when(pl.col("user_id") % 2 == 0).then(pl.lit("base")).otherwise(pl.lit("new"))
    return frame.with_columns(arm=arms).with_columns(**columns)


def test_the_delta_method_gives_the_spread_of_a_bootstrap_over_users():
    count, sums, treated = experiment(lift=0.1)
    _, error = ratio_of(count, sums, treated)
    assert error == pytest.approx(bootstrap_log_ratios(count, sums, treated, 600).std(), rel=0.08)


def test_rows_as_the_unit_would_promise_too_much():
    count, sums, treated = experiment()
    row_variance = sum(1 / sums[treated == arm].sum() for arm in (True, False))
    assert ratio_of(count, sums, treated)[1] > 1.1 * np.sqrt(row_variance)


def test_intervals_cover_the_true_lift_nineteen_times_in_twenty():
    inside = []
    for seed in range(600):
        ratio, error = ratio_of(*experiment(1500, lift=0.2, seed=seed))
        inside.append(abs(ratio - np.log(1.2)) < 1.96 * error)
    # Five standard deviations of a share of 600.
    assert np.mean(inside) == pytest.approx(0.95, abs=5 * np.sqrt(0.95 * 0.05 / 600))


def test_p_values_of_experiments_without_an_effect_are_uniform():
    values = []
    for seed in range(600):
        ratio, error = ratio_of(*experiment(800, seed=seed))
        values.append(two_sided_p(ratio / error))
    assert stats.kstest(values, "uniform").pvalue > 0.001


def test_a_lift_of_the_detectable_size_is_found_four_times_in_five():
    count, sums, treated = experiment(2000, lift=0.0)
    detectable = np.exp((1.96 + 0.8416) * ratio_of(count, sums, treated)[1]) - 1
    detected = []
    for seed in range(400):
        ratio, error = ratio_of(*experiment(2000, lift=detectable, seed=seed + 1))
        detected.append(abs(ratio) > 1.96 * error)
    assert np.mean(detected) == pytest.approx(0.8, abs=0.1)


def test_paired_error_is_that_of_a_bootstrap_over_users_who_saw_both():
    rng = np.random.default_rng(0)
    base = rng.gamma(1.0, 1.0, (3000, 1))
    treated = base * (1.05 + 0.1 * rng.standard_normal((3000, 1)))
    ratio, error = paired_log_ratio(base, treated)
    drawn = rng.integers(0, 3000, (500, 3000))
    again = np.log(treated[drawn, 0].sum(axis=1) / base[drawn, 0].sum(axis=1))
    assert ratio.item() == pytest.approx(np.log(1.05), abs=0.01)
    assert error.item() == pytest.approx(again.std(), rel=0.1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_only_raises_p_values_and_keeps_their_order(values):
    adjusted = holm(values)
    assert all(a >= p for a, p in zip(adjusted, values, strict=True))
    order = np.argsort(values, kind="stable")
    assert np.all(np.diff(np.array(adjusted)[order]) >= 0)
    assert adjusted[order[0]] == pytest.approx(min(1.0, len(values) * min(values)))


def test_a_hash_splits_evenly_and_another_salt_splits_independently():
    users = np.arange(100_000)
    one, other = hash_shares(users, "a"), hash_shares(users, "b")
    assert stats.kstest(one, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.015
    bits = hash_bits(users[:20_000], "aa", 100)
    assert np.all(np.abs(bits.mean(axis=0) - 0.5) < 0.02)
    assert np.abs(np.corrcoef(bits.T) - np.eye(100)).max() < 0.04


def test_halving_one_arm_gives_the_p_values_of_comparing_its_halves():
    count, sums, _ = experiment(500)
    p_values = aa_p_values(count, sums[:, None], splits=3)
    halves = hash_bits(np.arange(500), "aa", 3)
    for split in range(3):
        ratio, error = ratio_of(count, sums, halves[:, split] == 1)
        assert p_values[split, 0] == pytest.approx(two_sided_p(ratio / error))


def test_halves_of_the_control_differ_one_time_in_twenty():
    count, sums, _ = experiment(5000)
    values = aa_p_values(count, sums[:, None], splits=2000)[:, 0]
    assert np.mean(values < 0.05) == pytest.approx(0.05, abs=0.02)


def test_sample_ratio_alarms_at_one_in_a_thousand():
    even = [sample_ratio({"a": int(n), "b": 10_000 - int(n)}, None) for n in range(4800, 5200)]
    for result in even:
        assert result.alarm == (stats.chisquare(list(result.users.values())).pvalue < 0.001)
    assert not sample_ratio({"a": 9000, "b": 1000}, {"a": 9, "b": 1}).alarm
    assert sample_ratio({"a": 9000, "b": 1000}, None).alarm


def test_an_analysis_is_that_of_sums_by_user():
    log = log_of()
    analysis = analyse(log, outcomes=["buy", "seconds"])
    by_user = log.group_by("user_id", "arm").agg(pl.len().alias("n"), pl.col("seconds").sum())
    treated = (by_user["arm"] == "new").to_numpy()
    columns = by_user["n"].to_numpy().astype(float), by_user["seconds"].to_numpy()
    ratio, error = ratio_of(*columns, treated)
    lift = analysis.lift("new", "seconds")
    assert lift.lift == pytest.approx(100 * (np.exp(ratio) - 1))
    assert lift.low == pytest.approx(100 * (np.exp(ratio - 1.959964 * error) - 1))
    assert lift.p == pytest.approx(two_sided_p(ratio / error))
    assert analysis.mean("base", "seconds").mean == pytest.approx(
        log.filter(pl.col("arm") == "base")["seconds"].mean()
    )
    assert analysis.control == "base"


def test_rows_that_stand_for_many_impressions_give_the_same():
    log = log_of()
    daily = log.group_by("user_id", "arm").agg(pl.len().alias("shown"), pl.col("buy").sum())
    one = analyse(log, outcomes=["buy"])
    other = analyse(daily, outcomes=["buy"], impressions="shown")
    assert one.lifts[0].lift == pytest.approx(other.lifts[0].lift)
    assert one.lifts[0].p == pytest.approx(other.lifts[0].p)
    assert one.aa == other.aa


def test_per_user_divides_by_users():
    log = log_of()
    mean = analyse(log, outcomes=["buy"], per="user").mean("new", "buy")
    new = log.filter(pl.col("arm") == "new")
    assert mean.mean == pytest.approx(new["buy"].sum() / new["user_id"].n_unique())


def test_the_order_of_rows_does_not_matter():
    log = log_of()
    one = analyse(log, outcomes=["buy"])
    assert analyse(log.sample(fraction=1, shuffle=True, seed=1), outcomes=["buy"]) == one


def test_users_of_two_arms_are_counted_and_left_out():
    log = log_of()
    crossing = log.head(5).with_columns(arm=pl.lit("new"), user_id=pl.lit(0, pl.Int64))
    kept = analyse(log.filter(pl.col("user_id") != 0), outcomes=["buy"])
    mixed = analyse(pl.concat([log, crossing]), outcomes=["buy"])
    assert mixed.crossed_users == 1
    assert mixed.lifts == kept.lifts


def test_rows_without_a_user_or_an_arm_are_counted_and_left_out():
    log = log_of()
    lost = log.head(3).with_columns(user_id=pl.lit(None, pl.Int64))
    mixed = analyse(pl.concat([log, lost]), outcomes=["buy"])
    assert mixed.skipped_rows == 3
    assert mixed.lifts == analyse(log, outcomes=["buy"]).lifts


def test_an_aa_arm_does_not_count_in_the_adjustment():
    third = pl.col("user_id") % 3
    arms = pl.when(third == 0).then(pl.lit("base")).when(third == 1).then(pl.lit("again"))
    log = log_of(arm=arms.otherwise(pl.lit("new")))
    analysis = analyse(log, outcomes=["buy"], aa_arm="again")
    assert isnan(analysis.lift("again", "buy").p_holm)
    assert analysis.lift("new", "buy").p_holm == analysis.lift("new", "buy").p


def test_an_outcome_that_never_came_has_no_lift():
    log = log_of().with_columns(
        buy=pl.when(pl.col("arm") == "new").then(0).otherwise(pl.col("buy"))
    )
    lift = analyse(log, outcomes=["buy"]).lifts[0]
    assert isnan(lift.lift)
    assert isnan(lift.p)


def test_an_analysis_survives_json():
    zero = pl.lit(0).alias("never")
    analysis = analyse(log_of().with_columns(zero), outcomes=["buy", "never"])
    again = Analysis.from_dict(json.loads(to_json(analysis.to_dict())))
    assert to_json(again.to_dict()) == to_json(analysis.to_dict())
    assert again.sample_ratio == analysis.sample_ratio
    assert isnan(again.lift("new", "never").lift)


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_every_kind_of_file_gives_the_same(tmp_path, ending):
    path, log = tmp_path / f"log.{ending}", log_of()
    getattr(log, {"arrow": "write_ipc"}.get(ending, f"write_{ending}"))(path)
    one, other = analyse(path, outcomes=["buy"]), analyse(log, outcomes=["buy"])
    assert one.lifts[0].lift == pytest.approx(other.lifts[0].lift)
    assert one.sample_ratio == other.sample_ratio


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_that_is_read_in_pieces_gives_the_same(tmp_path, monkeypatch, ending):
    path, log = tmp_path / f"log.{ending}", log_of()
    getattr(log, {"arrow": "write_ipc"}.get(ending, f"write_{ending}"))(path)
    whole = analyse(path, outcomes=["buy"])
    monkeypatch.setattr("harmonrank_lab.experiments.ab._read._PIECE_ROWS", 170)
    assert analyse(path, outcomes=["buy"]) == whole


def test_a_csv_may_have_ids_and_arms_that_look_like_numbers_only_at_first(tmp_path):
    lines = [f"{i:05d},{i % 2},{i % 3}" for i in range(20_000)] + ["x1,0,0.5", "x2,1,1e3"]
    (tmp_path / "log.csv").write_text("user_id,arm,buy\n" + "\n".join(lines))
    analysis = analyse(tmp_path / "log.csv", outcomes=["buy"])
    assert analysis.arms == ("0", "1")
    assert sum(analysis.sample_ratio.users.values()) == 20_002


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        ({"arm": pl.lit("base")}, {}, "at least two arms"),
        ({"buy": pl.lit("yes")}, {}, "'buy' must be a number or true/false. Got type String"),
        (
            {"buy": pl.lit(None, pl.Int64)},
            {},
            "outcome 'buy' is null, nan or infinite for 300 users",
        ),
        ({"user_id": pl.lit(None, pl.Int64)}, {}, "no row with a user and an arm"),
        ({"n": pl.lit(-1)}, {"impressions": "n"}, "'n' must be numbers from 0 up"),
    ],
)
def test_a_log_that_cannot_be_analysed_is_refused_with_a_reason(change, options, sentence):
    with pytest.raises(DataError, match=sentence):
        analyse(log_of(**change), outcomes=["buy"], **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"control": "bass"}, "Did you mean 'base'?"),
        ({"aa_arm": "base"}, "There is no A/A arm 'base'"),
        ({"per": "row"}, "`per` must be 'impression' or 'user'"),
        ({"level": 95}, "`level` must be inside"),
        ({"split": {"base": 1}}, "must give each arm"),
        ({"split": {"base": 1, "new": 0}}, "a part above 0"),
        ({"split": {"base": 1e308, "new": 1e308}}, r"a part above 0 up to 1e\+100"),
        ({"outcomes": []}, "at least one outcome"),
        ({"outcomes": ["buy", "buy"]}, "each another column"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options, sentence):
    with pytest.raises(UsageError, match=sentence.replace("?", r"\?")):
        analyse(log_of(), **{"outcomes": ["buy"], **options})


def test_the_interval_of_a_change_is_that_of_a_bootstrap_over_users():
    rng = np.random.default_rng(8)
    users = np.arange(800)
    sums = rng.exponential(1 + (users % 2), 800)
    log = pl.DataFrame({"user_id": users, "arm": np.where(users % 2, "new", "base"), "y": sums})
    lift = analyse(log, outcomes=["y"], per="user").lift("new", "y")
    groups = sums[users % 2 == 1], sums[users % 2 == 0]
    drawn = [rng.choice(g, (4000, 400)).mean(axis=1) for g in groups]
    low, high = np.quantile(drawn[0] - drawn[1], [0.025, 0.975])
    assert lift.change == pytest.approx(groups[0].mean() - groups[1].mean())
    assert (lift.change_low, lift.change_high) == pytest.approx((low, high), abs=0.02)


def test_a_verdict_needs_what_holds_and_follows_what_is_wanted():
    rng = np.random.default_rng(9)
    arm = np.repeat(["base", "new", "again"], 400)
    shift = np.where(arm == "new", 0.5, 0)
    log = pl.DataFrame(
        {
            "user_id": np.arange(1200),
            "arm": arm,
            "up": rng.normal(3 + shift, 1),
            "down": rng.normal(3 - shift, 1),
            "same": rng.normal(3, 1, 1200),
        }
    )
    names = ["up", "down", "same"]
    analysis = analyse(log, outcomes=names, unwanted=["down"], aa_arm="again", control="base")
    assert [analysis.lift("new", n).verdict for n in names] == ["better", "better", "unclear"]
    assert {analysis.lift("again", n).verdict for n in names} == {"A/A"}
    other = analyse(log, outcomes=names, unwanted=["up"], aa_arm="again", control="base")
    assert [other.lift("new", n).verdict for n in names] == ["worse", "worse", "unclear"]
