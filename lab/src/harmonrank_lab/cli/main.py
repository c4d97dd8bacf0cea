"""`harmonrank lab`: the verbs that prove the product."""

__all__ = ["command"]

from importlib import import_module
from typing import Any

import click

from harmonrank.support import did_you_mean

_VERBS = {
    "simulate": "Write the raw log of a simulated platform, in the files of a public data set.",
    "data": "Bring in raw logs: your own, or those of public data sets.",
    "predict": "The stage before: from a log to a score per objective.",
    "pipeline": "From raw logs to a comparison of fusions, with one command.",
    "ab": "Analyse the log of an online experiment, or simulate one.",
    "reproduce": "Make the paper's tables again and judge its claims.",
    "real": "Judge the methods on real logs, from older rows to newer ones.",
    "bench": "Measure our speed beside that of the peers that are installed.",
}
_MODULES = {"simulate": "simulate_raw"}


class _Verbs(click.Group):
    """Imports a verb's file when it is called, so that help is instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in _VERBS:
            return None
        verb: Any = import_module(f"harmonrank_lab.cli.{_MODULES.get(name, name)}")
        return verb.command  # type: ignore[no-any-return]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Verbs"):
            formatter.write_dl(list(_VERBS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in _VERBS and not args[0].startswith("-"):
            ctx.fail(f"There is no verb 'lab {args[0]}'. {did_you_mean(args[0], _VERBS)}")
        return super().resolve_command(ctx, args)


@click.group("lab", cls=_Verbs)
def command() -> None:
    """Prove what HarmonRank earns: worlds, the paper's tables, raw logs, benchmarks."""
