"""Store systems: the file system that a URL is of, and what goes wrong with it, in one sentence."""

__all__ = ["WEB", "arrow_parquet", "asking", "system_of"]

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from importlib import import_module
from typing import Any

from harmonrank.support.errors import DataError, DependencyError, HarmonRankError
from harmonrank.support.extras import import_extra, remedy
from harmonrank.support.storage.urls import protocol_of, shown_url, without_secrets

WEB = ("http", "https")
"""Protocols of web servers."""

_DENIED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


def system_of(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path of the URL there."""
    fsspec = import_extra("fsspec", who=f"Reading '{shown_url(url)}'")
    protocol = protocol_of(url)
    if "::" in protocol:
        raise DataError(f"'{shown_url(url)}' joins several stores by '::'; expected one of them.")
    try:
        fsspec.get_filesystem_class(protocol)
    except ValueError:
        raise DataError(
            f"'{shown_url(url)}' is of a protocol that is not known, '{protocol}'; expected one of "
            "fsspec, such as s3, gs, az, https or file."
        ) from None
    except ImportError as error:
        raise DependencyError(
            f"'{shown_url(url)}' needs a package of its protocol: {_reason(error)}."
        ) from None
    system, path = fsspec.core.url_to_fs(url)
    return system, path


def arrow_parquet(url: str) -> Any:
    """Return the module that reads parquet by ranges of bytes."""
    try:
        return import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise DependencyError(
            f"Reading '{shown_url(url)}' needs the package 'pyarrow'; {remedy('fsspec')}."
        ) from None


@contextmanager
def asking(url: str) -> Iterator[None]:
    """Turn what goes wrong with a store into one sentence, without any secret of the URL."""
    try:
        yield
    except (HarmonRankError, MemoryError):
        raise
    except Exception as error:  # each store has errors of its own
        raise DataError(_sentence(url, error)) from None


def _sentence(url: str, error: BaseException) -> str:
    name = shown_url(url)
    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    states = [getattr(cause, "status", None) for cause in causes]
    if any(isinstance(e, PermissionError) for e in causes) or any(s in _DENIED for s in states):
        return (
            f"'{name}' may not be read: its store refuses permission; check the credentials that "
            "it finds in the environment or in its own files."
        )
    # Of the web, fsspec calls a file missing whatever went wrong; the cause tells.
    told = protocol_of(url) not in WEB or len(causes) == 1 or HTTPStatus.NOT_FOUND in states
    if isinstance(error, FileNotFoundError) and told:
        return f"There is no file '{name}'; check its name."
    return (
        f"'{name}' cannot be read as parquet: {_reason(causes[-1])}; check the URL, or write the "
        "file again."
    )


def _reason(error: BaseException) -> str:
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    # A path may be told without its host.
    return re.sub(r"\?[^\s'\"]*=[^\s'\"]*", "", without_secrets(line)).rstrip(".:")
