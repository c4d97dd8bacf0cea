"""Position bias: regret of fits that ignore it, that correct for it, and that never had it.

    python benchmarks/position.py --json benchmarks/results/position.json

Rows of a world are shown one below the other in the order of the first objective's score, and place
k is looked at with chance 1/log₂(1 + k)^power; rows that are not looked at have no feedback. Regret
is by the exact probabilities of all rows, whether they were looked at or not. `naive` ignores the
column of places, `corrected` estimates the curve from the same rows, `given` is told the true one,
and `all seen` learns from the feedback of all rows, which no log has.
"""

from itertools import product

import numpy as np
from store import Rows, options

from harmonrank.data import Schema, chances_at, read_log
from harmonrank.fusion import method_class, quality_of
from harmonrank.worlds import as_frame, world, world_schema
from harmonrank_lab.worlds import POSITION, examination_curve, with_places


def measure(name: str, power: float, rows: int, seed: int, methods: list[str]) -> dict:
    place = world(name)
    samples = [place.sample(rows, seed=seed, start=start) for start in (0, rows)]
    whole = [as_frame(place, sample) for sample in samples]
    train = with_places(whole[0], place, samples[0], power, seed=seed)
    plain, curve = world_schema(place), examination_curve(power, 30)
    test = read_log(whole[1], plain)

    def schema(**parts: object) -> Schema:
        return Schema(plain.objectives, plain.context, plain.request, **parts)

    ways = {
        "naive": (train, schema()),
        "corrected": (train, schema(position=POSITION)),
        "given": (train, schema(position=POSITION, examination=curve)),
        "all seen": (whole[0], schema()),
    }
    regret: dict[str, dict[str, float]] = {method: {} for method in methods}
    estimated: dict[int, float] = {}
    for method, (way, (table, columns)) in product(methods, ways.items()):
        model = method_class(method)().fit(table, columns, seed=seed)
        if way == "corrected":
            estimated = dict(model.schema.examination)
        quality = quality_of(model.score(whole[1]), test, plain.weight_vector)
        regret[method][way] = quality.regret
    at = np.array(list(estimated))
    errors = abs(chances_at(estimated, at) / chances_at(curve, at) - 1)
    result = {"world": name, "rows": rows, "power": power, "seed": seed, "regret": regret}
    return result | {
        "examination": {str(k): v for k, v in estimated.items()},
        "largest_relative_error": float(errors.max()),
        "ratio": {m: r["corrected"] / r["naive"] for m, r in regret.items()},
    }


if __name__ == "__main__":
    given = options(
        __doc__, rows=100_000, seeds=[0], worlds=["conflict", "elive", "qkvideo", "tails"],
        powers=[1.0, 2.0], methods=["harmonrank"],
    )  # fmt: skip
    results = Rows(given.json, ("world", "rows", "power", "seed"))
    for name, power, seed in product(given.worlds, given.powers, given.seeds):
        results.add(measure(name, power, given.rows, seed, given.methods))
