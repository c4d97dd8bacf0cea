"""`harmonrank warm`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.options import numbers


@click.command("warm")
@click.argument("model", type=click.Path(path_type=Path))
@numbers
def command(model: Path, json_file: str | None, quiet: bool) -> None:
    """Compile what MODEL needs to score, and keep it on disk for later processes.

    Kernels are kept beside the package, or where NUMBA_CACHE_DIR says. Run it when an image is
    built, on a machine with the processor of those that serve: a service then starts at once, even
    where nothing can be written.
    """
    from harmonrank.cli.show import Show
    from harmonrank.methods import load
    from harmonrank.methods.warming import warm
    from harmonrank.serving.rank import warm_up
    from harmonrank.serving.runtime import Runtime

    fitted = load(model)
    seconds = warm(fitted)
    warm_up(Runtime(fitted, ""))
    with Show(quiet=quiet, json_file=json_file) as show:
        text = f"The kernels of {fitted.name} are ready ({seconds:.1f} s)."
        show.result(text, {"method": fitted.name, "seconds": seconds})
