"""`harmonrank lab predict`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts import Show, Verb, output, seed_option, shown
from harmonrank_lab.cli.predictor_options import predictor_options


@click.group("predict")
def command() -> None:
    """The stage before the fusion: from a log to a score per objective."""


@command.command("fit", cls=Verb)
@click.argument("log", type=click.Path(path_type=Path))
@predictor_options(0, "Networks that each leave a part of the training rows out; 0 for none.")
@seed_option
@output("Folder of the predictor.")
@shown
def fit_command(log: Path, out: Path, overwrite: bool, show: Show, **how: Any) -> None:
    """Train on LOG, a folder that `harmonrank lab data import` wrote.

    One network sees all training rows, and one per fold leaves that fold out, so that training
    rows can be scored by a network that never saw them. In the end three more learn from the
    validation rows too, to score new rows (`--set refits=N`). A fit that was interrupted goes on
    when the command is repeated.
    """
    from harmonrank.support.storage import check_output
    from harmonrank_lab.pipeline.report import predictor_facts, predictor_table
    from harmonrank_lab.upstream import fit_predictor
    from harmonrank_lab.upstream.logs import ImportedLog
    from harmonrank_lab.upstream.predictor import MODEL

    check_output(out, overwrite=overwrite, holds=MODEL)
    imported = ImportedLog.open(log)
    predictor = fit_predictor(imported, out, overwrite=overwrite, on_event=show.event, **how)
    show.line(f"Wrote {out}.")
    facts = predictor_facts(predictor)
    show.result(predictor_table(facts), facts)


@command.command("score", cls=Verb)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@output("Folder to write, or of a single table a parquet file.")
@shown
def score_command(model: Path, data: Path, out: Path, overwrite: bool, show: Show) -> None:
    """Score DATA, an imported log or a parquet file, by MODEL.

    Of a log, train.parquet, valid.parquet, test.parquet and schema.toml are written, ready for
    `harmonrank compare`. No row of the log that the model was fitted on is scored by a network
    that learned from it. Of a parquet file, its rows, which are taken for new, are written with
    one more column per objective.
    """
    from harmonrank_lab.upstream import load_predictor, score_log, score_rows
    from harmonrank_lab.upstream.logs import ImportedLog

    predictor = load_predictor(model)
    if data.is_dir():
        log = ImportedLog.open(data)
        score_log(predictor, log, out, overwrite=overwrite, on_event=show.event)
        rows = sum(log.rows.values())
    else:
        rows = score_rows(predictor, data, out, overwrite=overwrite, on_event=show.event)
    show.result(f"Scored {rows:,} rows; wrote {out}.", {"rows": rows, "output": str(out)})
