from importlib import import_module

import click
import pytest

VERBS = [
    *("demo", "init", "split", "fit", "score", "rank", "evaluate", "frontier", "offline", "align"),
    *("recalibrate", "explain", "compare", "registry", "report", "export", "serve", "stream"),
    *("backfill", "warm", "lab", "simulate"),
]
COMMANDS = [
    *(verb for verb in VERBS if verb not in ("lab", "registry")),
    *(f"lab {verb}" for verb in ("simulate", "data import", "predict fit", "predict score")),
    *(f"lab {verb}" for verb in ("pipeline", "ab analyse", "ab simulate", "reproduce", "bench")),
    *(f"registry {verb}" for verb in ("init", "list", "show", "publish", "rollback")),
    *("registry prune", "registry diff"),
]


def commands(group, path=()):
    """Yield the words of every command below a group that is no group itself."""
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from commands(command, (*path, name))
            else:
                yield " ".join((*path, name))


def test_verbs_are_those_of_the_command_line():
    group = import_module("harmonrank.cli.main").harmonrank
    assert group.list_commands(click.Context(group)) == VERBS
    assert sorted(commands(group)) == sorted(COMMANDS)


def test_help_lists_every_verb_and_fits_a_terminal(run):
    done = run("--help")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    listed = done.out.partition("Verbs:\n")[2].splitlines()
    assert [line.split()[0] for line in listed if line[2:3].strip()] == VERBS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_takes_json_and_quiet(run, command):
    for flag in ("-h", "--help"):
        done = run(*command.split(), flag)
        assert done.code == 0
        assert "--json FILE" in done.out
        assert "--quiet" in done.out
        assert max(map(len, done.out.splitlines())) <= 80


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
    assert "Verbs:" in done.err + done.out
