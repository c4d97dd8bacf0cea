import numpy as np
import pytest
from batches import CONFLICT, SCHEMA, SWAPPED, batch, check_learner, hour, restored, stored

from harmonrank.fusion.harmonrank import HarmonRank
from harmonrank.fusion.quality.quality import ceiling_of
from harmonrank.metrics import auc
from harmonrank.streaming import LearnerSettings, new_learner
from harmonrank.support import DataError, UsageError


def learner(**settings):
    return new_learner("harmonrank", {}, SCHEMA, LearnerSettings(**settings))


def regret(model, test):
    ceiling = ceiling_of(test, np.ones(len(SCHEMA.names)))
    return ceiling - auc(model.score(test), test.truth).sum()


def streamed(begun, batches, first=0):
    for number, rows in enumerate(batches, first):
        begun = begun.learned(rows, seed=0, at=hour(number))
    return begun


@pytest.mark.parametrize(("opening_rows", "batches"), [(1_000_000, 2), (6_000, 3)])
def test_it_is_a_value_that_repeats_itself_and_is_saved_exactly(opening_rows, batches, tmp_path):
    # The reservoir overflows in the second batch.
    check_learner(learner(opening_rows=opening_rows, reservoir_rows=8000), tmp_path, batches)


def test_while_rows_are_few_it_is_the_batch_fit_to_the_bit():
    rows = batch(1, 20_000)
    cut = int(np.searchsorted(rows.request, 500))  # A batch holds whole requests.
    halves = [rows.take(np.arange(cut)), rows.take(np.arange(cut, 20_000))]
    test = batch(2, 500)
    scores = streamed(learner(), halves).model.score(test)
    assert np.array_equal(scores, HarmonRank().fit(rows, SCHEMA).score(test))


def test_without_forgetting_it_ends_where_the_batch_fit_does():
    rows, test = batch(1, 100_000), batch(2, 60_000)
    parts = [rows.take(part) for part in np.array_split(np.arange(rows.rows), 5)]
    learned = streamed(learner(opening_rows=20_000, half_life="never"), parts)
    whole = HarmonRank().fit(rows, SCHEMA)
    first = HarmonRank().fit(parts[0], SCHEMA)
    assert learned.continuation is not None
    assert abs(regret(learned.model, test) - regret(whole, test)) < 0.0005
    assert regret(learned.model, test) < regret(first, test) - 0.004
    logits = [np.log(p / (1 - p)) for p in (m.probabilities(test) for m in (learned.model, whole))]
    apart = np.sqrt(((logits[0] - logits[1]) ** 2).mean(axis=0)) / logits[1].std(axis=0)
    assert apart[1:].max() < 0.04
    # Purchases, of which the first part has some twenty.
    assert apart[0] < 0.12


def test_old_hours_fade_where_the_world_has_changed():
    def mixed_up(seed, rows=8000):
        # As if two upstream models had taken each other's place.
        log = batch(seed, rows)
        return log.with_scores(log.scores[:, [0, 2, 1, 3, 4]])

    hours = [*(batch(n, 8000) for n in range(2)), *(mixed_up(10 + n) for n in range(2))]
    begun = {life: learner(opening_rows=8000, half_life=life) for life in ("never", 0.3)}
    by_half_life = {life: streamed(one, hours).model for life, one in begun.items()}
    test = mixed_up(30, 40_000)
    assert regret(by_half_life[0.3], test) < regret(by_half_life["never"], test) - 0.01


def test_the_likelihood_of_new_rows_chooses_the_half_life():
    steady = streamed(learner(opening_rows=10_000), [batch(n, 10_000) for n in range(4)])
    assert None is steady.facts()["half_life_hours"] is None
    places = [CONFLICT.with_upstream(CONFLICT.objectives, a=0.5 + n % 3) for n in range(6)]
    # A day between batches, and a world that is another one every day.
    moving = learner(opening_rows=10_000)
    for n, place in enumerate(places):
        moving = moving.learned(batch(n, 10_000, place), seed=0, at=hour(24 * n))
    assert moving.facts()["half_life_hours"] < 200


def test_context_values_that_come_later_are_learned():
    rows = batch(1, 60_000)
    name = rows.context.columns[0]
    values = rows.context[name].unique().sort()
    late = (rows.context[name] == values[-1]).to_numpy()
    parts = [rows.take(np.flatnonzero(~late)), rows.take(np.flatnonzero(late))]
    learned = streamed(learner(opening_rows=10_000, half_life="never"), parts)
    whole = HarmonRank().fit(rows, SCHEMA)
    assert learned.model.fitted.encoder.slots == whole.fitted.encoder.slots
    test = batch(2, 50_000)
    assert abs(regret(learned.model, test) - regret(whole, test)) < 0.002


def test_after_an_upstream_swap_it_goes_on_without_labels_and_then_with_them():
    learned = streamed(learner(opening_rows=20_000), [batch(n, 20_000) for n in range(3)])
    test, fresh = batch(40, 60_000, SWAPPED), batch(41, 20_000, SWAPPED)
    told = learned.recalibrated(fresh)
    gained = regret(learned.model, test) - regret(told.model, test)
    assert gained > 0.9 * (regret(learned.model, test) - regret(learned.model, batch(42, 60_000)))
    later = told.learned(fresh, seed=0, at=hour(4))
    assert regret(later.model, test) < regret(told.model, test) + 0.001


def test_rows_with_missing_scores_are_learned():
    def with_gaps(seed, rows=20_000):
        log = batch(seed, rows)
        scores = log.scores.copy()
        scores[np.random.default_rng(seed).random(scores.shape) < 0.2] = np.nan
        return log.with_scores(scores)

    parts = [with_gaps(n) for n in range(4)]
    learned = streamed(learner(opening_rows=20_000, half_life="never"), parts)
    test = batch(50, 60_000)
    first = HarmonRank().fit(parts[0], SCHEMA)
    assert regret(learned.model, test) < regret(first, test) - 0.002


def test_what_is_damaged_is_refused(tmp_path):
    one = stored(streamed(learner(opening_rows=6000), [batch(0), batch(1)]), tmp_path)
    for path in sorted(p for p in tmp_path.rglob("*") if p.is_file()):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(DataError, match="checksum|not JSON"):
            restored(tmp_path, one.recipe)
        path.write_bytes(whole)
    with pytest.raises(UsageError, match="half_life"):
        LearnerSettings(half_life=-1.0)
