"""`harmonrank serve`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts.model_options import at_option
from harmonrank.cli.parts.options import Show, parse_pairs, path_option, shown
from harmonrank.cli.parts.verb import setting, verb
from harmonrank.support.errors import UsageError


@verb("serve", example="harmonrank serve model --port 8080")
@click.argument("target", metavar="MODEL|REGISTRY", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, help="0 takes any that is free.")
@click.option("--workers", default=1, show_default=True, help="Processes that answer requests.")
@click.option("--name", default="harmonrank", show_default=True, help="The model's name.")
@at_option
@click.option(
    "--point",
    "points",
    multiple=True,
    metavar="NAME:A=2,B=1",
    help="One more operating point; may be repeated.",
)
@click.option(
    "--recalibrate",
    type=click.Choice(["ask", "auto", "off"]),
    default="ask",
    show_default=True,
    help="When an upstream model is replaced: an alarm, a new version, or nothing.",
)
@path_option(
    "--api-key-file", metavar="FILE", help="File with the API key; else HARMONRANK_API_KEY."
)
@click.option("--anonymous", is_flag=True, help="Answer other machines without a key.")
@click.option("--tls-cert", metavar="FILE", help="Certificate chain, PEM.")
@click.option("--tls-key", metavar="FILE", help="Private key of the certificate, PEM.")
@setting("--max-bytes", default=16 << 20, show_default=True, help="Largest request body.")
@setting("--max-rows", default=100_000, show_default=True, help="Most candidates in a request.")
@setting("--queue", default=256, show_default=True, help="Most requests that wait for a worker.")
@setting(
    "--timeout",
    default=10.0,
    show_default=True,
    help="Time limit in seconds for reading a request body, and for waiting in the queue.",
)
@setting(
    "--grace",
    default=10.0,
    show_default=True,
    help="Seconds that open requests have when the service is told to stop.",
)
@click.option(
    "--warm", is_flag=True, help="Compile what MODEL needs, keep it on disk and stop: for images."
)
@click.option("--access-log", is_flag=True, help="Log every request, not only failures.")
@shown
def command(
    target: Path,
    points: tuple[str, ...],
    api_key_file: Path | None,
    anonymous: bool,
    warm: bool,
    show: Show,
    **settings: Any,
) -> None:
    """Answer requests over HTTP: Open Inference Protocol v2 and POST /v1/rank.

    Given a registry, its current version is served, and a new one as soon as it is published.
    Without --host only this machine can ask. --json writes the address when the service answers.

    Kernels are kept beside the package, or where NUMBA_CACHE_DIR says: run it with --warm when an
    image is built, on the kind of processor that will serve. A service then starts at once, even
    where nothing can be written.
    """
    from harmonrank.serving import ServeConfig
    from harmonrank.serving.supervisor import serve
    from harmonrank.support.options import checked_options

    if warm:
        _warm(target, show)
        return
    given = {"target": str(target), "points": dict(_point(text) for text in points), **settings}
    config = ServeConfig(**checked_options("serve", ServeConfig, given))

    def on_ready(address: str) -> None:
        show.line(f"Serving {target} at {address}")
        show.result(None, {"address": address})

    serve(config, key=_key(api_key_file), anonymous=anonymous, on_ready=on_ready)


def _warm(target: Path, show: Show) -> None:
    """Compile what a model needs to score."""
    from harmonrank.fusion.scoring import warm
    from harmonrank.registry.target import load_target
    from harmonrank.serving.rank import warm_up
    from harmonrank.serving.runtime import Runtime

    fitted, _ = load_target(target)
    seconds = warm(fitted)
    warm_up(Runtime(fitted, ""))
    text = f"The kernels of {fitted.name} are ready ({seconds:.1f} s)."
    show.result(text, {"method": fitted.name, "seconds": seconds})


def _point(text: str) -> tuple[str, dict[str, float]]:
    name, colon, weights = text.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"--point takes NAME:A=2,B=1. Got '{text}'.")
    return name.strip(), parse_pairs(weights, "--point") or {}


def _key(file: Path | None) -> str | None:
    import os

    from harmonrank.serving.settings import KEY
    from harmonrank.support.storage.decoding import read_bytes

    if file is None:
        return os.environ.get(KEY) or None
    try:
        key = read_bytes(file).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--api-key-file '{file}' cannot be read: {error}.") from None
    if not key:
        raise UsageError(f"--api-key-file '{file}' is empty; write the key into it.")
    return key
