"""Pictures: charts as files, drawn by a browser that nobody sees."""

__all__ = ["find_browser", "write_page_pictures", "write_picture", "write_pictures"]

import os
import re
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Sequence
from json import loads
from pathlib import Path
from tempfile import TemporaryDirectory

from harmonrank.reports.facts import Facts
from harmonrank.reports.html import Section, asset, page
from harmonrank.reports.plots import Plot
from harmonrank.reports.run import Run
from harmonrank.reports.sections import html_page, sections
from harmonrank.support.errors import DependencyError, OutputError
from harmonrank.support.storage.files import new_file, new_folder, write_json

LIST = "figures.json"
"""The file that names the pictures of a folder, and shows that we made it."""

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_OPTIONS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--allow-file-access-from-files",
    # Timers of the page run ahead of the clock, up to here; drawing itself takes what it takes.
    "--virtual-time-budget=600000",
    "--dump-dom",
)
_SECONDS = 300
_ANSWER = re.compile(r'<pre id="pictures">(.*?)</pre>', re.DOTALL)


def find_browser() -> str:
    """Return the command of a Chromium browser; HARMONRANK_BROWSER names one of your own."""
    own = os.environ.get("HARMONRANK_BROWSER")
    for name in [own] if own else _BROWSERS:
        browser = shutil.which(name)
        if browser:
            return browser
    if own:
        raise DependencyError(f"HARMONRANK_BROWSER must name a browser. Got '{own}'.")
    raise DependencyError(
        "Pictures need a Chromium browser and none was found. Install one, such as Debian's "
        "package chromium, or set HARMONRANK_BROWSER to its path."
    )


def write_pictures(facts: Facts, folder: str | Path) -> list[str]:
    """Write every chart as NAME.png into a folder of their own; return the names.

    Raises:
        DependencyError: Plotly or a Chromium browser is missing.
    """
    return write_page_pictures(html_page(facts), sections(facts), folder)


def write_page_pictures(whole: str, parts: Sequence[Section], folder: str | Path) -> list[str]:
    """Write every chart of a page with these sections, as `write_pictures` does."""
    titles = {plot.name: plot.title for part in parts for plot in part.plots}
    pictures = _pictures(whole, "png")
    if set(pictures) != set(titles):
        raise OutputError(f"{len(pictures)} of {len(titles)} pictures were drawn; try again.")
    with new_folder(folder, holds=LIST, overwrite=True) as partial:
        for name, image in pictures.items():
            (partial / f"{name}.png").write_bytes(image)
        write_json(partial / LIST, titles)
    return list(titles)


def write_picture(plot: Plot, path: str | Path) -> None:
    """Write one chart as SVG or PNG, by the suffix of the file."""
    path = Path(path)
    whole = page("", Run("", None, "", {}), (), [Section("chart", "", "", (plot,))])
    (image,) = _pictures(whole, path.suffix.removeprefix(".")).values()
    with new_file(path, overwrite=True) as partial:
        partial.write_bytes(image)


def _pictures(whole: str, form: str) -> dict[str, bytes]:
    """Return the image of every chart of a page, by its name."""
    browser = find_browser()
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "page.html"
        before, _, after = whole.rpartition("</body>")
        script = f"<script>{asset('pictures.js').replace('$format', form)}</script></body>"
        path.write_text(before + script + after, encoding="utf-8")
        drawn = _drawn(browser, path, Path(scratch) / "profile")
    return {name: b64decode(image) for name, image in drawn.items()}


def _drawn(browser: str, page: Path, profile: Path) -> dict[str, str]:
    options = [*_OPTIONS, f"--user-data-dir={profile}"]
    # Chromium's own sandbox does not run as root, as in most containers.
    options += ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    try:
        done = subprocess.run(
            [browser, *options, page.as_uri()], capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OutputError(f"{browser} did not draw the pictures: {error}.") from None
    answer = _ANSWER.search(done.stdout)
    if answer is None:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise OutputError(f"{browser} did not draw the pictures: {last}.")
    pictures: dict[str, str] = loads(answer.group(1))
    return pictures
