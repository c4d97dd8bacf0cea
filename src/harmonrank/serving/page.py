"""The page of a service: three files that need nothing else, and no network but the service."""

__all__ = ["PAGE", "page_file"]

from functools import cache
from importlib.resources import files

from harmonrank.serving.http import Response

PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
"""Which file a path is, and what it is."""

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
}


@cache
def page_file(path: str) -> Response:
    """Return a file of the page."""
    name, kind = PAGE[path]
    text = (files("harmonrank.serving") / "assets" / name).read_bytes()
    return Response(200, text, kind, _HEADERS)
