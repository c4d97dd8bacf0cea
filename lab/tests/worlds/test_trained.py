import numpy as np
import pytest

from harmonrank import world
from harmonrank.data import read_log
from harmonrank.evaluation import compare
from harmonrank.metrics import auc, best_score, logit, sigmoid
from harmonrank.support import UsageError
from harmonrank.worlds import as_frame, block_generator, simulate, world_names, world_schema
from harmonrank_lab.worlds.trained import RedrawnTruth, train_world


@pytest.fixture(scope="module")
def trained():
    return train_world("small", 0, users=300, items=100, rows=30_000)


@pytest.fixture(scope="module")
def sample(trained):
    return trained.sample(50_000, seed=1)


def test_there_are_fourteen_worlds():
    assert (
        *("elive", "qkvideo", "conflict"),
        *("backbone", "clustered", "drifting", "interactions", "leak", "nested"),
        *("requests", "skewed-lists", "tails", "three-way", "trained"),
    ) == world_names()


def test_a_part_of_the_stream_is_that_part(trained, sample):
    part = trained.sample(20_000, seed=1, start=17_003, horizon=50_000)
    rows = slice(17_003, 37_003)
    for name in ("scores", "labels", "request", "time", "truth"):
        np.testing.assert_array_equal(getattr(part, name), getattr(sample, name)[rows])
    for name, values in part.context.items():
        np.testing.assert_array_equal(values, sample.context[name][rows])
    assert (trained.sample(1000, seed=2).scores != sample.scores[:1000]).mean() > 0.9
    assert trained.sample(10, seed=1, with_truth=False).truth is None


def test_rows_of_a_request_share_their_context(trained, sample):
    for name, size in trained.context.items():
        values = sample.context[name]
        np.testing.assert_array_equal(values, values[sample.request])
        assert 0 <= values.min() <= values.max() < size


def test_truth_is_a_function_of_what_a_fusion_sees(trained, sample):
    seen = as_frame(trained, sample)
    log = read_log(seen, world_schema(trained))
    again = trained.truth(np.asarray(log.scores, dtype=float), sample.context)
    np.testing.assert_allclose(again, sample.truth, rtol=1e-9)
    assert 0 < sample.scores.min() <= sample.scores.max() < 1


def test_labels_agree_with_truth_in_every_tenth_of_it(sample):
    for y, p in zip(sample.labels.T, sample.truth.T, strict=True):
        for rows in np.array_split(np.argsort(p), 10):
            error = np.sqrt((p[rows] * (1 - p[rows])).sum())
            assert abs(y[rows].sum() - p[rows].sum()) < 4.5 * error + 1


def test_truth_stays_close_to_that_of_the_log(trained):
    drawn, z = trained.scored(block_generator(9, 0), 0)
    true, p = sigmoid(z), trained.truth(drawn.scores, drawn.context)
    np.testing.assert_allclose(p.mean(0), true.mean(0), rtol=0.15)
    for m in range(len(trained.objectives)):
        own, redrawn = auc(drawn.scores[:, m], true[:, m]), auc(p[:, m], true[:, m])
        assert own - 0.01 < redrawn < auc(true[:, m], true[:, m])


def test_errors_of_the_networks_are_shared_between_objectives(trained):
    """What independent noise rules out: one network errs for all objectives at once."""
    drawn, z = trained.scored(block_generator(9, 0), 0)
    error = np.corrcoef((logit(drawn.scores) - z).T)[np.triu_indices(5, 1)]
    assert error.mean() > 0.2


def test_no_method_is_above_the_ceiling(trained, sample):
    schema = world_schema(trained)
    train = as_frame(trained, trained.sample(30_000, seed=1, start=100_000, with_truth=False))
    board = compare(
        train, schema, ["closed-form", "logistic"], test=as_frame(trained, sample)
    ).board
    best = auc(best_score(sample.truth), sample.truth).sum()
    assert board.ceiling == pytest.approx(best)
    assert all(0 < entry.quality.regret < 0.6 for entry in board.entries)


def test_files_hold_the_ceiling(trained, tmp_path):
    summary = simulate(trained, 2000, tmp_path / "w", seed=1)
    assert summary["world"] == "small"
    assert set(summary["prevalence"]) == set(trained.objectives)


def test_the_network_finds_a_function_of_its_own_kind():
    rng = np.random.default_rng(0)
    scores, context = sigmoid(rng.normal(-4, 1, (20_000, 2))), {"c": rng.integers(0, 3, 20_000)}
    z = logit(scores)
    true = sigmoid(z + 0.5 * np.tanh(z[:, :1] + 4) * (context["c"][:, None] - 1))
    redrawn = RedrawnTruth.fit(scores, context, {"c": 3}, true, rng)(scores, context)
    assert abs(logit(redrawn) - logit(true)).mean() < 0.05


@pytest.mark.parametrize("option", [("--objectives", "is_like"), ("--drift", "1")])
def test_what_does_not_apply_is_refused_before_any_training(run, tmp_path, option):
    done = run("simulate", "trained", "--rows", 100, "-o", tmp_path / "w", *option)
    assert done.code == 2
    assert f"{option[0]} does not apply to the world 'trained'" in done.err


def test_mistakes_are_named():
    with pytest.raises(UsageError, match="Did you mean 'trained'"):
        world("trainde")
    with pytest.raises(UsageError, match="`redraw` must be a whole number from 0 up"):
        world("trained", redraw=-1)


@pytest.mark.slow
def test_redraws_of_the_preset_are_other_worlds(run, tmp_path):
    files = []
    for name, redraw in (("a", ()), ("b", ("--redraw", 1))):
        done = run("simulate", "trained", "--rows", 1000, "-o", tmp_path / name, *redraw)
        assert done.code == 0, done
        files.append((tmp_path / name / "train.parquet").read_bytes())
    assert files[0] != files[1]
