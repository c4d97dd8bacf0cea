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
from harmonrank.cli.parts.table_options import Tables, in_blocks, learning_tables, memory_option

if TYPE_CHECKING:
    from harmonrank.data.rows.log_blocks import LogBlocks


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

    from harmonrank.data import read_log
    from harmonrank.fusion import method_class
    from harmonrank.fusion.position.correction import corrected
    from harmonrank.fusion.quality.missing_scores import missing_of
    from harmonrank.fusion.quality.position_quality import PositionCorrection
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
    blocks = in_blocks(train, schema, memory) or _for_workers(engine, model, train, valid, schema)
    if blocks is not None:
        told = {"seed": seed, "device": device, "on_event": show.event, "checkpoint": checkpoint}
        try:
            with engine.used(for_states=model.fits_on_workers):
                found = _fitted_in_blocks(show, model, blocks, valid, memory, out, overwrite, told)
        except ModelFileError as error:
            raise ModelFileError(f"{error} The option --restart deletes it.") from None
        checkpoint.unlink(missing_ok=True)
        show.result(found[0], {"method": method, "model": str(out), **found[1]})
        return
    valid_log = None if valid is None else read_log(valid, schema)
    started = perf_counter()
    rows = corrected(read_log(train, schema))
    schema = rows.schema
    try:
        with engine.used(for_states=model.fits_on_workers):
            model.fit(
                rows,
                schema,
                valid=valid_log,
                seed=seed,
                device=device,
                on_event=show.event,
                checkpoint=checkpoint,
            )
    except ModelFileError as error:
        raise ModelFileError(f"{error} The option --restart deletes it.") from None
    seconds = perf_counter() - started
    model.save(out, overwrite=overwrite)
    checkpoint.unlink(missing_ok=True)
    show.line(f"Fitted {method} in {seconds:.1f} s; wrote {out}.")
    position = PositionCorrection.of(rows)
    if position is not None:
        show.line(position.words())
    lost = missing_of(rows, model)
    if lost is not None:
        show.line(f"Training rows. {lost}")
    table, valid_numbers = _measure(show, model, valid_log)
    result: dict[str, Any] = {
        "method": method,
        "model": str(out),
        "fit_seconds": seconds,
        "valid": valid_numbers,
        "missing": None if lost is None else lost.to_dict(),
        "position": None if position is None else position.to_dict(),
    }
    if (health := getattr(model, "health", None)) is not None:
        result["health"] = health.to_dict()
    show.result(table, result)


def _for_workers(
    engine: EngineChoice, model: Any, train: Tables, valid: Tables | None, schema: Any
) -> "LogBlocks | None":
    """Return the blocks that workers read themselves, where a fit takes them so."""
    from harmonrank.data.reading.table_paths import table_paths
    from harmonrank.data.rows.log_blocks import LogBlocks

    # Validation rows that are not given are set aside in memory, as one process does it.
    alike = model.fits_on_workers and (valid is not None or not model.uses_valid)
    takes = engine.is_cluster and alike and schema.position is None
    return LogBlocks(train, schema) if takes and table_paths(train)[0] == "parquet" else None


def _fitted_in_blocks(
    show: Any,
    model: Any,
    blocks: "LogBlocks",
    valid: Tables | None,
    memory: str | None,
    out: Path,
    overwrite: bool,
    told: dict[str, Any],
) -> tuple[Any, dict[str, Any]]:
    """Fit a model on a table of which one block at a time is in memory, and write it."""
    from time import perf_counter

    from harmonrank.data import read_log
    from harmonrank.data.rows.memory import memory_limit
    from harmonrank.evaluation.partitioned import partitioned_quality, put_into
    from harmonrank.fusion.fitting.block_fit import fit_in_blocks, rows_within
    from harmonrank.fusion.fitting.log_facts import measurable
    from harmonrank.fusion.quality.block_quality import sampled_requests
    from harmonrank.fusion.quality.position_quality import PositionCorrection

    started = perf_counter()
    most = rows_within(blocks.schema, memory_limit(memory))
    exam = None if valid is None else in_blocks(valid, blocks.schema, memory)
    few = None if valid is None or exam is not None else read_log(valid, blocks.schema)
    fitted = fit_in_blocks(model, blocks, most_rows=most, valid=exam or few, **told)
    seconds = perf_counter() - started
    model.save(out, overwrite=overwrite)
    show.line(f"Fitted {model.name} in {seconds:.1f} s; wrote {out}.")
    show.line(fitted.words())
    facts, position = fitted.facts, None
    if facts.places is not None:
        position = PositionCorrection.of_sums(facts.places, facts.schema)
        show.line(position.words())
    lost = fitted.facts.missing_scores()
    if lost is not None:
        show.line(f"Training rows. {lost}")
    table = numbers = None
    if exam is not None:
        sampled = sampled_requests(exam)
        quality = model.evaluate(sampled.log)
        if measurable(exam.schema):
            quality = put_into(partitioned_quality(model, exam), quality)
        show.line(f"Validation rows. {sampled.words()}")
        table, numbers = quality.to_table(), quality.to_dict()
    elif few is not None:
        table, numbers = _measure(show, model, few)
    result: dict[str, Any] = {
        "fit_seconds": seconds,
        "valid": numbers,
        "missing": None if lost is None else lost.to_dict(),
        "position": None if position is None else position.to_dict(),
        "blocks": {"rows": fitted.facts.rows, "fitted_rows": fitted.rows, "blocks": len(blocks)},
    }
    if (health := getattr(model, "health", None)) is not None:
        result["health"] = health.to_dict()
    return table, result


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


def _measure(show: Any, model: Any, valid: Any) -> tuple[Any, Any]:
    """Return the table and the numbers of the validation rows, if there are any that serve."""
    from harmonrank.support.errors import DataError

    if valid is None:
        return None, None
    try:
        quality = model.evaluate(valid)
    except DataError as error:
        # The model is fitted and written: rows that cannot measure it are no failure.
        show.line(f"Not measured on the validation rows: {error}")
        return None, None
    return quality.to_table(), quality.to_dict()
