"""Position bias: regret of fits that ignore it, that correct for it, and that never had it.

    python benchmarks/position.py --json benchmarks/results/position.json
    python benchmarks/position.py --worlds tails --powers 1 --rows 400000 --add \
        --json benchmarks/results/position.json

Rows of a world are shown one below the other in the order of the first objective's score, and place
k is looked at with chance 1/log₂(1 + k)^power; rows that are not looked at have no feedback. Regret
is by the exact probabilities of all rows, whether they were looked at or not. `naive` ignores the
column of places, `corrected` estimates the curve from the same rows, `given` is told the true one,
and `all seen` learns from the feedback of all rows, which no log has.
"""

import argparse
import json
from pathlib import Path

import polars as pl

from harmonrank.data import Schema
from harmonrank.data.examination import chances_at
from harmonrank.fusion import method_class
from harmonrank.worlds import examination_curve, world
from harmonrank.worlds.simulation import POSITION, as_frame, with_places, world_schema


def measure(name: str, power: float, rows: int, seed: int, methods: list[str]) -> dict:
    place = world(name)
    samples = [place.sample(rows, seed=seed, start=start) for start in (0, rows)]
    whole = [as_frame(place, sample) for sample in samples]
    train = with_places(whole[0], place, samples[0], power, seed=seed)
    plain = world_schema(place)
    curve = examination_curve(power, 30)

    def schema(**parts: object) -> Schema:
        return Schema(plain.objectives, plain.context, plain.request, **parts)

    ways = {
        "naive": (train, schema()),
        "corrected": (train, schema(position=POSITION)),
        "given": (train, schema(position=POSITION, examination=curve)),
        "all seen": (whole[0], schema()),
    }
    regret: dict[str, dict[str, float]] = {}
    estimated: dict[int, float] = {}
    for method in methods:
        for way, (table, columns) in ways.items():
            model = method_class(method)().fit(table, columns, seed=seed)
            if way == "corrected":
                estimated = dict(model.schema.examination)
            regret.setdefault(method, {})[way] = exact_regret(model, whole[1], plain)
    at = pl.Series(list(estimated)).to_numpy()
    errors = abs(chances_at(estimated, at) / chances_at(curve, at) - 1)
    result = {"world": name, "rows": rows, "power": power, "seed": seed, "regret": regret}
    return result | {
        "examination": {str(k): v for k, v in estimated.items()},
        "largest_relative_error": float(errors.max()),
        "ratio": {m: r["corrected"] / r["naive"] for m, r in regret.items()},
    }


def exact_regret(model: object, table: pl.DataFrame, schema: Schema) -> float:
    """Return the regret on rows that were all looked at, by their exact probabilities."""
    from harmonrank.data import read_log
    from harmonrank.fusion import quality_of

    log = read_log(table, schema)
    quality = quality_of(model.score(table), log, schema.weight_vector)
    assert quality.regret is not None
    return quality.regret


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--worlds", nargs="+", default=["conflict", "elive", "qkvideo", "tails"])
    parser.add_argument("--powers", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--methods", nargs="+", default=["harmonrank"])
    parser.add_argument("--add", action="store_true", help="to what the file holds")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    results = json.loads(args.json.read_text(encoding="utf-8"))["results"] if args.add else []
    for name in args.worlds:
        for power in args.powers:
            for seed in args.seeds:
                found = measure(name, power, args.rows, seed, args.methods)
                results.append(found)
                print(name, power, seed, json.dumps(found["regret"]), flush=True)
    if args.json is not None:
        args.json.write_text(json.dumps({"results": results}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
