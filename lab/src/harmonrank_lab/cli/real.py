"""`harmonrank lab real`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli import parts

_ITEMS = {"both": (False, True), "no": (False,), "yes": (True,)}


@click.command("real", cls=parts.Verb)
@click.argument("logs", nargs=-1, metavar="[LOG]...")
@parts.path_option(
    "--data", required=True, help="Folder of the official files, or of such folders."
)
@click.option(
    "--methods", default="harmonrank,closed-form,logistic,prevalence-weights,lightgbm",
    show_default=True, metavar="A,B", help="Ways to fuse; the first is judged against the others.",
)  # fmt: skip
@parts.setting(
    "--items", type=click.Choice(list(_ITEMS)), default="both",
    help="Whether the fusions see columns of items as context: no, yes or both.",
)  # fmt: skip
@parts.setting(
    "--most-rows", type=parts.whole(1000), default=2_000_000,
    help="A larger log keeps some of its users.",
)  # fmt: skip
@parts.seed_option
@parts.output("Folder for the prepared tables.", required=False)
@parts.format_setting
@parts.shown
def command(
    logs: tuple[str, ...],
    data: Path,
    methods: str,
    items: str,
    most_rows: int,
    seed: int,
    out: Path | None,
    overwrite: bool,
    style: str,
    show: parts.Show,
) -> None:
    """Judge the methods on real logs, whose files you have.

    LOG is kuairand-pure, kuairand27k, tenrec, ebnerd, mind, trivago or hillstrom, one of their
    variants, or a TOML file of your own; all whose folder is in --data if left out. Rates of users
    and items come from the oldest rows, upstream models (LightGBM) learn from the next, fusions
    from the next, and the newest are the test. Differences of the first method and each other one
    have intervals by resampling users.
    """
    from contextlib import ExitStack

    from rich.console import Group

    from harmonrank.support.storage import new_folder, write_json
    from harmonrank_lab import real

    chosen, names = real.choose_logs(logs, data), parts.parse_names(methods)
    with ExitStack() as stack:
        folder = None
        if out is not None:
            folder = stack.enter_context(new_folder(out, holds=real.RESULT, overwrite=overwrite))
        numbers = real.run_real(
            chosen, data, names, items=_ITEMS[items],
            most_rows=most_rows, seed=seed, out=folder, on_event=show.event,
        )  # fmt: skip
        if folder is not None:
            write_json(folder / real.RESULT, numbers)
    tables = real.tally_table(numbers["logs"]), real.differences_table(numbers["logs"])
    text = "\n\n".join(table.to_markdown() for table in tables)
    show.result(text if style == "md" else Group(tables[0], "", tables[1]), numbers)
    for log in numbers["logs"]:
        show.notes(log["errors"].values())
