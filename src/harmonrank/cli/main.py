"""The command `harmonrank` and how it reports errors."""

__all__ = ["main"]

import io
import os
import sys
from importlib import import_module
from typing import Any

import click

from harmonrank import __version__
from harmonrank.support.errors import HarmonRankError, did_you_mean, printable
from harmonrank.support.extras import needs_extras, plugins

PLUGINS = "harmonrank.verbs"
"""The entry point by which other packages add verbs: a module with a `command`."""

_GROUPS = {
    "Start": {
        "demo": "The main job on a built-in world: simulate, fit, leaderboard with ceiling.",
        "init": "Guess which column of a log is what; write a schema.toml to correct.",
        "compare": "Fit some methods on the same rows; print a leaderboard.",
    },
    "One model": {
        "fit": "Fit one model.",
        "score": "Add the fused score to a table.",
        "rank": "Write the best rows of every request.",
        "evaluate": "Measure how well a model ranks a table that has labels.",
        "explain": "Show what a model learned, and its effective weights.",
        "frontier": "Show what a model can trade between objectives; keep a point.",
        "offline": "Estimate what a model would earn online, from a log with positions.",
        "recalibrate": "Adjust a model to changed upstream scores, or to the running one.",
        "export": "Write a model as an ONNX file, checked in ONNX Runtime.",
    },
    "Run": {
        "serve": "Answer requests over HTTP with a model, or a registry's current one.",
        "stream": "Learn from events as they come, and publish a fresh model.",
        "registry": "Versions of a model: publish through guardrails, roll back.",
        "report": "Show the history of a stream: quality, versions, drift, lag.",
    },
}
_VERBS = {name: text for verbs in _GROUPS.values() for name, text in verbs.items()}
_LAB_VERBS = ("simulate", "lab")
_GONE = {
    **{
        name: f"it is `harmonrank lab {name}` now, of harmonrank-lab."
        for name in ("ab", "bench", "data", "pipeline", "predict", "reproduce")
    },
    "align": "`harmonrank recalibrate MODEL DATA --like RUNNING -o NEW` aligns a model.",
    "backfill": "`harmonrank stream --backfill FROM TO` replays a period.",
    "split": "`compare LOG --split time` cuts a log, and harmonrank.split in Python writes parts.",
    "warm": "`harmonrank serve MODEL --warm` compiles what a model needs.",
}


class _Verbs(click.Group):
    """Imports a verb's file when it is called, so that help is instant.

    Other packages, such as harmonrank-lab, add verbs by the entry point `harmonrank.verbs`.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_VERBS, *plugins(PLUGINS)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        module = f"harmonrank.cli.{name}" if name in _VERBS else plugins(PLUGINS).get(name)
        if module is None:
            return None
        command: click.Command = import_module(module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lab = {name: self._told(ctx, name) for name in plugins(PLUGINS)}
        for title, verbs in {**_GROUPS, "Lab": lab}.items():
            if verbs:
                with formatter.section(title):
                    formatter.write_dl(list(verbs.items()))

    def _told(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return "" if command is None else command.get_short_help_str(limit=200)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            if args[0] in _LAB_VERBS:
                ctx.fail(f"'{args[0]}' is part of harmonrank-lab; pip install harmonrank-lab.")
            if args[0] in _GONE:
                ctx.fail(f"There is no verb '{args[0]}' any more: {_GONE[args[0]]}")
            ctx.fail(f"There is no verb '{args[0]}'. {did_you_mean(args[0], known)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="harmonrank")
def harmonrank() -> None:
    """Fuse a recommender's upstream predictions into one ranking score.

    `harmonrank VERB --help` tells more about a verb.
    """


def main() -> None:
    """Run the command line; exit 2 for the user's mistake, 1 for ours."""
    _open_streams()
    try:
        with needs_extras(
            " ".join(["harmonrank", *sys.argv[1 : 3 if "lab" in sys.argv[1:2] else 2]])
        ):
            harmonrank.main(standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        _complain("Interrupted.")
        sys.exit(130)
    except HarmonRankError as error:
        _complain(f"Error: {error}")
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does.
        _silence()
        sys.exit(0)
    except OSError as error:
        # A disk that is full or gone; what a verb writes or reads itself it names.
        _silence()
        where = f"'{error.filename}': " if error.filename else ""
        _complain(f"Error: {where}{error.strerror or error}; make room or choose another place.")
        sys.exit(2)
    except MemoryError:
        _complain("Error: the memory of this machine does not suffice; use fewer rows.")
        sys.exit(2)
    except Exception as error:
        if os.environ.get("HARMONRANK_DEBUG"):
            raise
        _complain(
            f"Internal error: {type(error).__name__}: {error}\n"
            "This is our mistake; HARMONRANK_DEBUG=1 shows where it happened."
        )
        sys.exit(1)


def _open_streams() -> None:
    """Let what a closed stream is given go nowhere, and its number to no other file.

    What an open one cannot spell, such as π in ASCII, becomes a question mark.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _silence() -> None:
    """Let what is still to be printed go nowhere, so that nothing fails again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    # Names of columns and files come from elsewhere.
    click.echo(printable(message), err=True)
