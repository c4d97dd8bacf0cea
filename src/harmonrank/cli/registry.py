"""`harmonrank registry`."""

__all__ = ["command"]

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts.options import (
    Show,
    format_setting,
    parse_settings,
    path_option,
    settings_option,
    shown,
    whole,
)
from harmonrank.cli.parts.verb import Verb
from harmonrank.support.errors import UsageError

if TYPE_CHECKING:
    from harmonrank.registry import Registry, Version

REFUSED = 3
"""The exit code of a publication that the guardrails refused."""

_FOLDER = click.Path(path_type=Path)


def _opened(ctx: click.Context, param: click.Parameter, folder: Path) -> "Registry":  # noqa: ARG001
    from harmonrank.registry import Registry

    return Registry(folder)


_REGISTRY = click.argument("registry", type=_FOLDER, callback=_opened)


class _Registry(click.Group):
    command_class = Verb


@click.group("registry", cls=_Registry)
def command() -> None:
    """Keep versions of a model, of which one is current.

    A version is published through guardrails, never changed, and current until another one is.
    """


@command.command("init")
@click.argument("folder", metavar="REGISTRY", type=_FOLDER)
@settings_option("A guardrail")
@click.option("--overwrite", is_flag=True, help="Give an existing registry other guardrails.")
@shown
def init(folder: Path, settings: tuple[str, ...], overwrite: bool, show: Show) -> None:
    """Make an empty registry in the folder REGISTRY.

    Guardrails, with their defaults: tolerance=0.002 (of each objective's AUC),
    tolerances={"buy":0.01}, evidence=harm|safety, level=0.95, calibration=0.25, shift=0.5,
    scale=2, require_labels=false; null switches a bound off.
    """
    from dataclasses import asdict

    from harmonrank.registry import Guardrails, Registry
    from harmonrank.support.options import checked_options
    from harmonrank.support.table import table_of

    given = checked_options("a registry", Guardrails, parse_settings(settings))
    made = Registry.create(folder, Guardrails(**given), overwrite=overwrite)
    show.line(f"Registry: {made.path}")
    facts = asdict(made.guardrails)
    rows = [(name, str(value)) for name, value in facts.items()]
    show.result(table_of(("guardrail", "value"), rows), {"guardrails": facts})


@command.command("list")
@_REGISTRY
@format_setting
@shown
def list_command(registry: "Registry", style: str, show: Show) -> None:
    """List the versions of REGISTRY."""
    from harmonrank.support.table import Column, Table

    current, versions = registry.current(), registry.versions()
    columns = (
        *map(Column, ("version", "state", "created", "method")),
        Column("AUC-sum in requests", ".4f", widest=11),
        Column("over all rows", ".4f", widest=8),
        Column("parent", spare=True),
        Column("window", spare=True),
    )
    rows = tuple(
        (v.number, _state(v, current), v.created, v.method, *_auc_sums(v), v.parent, v.window)
        for v in versions
    )
    emphasis: Any = {i: "bold" for i, v in enumerate(versions) if v.number == current}
    numbers_of = {"current": current, "versions": [v.to_dict() for v in versions]}
    show.result(Table(columns, rows, emphasis=emphasis), numbers_of, style=style)


def _state(version: "Version", current: int | None) -> str:
    if version.number == current:
        return "current"
    return "accepted" if version.refused is None else "refused"


def _auc_sums(version: "Version") -> tuple[float | None, float | None]:
    """Return the AUC-sum within requests and over all rows, where they were measured."""
    metrics = version.metrics or {}
    return (metrics.get("requests") or {}).get("auc_sum"), metrics.get("auc_sum")


@command.command("show")
@_REGISTRY
@click.argument("version", type=int, required=False)
@format_setting
@shown
def show_command(registry: "Registry", version: int | None, style: str, show: Show) -> None:
    """Show VERSION of REGISTRY, or the current one: its checks, metrics and files."""
    record = registry.version(version)
    show.result(_checks(record, registry.current()), record.to_dict(), style=style)


def _checks(version: "Version", current: int | None) -> Any:
    from harmonrank.fusion import Quality
    from harmonrank.support.table import Column, Table

    words = {True: "passed", False: "refused", None: "not checked"}
    rows = tuple((check.name, words[check.passed], check.sentence) for check in version.checks)
    emphasis: Any = {i: "red" for i, check in enumerate(version.checks) if check.passed is False}
    facts = [f"{version.method}, created {version.created}, parent {version.parent or 'none'}."]
    facts += [f"Window: {version.window}."] * bool(version.window)
    facts += [f"Note: {version.note}"] * bool(version.note)
    if version.metrics is not None:
        quality = Quality.from_dict(version.metrics)
        within = None if quality.requests is None else quality.requests.auc
        for where, areas in ((" within requests", within), (" over all rows", quality.auc)):
            each = ", ".join(f"{n} {value.estimate:.4f}" for n, value in (areas or {}).items())
            facts += [f"AUC{where}, {quality.rows:,} rows: {each}."] * bool(each)
    columns = (Column("check"), Column("result"), Column("what", widest=48))
    title = f"Version {version.number}: {_state(version, current)}"
    return Table(columns, rows, title=title, emphasis=emphasis, notes=tuple(facts))


@command.command("publish")
@_REGISTRY
@click.argument("model", type=_FOLDER, required=False)
@path_option("--data", help="Table to hold it to; with labels, AUCs are compared.")
@path_option(
    "--recalibrated-on",
    metavar="DATA",
    help="In place of MODEL: the current version, recalibrated on these recent rows.",
)
@click.option("--window", default="", metavar="TEXT", help="The data it was fitted on.")
@click.option("--note", default="", metavar="TEXT", help="What a reader should know.")
@format_setting
@shown
def publish(
    registry: "Registry",
    model: Path | None,
    data: Path | None,
    recalibrated_on: Path | None,
    window: str,
    note: str,
    style: str,
    show: Show,
) -> None:
    """Add MODEL to REGISTRY, and make it current if it passes the guardrails.

    A version that they refuse is kept with the reason, and the exit code is 3.
    """
    if (model is None) == (recalibrated_on is None):
        raise UsageError("Name either the folder of a MODEL or --recalibrated-on DATA.")
    if recalibrated_on is None:
        assert model is not None
        version = registry.publish(model, data, window=window, note=note)
    else:
        version = registry.publish(
            registry.load().recalibrated(recalibrated_on),
            recalibrated_on if data is None else data,
            window=window or registry.version().window,
            note=note,
            recalibrated=True,
        )
    show.result(_checks(version, registry.current()), version.to_dict(), style=style)
    if version.refused is not None:
        raise SystemExit(REFUSED)


@command.command("rollback")
@_REGISTRY
@click.argument("version", type=int, required=False)
@shown
def rollback(registry: "Registry", version: int | None, show: Show) -> None:
    """Make VERSION of REGISTRY current, or the one that was current before."""
    before, record = registry.current(), registry.rollback(version)
    text = f"Version {record.number} is current; it was {before}."
    show.result(text, {"current": record.number, "before": before})


@command.command("prune")
@_REGISTRY
@click.option("--keep", type=whole(1), default=10, show_default=True, help="How many newest stay.")
@shown
def prune(registry: "Registry", keep: int, show: Show) -> None:
    """Remove old versions of REGISTRY; the current one and the one before it stay."""
    removed = registry.prune(keep)
    names = ", ".join(map(str, removed)) or "none"
    show.result(f"Removed: {names}.", {"removed": removed})


@command.command("diff")
@_REGISTRY
@click.argument("first", type=int)
@click.argument("second", type=int)
@path_option("--data", help="Table that both rank; with labels, AUCs are compared.")
@format_setting
@shown
def diff(
    registry: "Registry", first: int, second: int, data: Path | None, style: str, show: Show
) -> None:
    """Show what differs between two versions of REGISTRY."""
    difference = registry.diff(first, second, data)
    show.result(difference.to_table(), difference.to_dict(), style=style)
