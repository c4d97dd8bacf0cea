"""Write the tables of README.md and docs from stored results.

    python benchmarks/tables.py            # rewrites the pages
    python benchmarks/tables.py --check    # says which are not as stored

A page says where a table stands, between `<!-- table NAME -->` and `<!-- end of table -->`; a
function of that name, in tables_of_regret.py or tables_of_speed.py, makes it of benchmarks/results.
What is measured stands in these tables alone: a test holds the pages to them, and sentences to be
without numbers of seconds, bytes and times.
"""

import re
import sys
from pathlib import Path

import tables_of_regret  # noqa: F401  # both make their tables known
import tables_of_speed  # noqa: F401
from store import ROOT, TABLES

BLOCK = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def rendered(text: str) -> str:
    """Return a page with its tables as stored."""

    def fill(mark: re.Match[str]) -> str:
        if mark[2] not in TABLES:
            raise SystemExit(f"There is no table '{mark[2]}'. Known: {', '.join(sorted(TABLES))}.")
        return f"{mark[1]}\n{TABLES[mark[2]]()}\n\n{mark[3]}"

    return BLOCK.sub(fill, text)


def pages() -> dict[Path, str]:
    """Return every page that has tables, as it should be."""
    paths = [ROOT / "README.md", ROOT / "benchmarks" / "RESULTS.md"]
    paths += sorted((ROOT / "docs").glob("*.md"))
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    return {path: rendered(text) for path, text in texts.items() if BLOCK.search(text)}


def main(arguments: list[str]) -> int:
    check = "--check" in arguments
    other = {p: t for p, t in pages().items() if p.read_text(encoding="utf-8") != t}
    for path, text in other.items():
        if not check:
            path.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(ROOT)} {'is not as stored' if check else 'written'}")
    return int(bool(other) and check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
