"""Bootstrap of the AUC within requests: whole requests are drawn again, their AUCs are not."""

import numpy as np
from numpy.typing import ArrayLike

from harmonrank.metrics._bootstrap import poisson_weights
from harmonrank.metrics._expected import expected_requests
from harmonrank.metrics._grouped import request_areas, unit_sums
from harmonrank.metrics._inputs import FloatArray
from harmonrank.metrics._outcomes import Outcomes


def bootstrap_request_areas(
    scores: ArrayLike,
    labels: ArrayLike | Outcomes,
    groups: ArrayLike,
    *,
    expected: bool = False,
    sample_weight: ArrayLike | None = None,
    units: ArrayLike | None = None,
    replicates: int = 200,
    seed: int = 0,
) -> FloatArray:
    """Return each objective's AUC within requests on many resampled logs, (replicates, M).

    A replicate has every request as often as a Poisson(1) number says, so it is
    Σ_g c_g a_g AUC_gm/Σ_g c_g a_g over the requests that have an AUC. A seed stands for the same
    requests whatever the scores, so differences of results are paired. It is nan where no usable
    request was drawn.

    Args:
        scores: (n,), finite.
        labels: (n, M) or (n,).
        groups: (n,) request ids.
        expected: Labels are true probabilities: it is `expected_grouped_auc` that is resampled.
        sample_weight: (n,), of labels.
        units: (n,) what is drawn with all its requests, such as the user of each row; requests if
            left out.
        replicates: How many logs.
        seed: Of the draws.

    >>> bootstrap_request_areas([1, 2] * 50, [0, 1] * 50, np.arange(100) // 2, replicates=2)
    array([[1.],
           [1.]])
    """
    if expected:
        won, say = expected_requests(scores, labels, groups)  # type: ignore[arg-type]
    else:
        area, rows, pairs = request_areas(scores, labels, groups, sample_weight)
        say = rows * (pairs > 0)
        won = say * area
    both = unit_sums(np.hstack([won, say]), groups, units)
    draws = poisson_weights(len(both), replicates, seed)
    sums = np.array([drawn @ both for drawn in draws])
    won, say = np.hsplit(sums, 2)
    areas = np.full(won.shape, np.nan)
    np.divide(won, say, out=areas, where=say > 0)
    return areas
