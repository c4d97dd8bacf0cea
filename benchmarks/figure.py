"""Draw the README's figure from stored regrets.

python benchmarks/figure.py benchmarks/results/regret.json docs/regret.svg
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean

WIDTH, ROW, LEFT, BAR = 760, 22, 200, 9
COLOURS = {"elive": "#0072B2", "qkvideo": "#E69F00", "conflict": "#009E73"}
LARGEST = 0.06


def main(source: Path, target: Path) -> None:
    regrets: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in json.loads(source.read_text())["results"]:
        if "regret" in row:
            regrets[row["method"]][row["world"]].append(row["regret"])
    order = sorted(regrets, key=lambda m: mean(mean(v) for v in regrets[m].values()))
    height = 70 + len(order) * (ROW + 14)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        '<text x="12" y="22" font-size="15" font-weight="600">'
        "Regret: how far below the best possible AUC-sum (shorter is better)</text>",
    ]
    for i, (world, colour) in enumerate(COLOURS.items()):
        x = LEFT + i * 110
        parts.append(f'<rect x="{x}" y="34" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 18}" y="45">{world}</text>')
    for i, method in enumerate(order):
        y = 62 + i * (ROW + 14)
        weight = ' font-weight="600"' if method == "harmonrank" else ""
        parts.append(
            f'<text x="{LEFT - 10}" y="{y + 18}" text-anchor="end"{weight}>{method}</text>'
        )
        for k, (world, colour) in enumerate(COLOURS.items()):
            if world not in regrets[method]:
                continue
            value = mean(regrets[method][world])
            length = min(value / LARGEST, 1) * (WIDTH - LEFT - 70)
            top = y + k * (BAR + 1)
            parts.append(
                f'<rect x="{LEFT}" y="{top}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>'
            )
            more = " →" if value > LARGEST else ""
            parts.append(
                f'<text x="{LEFT + length + 5:.1f}" y="{top + BAR}" font-size="10" fill="#333">'
                f"{value:.4f}{more}</text>"
            )
    target.write_text("\n".join([*parts, "</svg>"]) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
