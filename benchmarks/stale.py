"""List the stored results whose code has changed since it made them.

    python benchmarks/stale.py

A result names its commit; here stands which code each comes from: a script, and the rooms whose
change may change its figures. A result of another commit is not wrong, it may be.
"""

import subprocess
from pathlib import Path

from store import RESULTS, ROOT, read

PRODUCT, LAB = "src/harmonrank", "lab/src/harmonrank_lab"
FUSIONS = [f"{PRODUCT}/{room}" for room in ("model", "paper", "fusion", "metrics")]
WORLDS = [f"{PRODUCT}/worlds", f"{LAB}/worlds"]
STREAM = [f"{PRODUCT}/streaming", f"{PRODUCT}/model", f"{PRODUCT}/paper", "benchmarks/streaming.py"]
STAGE = [f"{LAB}/upstream", f"{LAB}/worlds/raw"]
REGRETS = [*FUSIONS, *WORLDS, "benchmarks/fusion.py"]
SCRIPTS = ("frontier", "kinds", "missing", "per_request", "position")
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
    "tuning": [*FUSIONS, *WORLDS, "benchmarks/tune_baselines.py"],
    "kuairand_slice": [*FUSIONS, "benchmarks/kuairand_slice.py"],
    "real": [*FUSIONS, f"{LAB}/real", f"{LAB}/upstream/logs"],
    "worlds": [*WORLDS, "benchmarks/worlds.py"],
    **{n: [*FUSIONS, *WORLDS, f"{LAB}/experiments"] for n in ("online-elive", "offline")},
    "reproduction": [*FUSIONS, *WORLDS, f"{LAB}/paper_tables", f"{LAB}/experiments"],
    "bench": [*FUSIONS, f"{PRODUCT}/support", f"{LAB}/bench"],
    "simd": [f"{PRODUCT}/model/scorer", f"{PRODUCT}/paper/fused", "benchmarks/simd.py"],
    "serve": [f"{PRODUCT}/serving", f"{LAB}/bench"],
    "soak": [f"{PRODUCT}/serving", "benchmarks/soak.py"],
    "scale": [*FUSIONS, f"{PRODUCT}/data", "benchmarks/scale.py"],
    "cluster": [*FUSIONS, f"{PRODUCT}/data", f"{PRODUCT}/engine", "benchmarks/cluster.py"],
    "freshness": [f"{PRODUCT}/streaming", f"{PRODUCT}/model", "benchmarks/freshness.py"],
    **dict.fromkeys(["streaming_join", "streaming_network", "streaming_default"], STREAM),
    **{key: [*STAGE, "benchmarks/prediction.py"] for key in ("prediction", "prediction_speed")},
    "out_of_fold": [*STAGE, *FUSIONS, "benchmarks/prediction.py"],
    "large_log": [*STAGE, f"{LAB}/pipeline", "benchmarks/large_log.py"],
    "pipeline_slice": [*STAGE, *FUSIONS, f"{LAB}/pipeline"],
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
