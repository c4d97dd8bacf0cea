"""Five simulated days of an experiment: `python benchmarks/online.py [WORLD] [quick]`.

Writes benchmarks/results/online-WORLD.json (online-WORLD-quick.json) and prints measured and
exact lifts.
"""

import sys
from pathlib import Path

from rich.console import Console

from harmonrank.support.storage.files import write_json
from harmonrank.support.table import table_of
from harmonrank_lab.experiments.online import FULL, QUICK, OnlineResult, run_online

RESULTS = Path(__file__).parent / "results"


def table(result: OnlineResult) -> str:
    """Return measured lifts beside exact ones."""
    rows: list[tuple[object, ...]] = []
    for lift in result.analysis.lifts:
        exact = [x for x in result.exact if (x.arm, x.outcome) == (lift.arm, lift.outcome)]
        between = f"{lift.low:+.2f} … {lift.high:+.2f}"
        known = exact[0].lift if exact else 0.0
        rows.append((lift.arm, lift.outcome, lift.lift, between, lift.p, known))
    head = ["arm", "outcome", "lift %", "95 % interval", "p", "exact lift %"]
    formats = {"lift %": "+.2f", "p": ".4f", "exact lift %": "+.2f"}
    return table_of(head, rows, formats).to_markdown()


def main() -> None:
    quick = "quick" in sys.argv
    world = next((word for word in sys.argv[1:] if word != "quick"), "elive")
    console = Console()
    with console.status("hour 0") as status:
        result = run_online(
            world,
            progress=lambda event: status.update(f"hour {event.hour + 1} of {event.hours}"),
            **(QUICK if quick else FULL),
        )
    name = f"online-{world}{'-quick' * quick}.json"
    write_json(RESULTS / name, result.to_dict())
    console.print(table(result), soft_wrap=True, highlight=False)
    ratio, aa = result.analysis.sample_ratio, result.analysis.aa
    console.print(f"{result.requests:,} requests; {result.seconds:.0f} s.", highlight=False)
    console.print(f"Users {dict(ratio.users)}, p {ratio.p:.3f}; A/A {dict(aa.below)}.")


if __name__ == "__main__":
    main()
