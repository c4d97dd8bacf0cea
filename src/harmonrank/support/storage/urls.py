"""Table URLs: which names are URLs, and how they are printed without secrets."""

__all__ = [
    "has_pattern",
    "is_url",
    "local_path",
    "protocol_of",
    "shown_url",
    "urls_of",
    "without_secrets",
]

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harmonrank.support.errors import DataError

_BEGIN = r"[A-Za-z][A-Za-z0-9+.\-]+(?:::[A-Za-z][A-Za-z0-9+.\-]+)*://"
_LOCAL, _WEB = ("file", "local"), ("http", "https")
# user:password@, in which a slash may be, as in keys of S3; but not the port of a host.
_PASSWORD = r"^[^/@:]*:(?![0-9]+(?:/|$))[^@]*@"


def is_url(name: object) -> bool:
    """Tell whether a name is a URL.

    >>> is_url("s3://logs/2026/*.parquet"), is_url("logs/2026.parquet"), is_url("C:/log.parquet")
    (True, False, False)
    """
    return isinstance(name, str) and re.match(_BEGIN, name.strip()) is not None


def urls_of(name: str) -> list[str]:
    """Return several URLs that are separated by commas; a comma within one stays in it.

    >>> urls_of("s3://a/x,y.parquet, s3://a/z.parquet")
    ['s3://a/x,y.parquet', 's3://a/z.parquet']
    """
    return [part.strip() for part in re.split(rf",(?=\s*{_BEGIN})", name)]


def protocol_of(url: str) -> str:
    """Return what stands before ://, in lower case."""
    return url.partition("://")[0].lower()


def local_path(url: str) -> Path | None:
    """Return the path that a file:// URL names; none of any other URL.

    >>> str(local_path("file:///logs/of%20may/*.parquet"))
    '/logs/of may/*.parquet'

    Raises:
        DataError: It names another machine.
    """
    if protocol_of(url) not in _LOCAL:
        return None
    host, slash, rest = url.partition("://")[2].partition("/")
    if host not in ("", "localhost") or not slash:
        raise DataError(
            f"'{shown_url(url)}' is no file of this machine; expected three slashes, as in "
            "'file:///logs/train.parquet'."
        )
    return Path(f"/{unquote(rest)}")


def has_pattern(url: str) -> bool:
    """Tell whether a URL is a glob; the ? of http begins a query."""
    if protocol_of(url) in _WEB:
        return any(sign in urlsplit(url).path for sign in "*[")
    return any(sign in url for sign in "*?[")


def shown_url(url: str) -> str:
    """Return a URL without possible secrets: user, password, and query such as a signature.

    >>> shown_url("https://me:word@logs.example/a.parquet?signature=abc")
    'https://logs.example/a.parquet'
    """
    begin, _, rest = url.partition("://")
    if begin.lower() in _WEB or "=" in rest.partition("?")[2]:  # elsewhere ? may be of a glob
        rest = re.split(r"[?#]", rest)[0]
    rest = re.sub(_PASSWORD, "", rest)
    host, slash, path = rest.partition("/")
    return f"{begin}://{host.rpartition('@')[2]}{slash}{path}"


def without_secrets(text: str) -> str:
    """Return a text in which URLs have no secrets.

    >>> without_secrets("403, url='https://logs.example/a?signature=abc'")
    "403, url='https://logs.example/a'"
    """
    return re.sub(rf"{_BEGIN}[^\s'\"<>)]+", lambda match: shown_url(match[0]), text)
