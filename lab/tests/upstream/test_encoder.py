import numpy as np
import polars as pl

from harmonrank.support.storage.stored import restored, stored
from harmonrank_lab.upstream.encoder import Encoder
from harmonrank_lab.upstream.side import IdCodes
from harmonrank_lab.upstream.stream import Folds, RowStream


def test_ids_have_rows_of_their_own_until_there_are_too_many():
    ids, counts = np.arange(100), np.arange(100)
    own = IdCodes.fit(ids, counts, most=100)
    assert sorted(own.encode(ids)) == list(range(1, 101))
    assert own.encode(np.array([-5, 100, 10**12])).tolist() == [0, 0, 0]
    few = IdCodes.fit(ids, counts, most=40)
    codes = few.encode(np.append(ids, 10**12))
    assert few.slots == 41
    assert len(set(codes[70:100])) == 30
    assert codes[:70].min() > 30
    assert codes[-1] > 30


def test_ids_that_lie_far_apart_are_found_too():
    ids = np.array([-(10**15), 3, 10**17])
    codes = IdCodes(ids)
    assert codes.encode(np.array([10**17, 4, 3, -(10**15)])).tolist() == [3, 0, 2, 1]


def test_fields_own_disjoint_rows_of_the_table(log):
    encoder = Encoder.fit(log, 1 << 20)
    frame = pl.concat(log.batches("train"))
    rows = encoder.rows(frame)
    columns = [*encoder.sides[0].codes.T, *encoder.sides[1].codes.T, *rows.context.T]
    seen = [set(column) for column in columns]
    assert sum(map(len, seen)) == len(set.union(*seen))
    assert max(map(max, seen)) < len(encoder.counts["train"])


def test_counts_are_the_rows_that_touch_each_row_of_the_table(log):
    parts = ("train", "valid")
    encoder = Encoder.fit(log, 1 << 20, parts)
    for part in parts:
        rows = encoder.rows(pl.concat(log.batches(part)))
        sides = [side.codes[rows.keys[:, s]] for s, side in enumerate(encoder.sides)]
        codes = np.concatenate([*sides, rows.context], axis=1)
        expected = np.bincount(codes.ravel(), minlength=len(encoder.counts[part]))
        np.testing.assert_allclose(encoder.counts[part], expected)
    both = encoder.counts["train"] + encoder.counts["valid"]
    np.testing.assert_array_equal(encoder.layout_of(*parts).counts, both)


def test_ids_that_only_validation_rows_have_get_rows_where_networks_learn_from_those(log):
    both, train = Encoder.fit(log, 1 << 20, ("train", "valid")), Encoder.fit(log, 1 << 20)
    seen = {p: set(pl.concat(log.batches(p))["video_id"]) for p in ("train", "valid")}
    assert set(train.items.id.known) == seen["train"]
    assert set(both.items.id.known) == seen["train"] | seen["valid"]


def test_an_unknown_user_has_no_codes_but_the_unknown_ones(log):
    encoder = Encoder.fit(log, 1 << 20)
    frame = next(log.batches("train")).head(1).with_columns(user_id=pl.lit(-7, pl.Int64))
    key = encoder.rows(frame).keys[0, 0]
    starts = np.cumsum([0, *encoder.users.slots[:-1]])
    np.testing.assert_array_equal(encoder.sides[0].codes[key], starts)


def test_an_encoder_survives_being_stored(log):
    encoder = Encoder.fit(log, 1 << 20)
    again = restored(Encoder, *stored(encoder))
    again.check()
    frame = next(log.batches("valid"))
    first, second = encoder.rows(frame), again.rows(frame)
    np.testing.assert_array_equal(first.keys, second.keys)
    np.testing.assert_array_equal(first.context, second.context)
    np.testing.assert_array_equal(encoder.layout.codes.flat, again.layout.codes.flat)


def test_a_stream_yields_every_row_once_in_an_order_of_its_epoch(log):
    encoder = Encoder.fit(log, 1 << 20)
    stream = RowStream(log, encoder, pool_rows=1000)
    whole = encoder.rows(pl.concat(log.batches("train")))

    def order(epoch):
        pools = list(stream.epoch(0, epoch))
        return np.concatenate([np.hstack([p.keys, p.context]) for p in pools])

    first = order(0)
    np.testing.assert_array_equal(first, order(0))
    assert (first != order(1)).any()
    plain = np.hstack([whole.keys, whole.context])
    np.testing.assert_array_equal(sorted(map(tuple, first)), sorted(map(tuple, plain)))


def test_a_stream_takes_the_parts_it_is_given(log):
    stream = RowStream(log, Encoder.fit(log, 1 << 20), 3000, parts=("train", "valid"))
    assert stream.rows == log.rows["train"] + log.rows["valid"]
    pools = list(stream.epoch(0, 0))
    labels = sum(pool.labels.sum(axis=0) for pool in pools)
    positives = (log.manifest["positives"][part] for part in ("train", "valid"))
    expected = np.sum([list(counts.values()) for counts in positives], axis=0)
    np.testing.assert_array_equal(labels, expected)


def test_a_stream_leaves_out_exactly_one_fold(log):
    encoder = Encoder.fit(log, 1 << 20)
    for by in ("user", "time"):
        folds = Folds.of_log(log, 4, by)
        of = folds.of(pl.concat(log.batches("train")))
        for k in range(4):
            stream = RowStream(log, encoder, 1 << 20, folds, without=k)
            assert sum(map(len, stream.epoch(0, 0))) == (of != k).sum()
        assert np.bincount(of, minlength=4).min() > len(of) / 8


def test_folds_by_user_keep_a_user_together_and_by_time_a_block(log):
    frame = pl.concat(log.batches("train"))
    by_user = Folds.of_log(log, 5, "user").of(frame)
    assert frame.with_columns(f=by_user).group_by("user_id").agg(pl.n_unique("f"))["f"].max() == 1
    by_time = Folds.of_log(log, 5).of(frame.sort("time_ms"))
    assert (np.diff(by_time) >= 0).all()
