"""Nursery: a process that has imported the package, and forks a child for each command line.

A fresh interpreter would take most of the time of a test that runs hundreds of commands. Nothing
but imports happens before a fork, so that a child differs from a fresh process in nothing else.
What others import at their first use is imported as well: it is most of what a short command does.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MODULES = (
    *("harmonrank.cli.score", "harmonrank.cli.rank"),
    *("harmonrank.cli.init", "harmonrank.cli.fit", "harmonrank.cli.compare"),
    *("harmonrank.cli.evaluate", "harmonrank.cli.registry", "harmonrank.cli.stream"),
    *("harmonrank.cli.parts.stream_show", "harmonrank.fusion.baselines.closed_form"),
    *("harmonrank.fusion.baselines.logistic", "harmonrank.fusion.saved", "harmonrank.evaluation"),
    *("harmonrank.reports.html", "harmonrank.registry", "harmonrank.streaming.stream"),
    *("harmonrank.streaming.metrics", "harmonrank.streaming.sources.folder"),
    *("harmonrank.streaming.learners.sums", "harmonrank_lab.cli.data"),
    *("harmonrank_lab.cli.predict", "harmonrank_lab.cli.pipeline", "harmonrank_lab.upstream"),
    "harmonrank_lab.worlds.raw",
)
FIRST_USES = ("torch._dynamo", "scipy.linalg", "numba.typed", "rich.live", "rich.progress")
CHANGES = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir")
"""What a death may come before; Python tells of each."""


@dataclass
class Child:
    """A command that was started."""

    nursery: "Nursery"
    pid: int
    errors: Path

    def wait(self):
        """Return its exit code, −9 if it was killed, and what it wrote to standard error."""
        code = self.nursery.ask({"wait": self.pid})
        return code, self.errors.read_text(encoding="utf-8", errors="replace")

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


class Nursery:
    """Starts commands; use it in a `with` block."""

    def __init__(self, folder):
        self._folder, self._count = Path(folder), 0
        command = [sys.executable, "-W", "ignore", __file__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def ask(self, question):
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, *arguments, die_at=0, within=""):
        """Start a command line; it dies at its n-th change of a file within a folder."""
        self._count += 1
        errors = self._folder / f"stderr-{self._count}"
        errors.touch()  # a child may be killed before it does so
        parts = {"argv": [str(a) for a in arguments], "errors": str(errors)}
        pid = self.ask(parts | {"die_at": die_at, "within": str(within)})
        return Child(self, pid, errors)

    def run(self, *arguments, **options):
        return self.start(*arguments, **options).wait()


def mortal(die_at, within):
    """Kill this process at its n-th change of a file within a folder; 0 lets it live."""
    seen = [0]

    def watch(event, arguments):
        if event not in CHANGES or not isinstance(arguments[0], str | Path):
            return
        reads = event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if reads or not place(event, arguments).startswith(within):
            return
        seen[0] += 1
        if seen[0] == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def place(event, arguments):
    """Return the path of a change; who removes a folder names its files by the folder's handle."""
    handle = arguments[1] if event in ("os.remove", "os.rmdir") else -1
    above = Path() if handle == -1 else Path(f"/proc/self/fd/{handle}").readlink()
    return str(above / arguments[0])


def child(parts):
    """Be the command; never returns."""
    errors = os.open(parts["errors"], os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(errors, 2)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.dup2(1, 0)
    sys.argv = ["harmonrank", *parts["argv"]]
    if parts["die_at"]:
        mortal(parts["die_at"], parts["within"])
    code = 1
    try:
        from harmonrank.cli import main

        main()
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def main():
    from importlib import import_module

    for module in (*MODULES, *FIRST_USES):
        import_module(module)
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()  # imports what compiled code may call
    for line in sys.stdin:
        parts = json.loads(line)
        if "wait" in parts:
            answer = os.waitstatus_to_exitcode(os.waitpid(parts["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                child(parts)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    os._exit(0)  # taking all modules apart takes seconds


if __name__ == "__main__":
    main()
