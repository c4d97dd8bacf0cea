"""`harmonrank fit`."""

__all__ = ["command"]

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts.engine_options import EngineChoice, engine_options
from harmonrank.cli.parts.options import (
    Show,
    method_option,
    output,
    parse_settings,
    seed_option,
    settings_option,
    shown,
)
from harmonrank.cli.parts.schema_options import columns, schema_of
from harmonrank.cli.parts.table_options import Tables, learning_tables, memory_option

if TYPE_CHECKING:
    pass


@click.command("fit")
@learning_tables("early stopping")
@columns
@method_option("--method", "harmonrank", "A way to fuse")
@settings_option("An option of the method")
@seed_option
@click.option("--device", default="cpu", show_default=True, help="Where a network is trained.")
@click.option("--restart", is_flag=True, help="Forget the checkpoint of an interrupted fit.")
@memory_option
@output("Folder of the model.")
@engine_options
@shown
def command(
    train: Tables,
    valid: Tables | None,
    method: str,
    settings: tuple[str, ...],
    seed: int,
    device: str,
    restart: bool,
    memory: str | None,
    out: Path,
    overwrite: bool,
    engine: EngineChoice,
    show: Show,
    **column_options: Any,
) -> None:
    """Fit one model and write it to a folder.

    A fit that was interrupted goes on from its checkpoint when the command is repeated. A parquet
    table that --memory cannot hold is read in blocks. With --engine ray the blocks of the default,
    logistic and closed-form, the steps of a network and the trials of a formula are the work of
    workers; other methods are fitted in this process.
    """
    from time import perf_counter

    from harmonrank.fusion import method_class
    from harmonrank.fusion.saved import MODEL
    from harmonrank.support.errors import ModelFileError
    from harmonrank.support.options import checked_device
    from harmonrank.support.storage.files import check_output

    schema = schema_of(**column_options, near=train, quiet=show.quiet)
    model = method_class(method)(**parse_settings(settings))
    checked_device(device, "--device")
    target = check_output(out, overwrite=overwrite, holds=MODEL)
    checkpoint = target.with_name(f"{target.name}.checkpoint")
    _refuse_foreign(checkpoint)
    if restart:
        checkpoint.unlink(missing_ok=True)
    started = perf_counter()
    try:
        with engine.used(for_states=model.traits.workers):
            model.fit(
                train,
                schema,
                valid=valid,
                seed=seed,
                device=device,
                on_event=show.event,
                checkpoint=checkpoint,
                memory=memory,
            )
    except ModelFileError as error:
        raise ModelFileError(f"{error} The option --restart deletes it.") from None
    seconds = perf_counter() - started
    model.save(out, overwrite=overwrite)
    checkpoint.unlink(missing_ok=True)
    show.line(f"Fitted {method} in {seconds:.1f} s; wrote {out}.")
    training = model.training
    if training.blocks > 1 or training.fitted_rows < training.rows:
        show.line(training.words(model.name))
    if training.position is not None:
        show.line(training.position.words())
    if training.missing is not None:
        show.line(f"Training rows. {training.missing}")
    table, valid_numbers = _measure(show, model, valid, memory)
    result: dict[str, Any] = {
        "method": method,
        "model": str(out),
        "fit_seconds": seconds,
        "valid": valid_numbers,
        "missing": training.missing and training.missing.to_dict(),
        "position": training.position and training.position.to_dict(),
        "rows": training.rows,
        "fitted_rows": training.fitted_rows,
        "blocks": training.blocks,
    }
    health = getattr(model.state, "health", None)
    if health is not None:
        result["health"] = health.to_dict()
    show.result(table, result)


def _refuse_foreign(checkpoint: Path) -> None:
    """Refuse to fit where something else has the name of the checkpoint, which is deleted."""
    from harmonrank.support.errors import DataError, OutputError
    from harmonrank.support.storage.arrays import array_header

    if not checkpoint.exists():
        return
    try:
        ours = checkpoint.is_file() and "fingerprint" in array_header(checkpoint)
    except DataError:
        ours = False
    if not ours:
        raise OutputError(
            f"'{checkpoint}', the name of the checkpoint, is something else, so it is neither "
            "read nor deleted; move it, or choose another name for the model."
        )


def _measure(show: Any, model: Any, valid: Any, memory: str | None) -> tuple[Any, Any]:
    """Return the table and the numbers of the validation rows, if there are any that serve."""
    from harmonrank.data.rows.log_blocks import FileBlocks, log_blocks
    from harmonrank.evaluation.partitioned import partitioned_quality, put_into
    from harmonrank.fusion.quality.block_quality import sampled_requests
    from harmonrank.fusion.quality.measurable import measurable
    from harmonrank.support.errors import DataError

    if valid is None:
        return None, None
    blocks = log_blocks(valid, model.schema, memory)
    try:
        if not isinstance(blocks, FileBlocks):
            quality = model.evaluate(valid)
        else:
            sampled = sampled_requests(blocks)
            quality = model.evaluate(sampled.log)
            if measurable(blocks.schema):
                quality = put_into(partitioned_quality(model, blocks), quality)
            show.line(f"Validation rows. {sampled.words()}")
    except DataError as error:
        # The model is fitted and written: rows that cannot measure it are no failure.
        show.line(f"Not measured on the validation rows: {error}")
        return None, None
    return quality.to_table(), quality.to_dict()
