"""An experiment from start to end: a simulated platform, its log, and what the log says.

Two fusions run for two short days on a simulated feed. Each ranks for its own users and learns
from what they do. The log is then analysed as one would analyse one's own. Takes about half a
minute:

    python examples/online_experiment.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from harmonrank_lab.experiments.ab import analyse
from harmonrank_lab.experiments.ab_report import ab_table
from harmonrank_lab.experiments.online import run_online


def main() -> None:
    """Run the experiment and print measured lifts beside the true ones."""
    result = run_online(
        "qkvideo",
        users=8_000,
        days=2,
        hours=6,
        requests_per_hour=4_000,
        seed=1,
        arms={"base": "prevalence-weights", "ours": "harmonrank"},
    )
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log.parquet"
        result.log.write_parquet(log)
        # What `harmonrank lab ab analyse` does with a log of yours.
        analysis = analyse(
            log,
            user="user_id",
            arm="arm",
            outcomes=result.objectives,
            impressions="impressions",
            control="base",
            aa_arm="base-again",
        )
    Console(width=80).print(ab_table(analysis))
    print("\nThe lift of `ours` by true chance, which only a simulation knows:")
    for name in result.objectives:
        measured, exact = analysis.lift("ours", name), result.exact_lift("ours", name)
        print(f"{name:10} measured {measured.lift:+6.2f} %, exact {exact.lift:+6.2f} %")


if __name__ == "__main__":
    main()
