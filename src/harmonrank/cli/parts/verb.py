"""Verb: a command whose options may stand in a settings file, and of which none is lost."""

__all__ = ["Setting", "Verb", "option_key", "setting", "verb"]

from collections.abc import Callable, Mapping
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

from harmonrank.support.errors import UsageError, did_you_mean, shown


class Setting(click.Option):
    """A key of the settings file alone: needed so rarely that it is no option of the verb."""


class Verb(click.Command):
    """Reads --settings; refuses an option that is given twice, and would lose one of its values.

    Args:
        args: As of a command.
        example: A command line, which help shows below the first sentence.
        rest: As of a command.
    """

    def __init__(self, *args: Any, example: str = "", **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.settings = [param for param in self.params if isinstance(param, Setting)]
        self.params = [param for param in self.params if not isinstance(param, Setting)]
        if example:
            first, _, more = cleandoc(self.help or "").partition("\n\n")
            self.help = f"{first}\n\n\b\n{example}\n\n{more}"
        text = "TOML file with options of this verb (docs/settings.md)."
        self.params.append(
            click.Option(
                ["--settings", "settings_file"],
                type=click.Path(path_type=Path),
                metavar="FILE",
                is_eager=True,
                expose_value=False,
                callback=_read_settings,
                help=text,
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line, of which every word must count."""
        try:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        except click.NoSuchOption as error:
            if error.option_name in (name for setting in self.settings for name in setting.opts):
                raise UsageError(
                    f"{error.option_name} is a key of the settings file: write "
                    f"`{error.option_name.lstrip('-')} = …` under [{'.'.join(_names(ctx))}] there, "
                    "and add --settings FILE."
                ) from None
            raise
        for param in order:
            once = isinstance(param, click.Option) and not (param.multiple or param.is_flag)
            if once and order.count(param) > 1:
                raise UsageError(f"{param.opts[0]} is given twice; give it once.")
        rest = super().parse_args(ctx, args)
        for setting in self.settings:
            given = (ctx.default_map or {}).get(setting.name, setting.default)
            ctx.params[str(setting.name)] = setting.type_cast_value(ctx, given)
        return rest


verb = partial(click.command, cls=Verb)
"""Declares a verb, as `click.command` does a command."""


def setting(*names: str, **rest: Any) -> Callable[[Any], Any]:
    """Declare a key of the settings file, as `click.option` does an option."""
    rest.setdefault("default", False if rest.get("is_flag") else None)
    return click.option(*names, cls=Setting, **rest)


def option_key(option: click.Parameter) -> str:
    """Return what a settings file calls an option: its long name without dashes."""
    return max(option.opts, key=len).lstrip("-")


def _read_settings(ctx: click.Context, param: click.Parameter, path: Path | None) -> None:
    """Let a table of the file stand for what the command line does not say."""
    if path is None:
        return
    from harmonrank.support.storage.decoding import read_toml

    root, tables = ctx.find_root(), read_toml(path, "A settings file")
    assert isinstance(root.command, click.Group)
    verbs, names = root.command.list_commands(root), _names(ctx)
    for name in tables:
        if name not in verbs:
            raise UsageError(f"'{path}': [{name}] is no verb. {did_you_mean(name, verbs)}")
    table: Any = tables
    for name in names:
        table = table.get(name, {}) if isinstance(table, Mapping) else table
    if not isinstance(table, Mapping):
        raise UsageError(f"'{path}': {'.'.join(names)} must be a table, [{'.'.join(names)}].")
    assert isinstance(ctx.command, Verb)
    others = [o for o in ctx.command.params if isinstance(o, click.Option) and o is not param]
    options = {option_key(option): option for option in [*others, *ctx.command.settings]}
    for key in table:
        if key not in options:
            hint = did_you_mean(key, options)
            raise UsageError(f"'{path}': [{'.'.join(names)}] has no option '{key}'. {hint}")
    ctx.default_map = {str(options[key].name): _given(options[key], table[key]) for key in table}


def _names(ctx: click.Context) -> list[str]:
    """Return the verb, below its group if it has one."""
    names: list[str] = []
    while ctx.parent is not None:
        names.insert(0, str(ctx.command.name))
        ctx = ctx.parent
    return names


def _given(option: click.Option, value: Any) -> Any:
    """Return a value as the command line would give it: lists and tables stand for A,B and A=2."""
    if isinstance(value, Mapping):
        value = [f"{name}={each}" for name, each in value.items()]
    if option.multiple:
        return [str(each) for each in value] if isinstance(value, list) else [str(value)]
    if option.is_flag:
        if not isinstance(value, bool):
            raise UsageError(f"{option_key(option)} must be true or false. Got {shown(value)}.")
        return value
    if isinstance(value, list):
        return [str(each) for each in value] if option.nargs > 1 else ",".join(map(str, value))
    return str(value)
