"""Print the README's table of regrets from stored results.

python benchmarks/table.py benchmarks/results/regret.json
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean


def main(source: Path) -> None:
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in json.loads(source.read_text())["results"]:
        if "regret" in row:
            found[row["method"]][row["world"]].append(row["regret"])
    worlds = list(dict.fromkeys(name for regrets in found.values() for name in regrets))
    print("| method | " + " | ".join(worlds) + " | seeds |\n" + "|---" * (len(worlds) + 2) + "|")
    for method in sorted(found, key=lambda m: mean(mean(v) for v in found[m].values())):
        cells = [found[method].get(name) for name in worlds]
        shown = [f"{mean(values):.4f}" if values else "" for values in cells]
        seeds = min(len(values) for values in cells if values)
        print(f"| `{method}` | " + " | ".join(shown) + f" | {seeds} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
