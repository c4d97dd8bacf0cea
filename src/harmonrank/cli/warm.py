"""`harmonrank warm`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.parts.options import Show, shown


@click.command("warm")
@click.argument("model", type=click.Path(path_type=Path))
@shown
def command(model: Path, show: Show) -> None:
    """Compile what MODEL needs to score, and keep it on disk for later processes.

    Kernels are kept beside the package, or where NUMBA_CACHE_DIR says. Run it when an image is
    built, on a machine with the processor of those that serve: a service then starts at once, even
    where nothing can be written.
    """
    from harmonrank.fusion import load
    from harmonrank.fusion.fitting.warming import warm
    from harmonrank.serving.rank import warm_up
    from harmonrank.serving.runtime import Runtime

    fitted = load(model)
    seconds = warm(fitted)
    warm_up(Runtime(fitted, ""))
    text = f"The kernels of {fitted.name} are ready ({seconds:.1f} s)."
    show.result(text, {"method": fitted.name, "seconds": seconds})
