"""The code blocks of README and docs, and how they are run: as a reader would, in order."""

import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
# Hours of experiments; lab/tests/cli/test_reproduce.py runs the same command on a small world.
TOO_LONG = {"reproduction.md"}
BLOCK = re.compile(
    r"^(?:<!-- (not run|slow): [^\n]+ -->\n)?```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE
)
ADDRESS = "127.0.0.1:8080"


@dataclass(frozen=True)
class Block:
    """Code of a page: its mark ("", "slow" or "not run"), language and text."""

    mark: str
    kind: str
    code: str


def blocks(page, kinds=("python", "sh")):
    """Return the blocks of a page in order."""
    every = [Block(*parts) for parts in BLOCK.findall(page.read_text("utf-8"))]
    return [block for block in every if block.kind in kinds]


def commands(code):
    """Yield the words of each command of a shell block; quotes may hold line ends."""
    begun = ""
    for line in code.replace("\\\n", " ").splitlines():
        begun += line
        try:
            words = shlex.split(begun, comments=True)
        except ValueError:  # a quotation goes on in the next line
            begun += "\n"
            continue
        begun = ""
        if words:
            yield words
    assert not begun, begun


class Reader:
    """Somebody who tries what a page says, in one folder, with a second terminal for a service."""

    def __init__(self):
        self.names = {"__name__": "page"}
        self.address = ADDRESS
        self.terminals = ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.terminals.close()

    def try_page(self, page, marks=("",)):
        """Run the blocks of a page that have one of these marks."""
        for block in blocks(page):
            if block.mark in marks:
                getattr(self, block.kind)(block.code.replace(ADDRESS, self.address))

    def python(self, code):
        exec(compile(code, "page", "exec"), self.names)

    def sh(self, code):
        for program, *arguments in commands(code):
            if program != "harmonrank":
                assert program == "curl", f"`{program}` is not run here; mark its block."
                subprocess.run([program, "--fail", *arguments], check=True, capture_output=True)
            elif arguments[0] == "serve":
                self._serve(*arguments[1:])
            else:
                harmonrank(arguments)

    def _serve(self, target, *options):
        from service import serving

        service = self.terminals.enter_context(serving(target, *options))
        self.address = service.address.removeprefix("http://")


def harmonrank(arguments):
    """Run a command of ours in this process; it must succeed."""
    from harmonrank.cli import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["harmonrank", *arguments])
        patch.setenv("COLUMNS", "80")
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        assert not code, shlex.join(arguments)
