"""List the stored results whose code has changed since it made them.

    python benchmarks/stale.py

A result names its commit; here stands which code each comes from: a script, and the rooms whose
change may change its figures. A result of another commit is not wrong, it may be.
"""

import subprocess
from pathlib import Path

from store import RESULTS, ROOT, read

PRODUCT, LAB = "src/harmonrank", "lab/src/harmonrank_lab"
ROOMS = ("data", "fusion", "metrics", "model", "paper", "support")
FUSIONS = [f"{PRODUCT}/{room}" for room in ROOMS]
WORLDS = [f"{PRODUCT}/worlds", f"{LAB}/worlds"]
STREAM = [*FUSIONS, f"{PRODUCT}/streaming", *WORLDS, "benchmarks/streaming.py"]
EVALUATION = f"{PRODUCT}/evaluation"
STAGE = [f"{LAB}/upstream", f"{LAB}/worlds/raw"]
REGRETS = [*FUSIONS, *WORLDS, "benchmarks/fusion.py"]
SCRIPTS = ("kinds", "missing", "per_request", "position")
SOURCES: dict[str, list[str]] = {
    **dict.fromkeys(
        [
            "regret",
            "unseen",
            "small",
            "swap",
            "swap_million",
            "drifting",
            "skew",
            "schedule",
            "published",
        ],
        REGRETS,
    ),
    **{name: [*FUSIONS, *WORLDS, f"benchmarks/{name}.py"] for name in SCRIPTS},
    "frontier": [*FUSIONS, *WORLDS, EVALUATION, "benchmarks/frontier.py"],
    "tuning": [*FUSIONS, *WORLDS, "benchmarks/tune_baselines.py"],
    "kuairand_slice": [*FUSIONS, EVALUATION, "benchmarks/kuairand_slice.py"],
    "real": [*FUSIONS, EVALUATION, f"{LAB}/real", f"{LAB}/upstream/logs"],
    "worlds": [*WORLDS, "benchmarks/worlds.py"],
    **{
        n: [*FUSIONS, *WORLDS, EVALUATION, f"{LAB}/experiments"]
        for n in ("online-elive", "offline")
    },
    "reproduction": [*FUSIONS, *WORLDS, f"{LAB}/paper_tables", f"{LAB}/experiments"],
    "bench": [*FUSIONS, *WORLDS, f"{LAB}/bench"],
    "simd": [f"{PRODUCT}/model/scorer", f"{PRODUCT}/paper/fused", "benchmarks/simd.py"],
    "serve": [*FUSIONS, f"{PRODUCT}/serving", f"{LAB}/bench"],
    "soak": [*FUSIONS, f"{PRODUCT}/serving", "benchmarks/soak.py"],
    "scale": [*FUSIONS, EVALUATION, "benchmarks/scale.py"],
    "cluster": [*FUSIONS, EVALUATION, f"{PRODUCT}/engine", "benchmarks/cluster.py"],
    "freshness": [*FUSIONS, f"{PRODUCT}/streaming", *WORLDS, "benchmarks/freshness.py"],
    **dict.fromkeys(["streaming_join", "streaming_network", "streaming_default"], STREAM),
    **{key: [*STAGE, "benchmarks/prediction.py"] for key in ("prediction", "prediction_speed")},
    "out_of_fold": [*STAGE, *FUSIONS, EVALUATION, "benchmarks/prediction.py"],
    "large_log": [*STAGE, *FUSIONS, EVALUATION, f"{LAB}/pipeline", "benchmarks/large_log.py"],
    "pipeline_slice": [*STAGE, *FUSIONS, EVALUATION, f"{LAB}/pipeline"],
    "torture": [PRODUCT, LAB, "tests"],
}


def git(*arguments: str) -> str:
    """Return what git says."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def commit_of(name: str) -> str:
    """Return the commit that made a result."""
    return str(read(name)["code"]["commit"]).removesuffix("-dirty")


def changed(name: str) -> list[str]:
    """Return the files of a result's code that were changed since it was made."""
    return git("diff", "--name-only", commit_of(name), "HEAD", "--", *SOURCES[name]).split()


def unknown() -> list[str]:
    """Return the results that name no commit of this clone, or have no code here."""
    known = set(git("rev-list", "HEAD").split())
    names = sorted(path.stem for path in Path(RESULTS).glob("*.json"))
    return [name for name in names if name not in SOURCES or commit_of(name) not in known]


if __name__ == "__main__":
    for name in sorted(SOURCES):
        files = changed(name)
        print(f"{name:18s} {commit_of(name)[:10]}  {len(files) or 'no'} files changed since")
