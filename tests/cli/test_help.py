"""Help fits a terminal, names all verbs in their groups, and events become lines."""

import dataclasses
from importlib import import_module

import click
import pytest

from harmonrank.cli.parts import Show
from harmonrank.evaluation import Entry
from harmonrank.support import events

GROUPS = {
    "Start": ("demo", "init", "compare"),
    "One model": (
        *("fit", "score", "rank", "evaluate", "explain", "frontier", "offline", "recalibrate"),
        "export",
    ),
    "Run": ("serve", "stream", "registry", "report"),
    "Lab": ("lab", "simulate"),
}
VERBS = [verb for verbs in GROUPS.values() for verb in verbs]
COMMANDS = [
    *(verb for verb in VERBS if verb not in ("lab", "registry")),
    *(f"registry {verb}" for verb in ("init", "list", "show", "publish", "rollback")),
    *("registry prune", "registry diff"),
]


def test_verbs_are_those_of_the_command_line_in_groups_of_help(run):
    group = import_module("harmonrank.cli.main").harmonrank
    assert group.list_commands(click.Context(group)) == VERBS
    done = run("--help")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    for title, verbs in GROUPS.items():
        lines = done.out.partition(f"\n{title}:\n")[2].split("\n\n")[0].splitlines()
        assert tuple(line.split()[0] for line in lines if line[2:3].strip()) == verbs


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_what_a_command_does_and_an_example(run, command):
    for flag in ("-h", "--help"):
        done = run(*command.split(), flag)
        assert done.code == 0
        for words in ("--json FILE", "--quiet"):
            assert words in done.out
        assert max(map(len, done.out.splitlines())) <= 80
    if " " not in command and command != "simulate":
        assert f"\n  harmonrank {command}" in done.out.partition("Options:")[0]


def test_help_and_errors_list_the_methods(run, folder):
    from harmonrank.fusion import METHODS

    table = ("--train", folder / "train.parquet", "--schema", folder / "schema.toml")
    shown = [
        run("fit", "--help").out,
        run("compare", "--help").out,
        run("fit", *table, "--method", "logistik", "-o", folder / "m").err,
    ]
    for text in shown:
        whole = " ".join(text.split()).replace("- ", "-")  # lines may break behind a hyphen
        assert all(name in whole for name in METHODS), text


def test_no_verb_at_all_shows_the_help_as_an_error(run):
    done = run()
    assert done.code == 2
    assert "One model:" in done.err + done.out


KINDS = [
    kind
    for name in events.__all__
    if dataclasses.is_dataclass(kind := getattr(events, name)) and kind is not events.Part
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_has_a_handler_of_its_own(kind):
    handler = Show.__dict__["event"].dispatcher.dispatch(kind)
    nobody = Show.__dict__["event"].dispatcher.dispatch(object)
    assert handler is not nobody


class Own:
    """An event of another package."""

    def shown_by(self, show):
        show.line("as it says itself")


def test_events_become_lines_where_there_is_no_terminal(capsys):
    show = Show()
    show.event(events.MethodStarted("closed-form", 0, 2))
    show.event(events.EpochEnded(0, 1, 0.5, 3.25, 0, 0.9))
    show.event(events.MethodEnded("closed-form", 0, 2, Entry("closed-form", 0.1, error="oh no")))
    show.event(Own())
    show.event(object())
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] closed-form epoch 1: loss 0.5000, valid 3.2500, gradient 90% *",
        "[1/2] closed-form failed: oh no",
        "as it says itself",
    ]
