"""`harmonrank serve`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts.options import Show, at_option, parse_pairs, path_option, shown
from harmonrank.support.errors import UsageError


@click.command("serve")
@click.argument("target", metavar="MODEL|REGISTRY", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, help="0 takes any that is free.")
@click.option("--workers", default=1, show_default=True, help="Processes that answer.")
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
@path_option("--api-key-file", metavar="FILE", help="Holds the key; else HARMONRANK_API_KEY.")
@click.option("--anonymous", is_flag=True, help="Let other machines ask without a key.")
@path_option("--tls-cert", metavar="FILE", help="Certificate chain, PEM.")
@path_option("--tls-key", metavar="FILE", help="Its private key, PEM.")
@click.option("--max-bytes", default=16 << 20, show_default=True, help="Of a request's body.")
@click.option("--max-rows", default=100_000, show_default=True, help="Candidates in a request.")
@click.option("--queue", default=256, show_default=True, help="Waiting requests of a worker.")
@click.option("--timeout", default=10.0, show_default=True, help="Seconds for a body, and a turn.")
@click.option("--grace", default=10.0, show_default=True, help="Seconds to end what was begun.")
@click.option("--access-log", is_flag=True, help="Log every request, not only failures.")
@shown
def command(
    target: Path,
    points: tuple[str, ...],
    api_key_file: Path | None,
    anonymous: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
    show: Show,
    **settings: Any,
) -> None:
    """Answer requests over HTTP: Open Inference Protocol v2 and POST /v1/rank.

    Given a registry, its current version is served, and a new one as soon as it is published.
    Without --host only this machine can ask. --json writes the address when the service answers.
    """
    from harmonrank.serving import ServeConfig
    from harmonrank.serving.supervisor import serve
    from harmonrank.support.options import checked_options

    given = {
        "target": str(target),
        "points": dict(_point(text) for text in points),
        "tls_cert": None if tls_cert is None else str(tls_cert),
        "tls_key": None if tls_key is None else str(tls_key),
        **settings,
    }
    config = ServeConfig(**checked_options("serve", ServeConfig, given))

    def on_ready(address: str) -> None:
        show.line(f"Serving {target} at {address}")
        show.result(None, {"address": address})

    serve(config, key=_key(api_key_file), anonymous=anonymous, on_ready=on_ready)


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
