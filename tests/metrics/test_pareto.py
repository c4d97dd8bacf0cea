import numpy as np
import pytest

from harmonrank.metrics import hypervolume, knee, pareto_front
from harmonrank.support import UsageError


def _beaten(points):
    return [any((q >= p).all() and (q > p).any() for q in points) for p in points]


@pytest.mark.parametrize("dimensions", [1, 2, 3, 5])
def test_front_equals_comparing_all_pairs(dimensions):
    points = np.random.default_rng(dimensions).integers(0, 6, (80, dimensions))
    np.testing.assert_array_equal(pareto_front(points), ~np.array(_beaten(points)))


def test_copies_of_an_unbeaten_point_are_all_kept():
    np.testing.assert_array_equal(pareto_front([[1, 1], [1, 1], [0, 1]]), [True, True, False])


def _grid_volume(points, reference, side):
    """Count the unit cells above the reference that some point covers."""
    axes = [np.arange(r, side) for r in reference]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(reference))
    return (cells[:, None] < points[None]).all(axis=2).any(axis=1).sum()


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5])
def test_volume_equals_counting_cells(dimensions):
    rng = np.random.default_rng(dimensions)
    for _ in range(5):
        points = rng.integers(0, 7, (12, dimensions))
        reference = rng.integers(0, 3, dimensions)
        assert hypervolume(points, reference) == _grid_volume(points, reference, 7)


@pytest.mark.parametrize("dimensions", [2, 3, 5])
def test_volume_agrees_with_monte_carlo(dimensions):
    rng = np.random.default_rng(dimensions)
    points = rng.random((15, dimensions))
    drawn = rng.random((100_000, dimensions))
    share = (drawn[:, None] < points).all(axis=2).any(axis=1).mean()
    assert hypervolume(points, np.zeros(dimensions)) == pytest.approx(share, abs=0.008)


def test_beaten_points_copies_and_order_change_nothing():
    points = np.random.default_rng(0).random((20, 3))
    expected = hypervolume(points, np.zeros(3))
    more = np.concatenate([points[::-1], points * 0.5, points])
    assert hypervolume(more, np.zeros(3)) == pytest.approx(expected, rel=1e-12)


def test_points_below_the_reference_cover_nothing():
    assert hypervolume([[1, -1], [-1, 5]], [0, 0]) == 0
    assert hypervolume(np.empty((0, 2)), [0, 0]) == 0
    assert pareto_front(np.empty((0, 2))).shape == (0,)


def test_wrong_input_is_named():
    with pytest.raises(UsageError, match=r"`points` must have shape \(points, objectives\)"):
        pareto_front([1, 2])
    with pytest.raises(UsageError, match=r"`points` must be finite\. Got \[1\.0, nan\] at row 1"):
        pareto_front([[1, 2], [1, np.nan]])
    with pytest.raises(UsageError, match=r"`reference` must be one finite number per dimension"):
        hypervolume([[1, 2]], [0])
    with pytest.raises(UsageError, match=r"1 to 5 dimensions\. Got 6"):
        hypervolume(np.ones((2, 6)), np.zeros(6))


def _bend(points):
    """The knee by its definition: least and most of each coordinate among the unbeaten."""
    front = [p for p, worse in zip(points, _beaten(points), strict=True) if not worse]
    low, high = np.min(front, axis=0), np.max(front, axis=0)
    return max(((np.array(p) - low) / (high - low)).sum() for p in front)


@pytest.mark.parametrize("dimensions", [2, 3, 5])
def test_the_knee_is_unbeaten_and_keeps_most_of_what_each_coordinate_can_reach(dimensions):
    points = np.random.default_rng(dimensions).random((40, dimensions))
    result = knee(points)
    assert not _beaten(points)[result]
    front = points[pareto_front(points)]
    low, high = front.min(axis=0), front.max(axis=0)
    assert ((points[result] - low) / (high - low)).sum() == pytest.approx(_bend(points))


def test_the_knee_of_one_point_or_of_a_flat_front_is_a_point():
    assert knee([[1.0, 2.0]]) == 0
    assert knee([[1.0, 2.0], [1.0, 2.0]]) == 0
    with pytest.raises(UsageError, match="at least one point"):
        knee(np.empty((0, 2)))


def test_a_front_of_hundreds_of_points_in_five_dimensions_has_its_volume():
    rng = np.random.default_rng(1)
    points = np.abs(rng.normal(size=(250, 5)))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    drawn = rng.random((40_000, 5))
    share = (drawn[:, None] < points).all(axis=2).any(axis=1).mean()
    assert hypervolume(points, np.zeros(5)) == pytest.approx(share, abs=0.01)
