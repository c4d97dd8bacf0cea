"""`harmonrank lab predict`, and the options of the networks that predict."""

__all__ = ["predictor_options"]

from collections.abc import Callable
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from harmonrank.cli.parts import (
    F,
    Show,
    count_option,
    output,
    parse_settings,
    seed_option,
    settings_option,
    shown,
    whole,
)
from harmonrank.cli.parts.engine_options import EngineChoice, engine_options

if TYPE_CHECKING:
    from harmonrank_lab.upstream import PredictorConfig


def predictor_options(least_folds: int, text: str) -> Callable[[F], F]:
    """Return the options of the networks that predict; a verb gets `config`, `folds` and `by`.

    The text says what folds are.
    """
    networks = click.Choice(["mmoe", "ple", "esmm"])
    cuts = "How folds are cut; as the log was split if left out."
    options: list[Callable[[F], F]] = [
        click.option(
            "--network", type=networks, default="mmoe", show_default=True, help="What predicts."
        ),
        click.option("--epochs", type=whole(1), help="At most so many passes."),
        count_option("--folds", 5, text, least=least_folds),
        click.option("--by", type=click.Choice(["user", "time"]), help=cuts),
        settings_option("An option of the predictor, such as embedding=8"),
    ]

    def decorate(function: F) -> F:
        @wraps(function)
        def verb(**given: Any) -> Any:
            how = [given.pop(name) for name in ("network", "epochs", "settings")]
            return function(config=_config(*how), **given)

        return cast(F, reduce(lambda made, option: option(made), reversed(options), verb))

    return decorate


def _config(network: str, epochs: int | None, settings: tuple[str, ...]) -> "PredictorConfig":
    from harmonrank.support.options import checked_options
    from harmonrank_lab.upstream import PredictorConfig

    options = {"network": network, **parse_settings(settings)}
    if epochs is not None:
        options["epochs"] = epochs
    return PredictorConfig(**checked_options("predict", PredictorConfig, options))


@click.group("predict")
def command() -> None:
    """The stage before the fusion: from a log to a score per objective."""


@command.command("fit")
@click.argument("log", type=click.Path(path_type=Path))
@predictor_options(0, "Networks that each leave a part of the training rows out; 0 for none.")
@seed_option
@output("Folder of the predictor.")
@engine_options
@click.option(
    "--data-parallel", is_flag=True, expose_value=False,
    help="Of no effect: weights are the same however divided.",
)  # fmt: skip
@shown
def fit_command(
    log: Path, out: Path, overwrite: bool, engine: EngineChoice, show: Show, **how: Any
) -> None:
    """Train on LOG, a folder that `harmonrank lab data import` wrote.

    One network sees all training rows, and one per fold leaves that fold out, so that training
    rows can be scored by a network that never saw them. In the end three more learn from the
    validation rows too, to score new rows (`--set refits=N`). A fit that was interrupted goes on
    when the command is repeated. With --engine ray every network is trained by one worker.
    """
    from harmonrank.support.storage import check_output
    from harmonrank_lab.pipeline.report import predictor_facts, predictor_table
    from harmonrank_lab.upstream import fit_predictor
    from harmonrank_lab.upstream.logs import ImportedLog
    from harmonrank_lab.upstream.predictor import MODEL

    check_output(out, overwrite=overwrite, holds=MODEL)
    with engine.used():
        predictor = fit_predictor(
            ImportedLog.open(log), out, overwrite=overwrite, on_event=show.event, **how
        )
    show.line(f"Wrote {out}.")
    facts = predictor_facts(predictor)
    show.result(predictor_table(facts), facts)


@command.command("score")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@output("Folder to write, or of a single table a parquet file.")
@engine_options
@shown
def score_command(
    model: Path, data: Path, out: Path, overwrite: bool, engine: EngineChoice, show: Show
) -> None:
    """Score DATA, an imported log or a parquet file, by MODEL.

    Of a log, train.parquet, valid.parquet, test.parquet and schema.toml are written, ready for
    `harmonrank compare`. No row of the log that the model was fitted on is scored by a network
    that learned from it. Of a parquet file, its rows, which are taken for new, are written with
    one more column per objective. With --engine ray each part of a log is scored by a worker.
    """
    from harmonrank_lab.upstream import load_predictor, score_log, score_rows
    from harmonrank_lab.upstream.logs import ImportedLog

    engine.refuse(not data.is_dir() and "A single table", "leave --engine ray out")
    predictor = load_predictor(model)
    if data.is_dir():
        log = ImportedLog.open(data)
        with engine.used():
            score_log(predictor, log, out, overwrite=overwrite, on_event=show.event)
        rows = sum(log.rows.values())
    else:
        rows = score_rows(predictor, data, out, overwrite=overwrite, on_event=show.event)
    show.result(f"Scored {rows:,} rows; wrote {out}.", {"rows": rows, "output": str(out)})
