"""Made: which code a stored result was made by."""

__all__ = ["made_by"]

import subprocess
from pathlib import Path

from harmonrank import __version__


def made_by() -> dict[str, str | None]:
    """Return the commit and the version of the code that runs.

    The commit ends in '-dirty' where files were changed since, and is None outside of a clone.
    """
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "version": __version__}
    return {"commit": done.stdout.strip(), "version": __version__}
