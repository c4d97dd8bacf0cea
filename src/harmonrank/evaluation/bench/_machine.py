"""Machine: the facts without which a time means nothing."""

__all__ = ["machine"]

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = (
    "harmonrank", "numpy", "numba", "torch", "polars",
    "torchsort", "onnxruntime", "scikit-learn", "libauc", "uvicorn", "fastapi",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """Return processor, cores, versions of packages, and how busy the machine is.

    >>> machine()["cores"] >= 1
    True
    """
    facts: dict[str, Any] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "platform": platform.platform(),
        "python": platform.python_version(),
    }
    if hasattr(os, "getloadavg"):
        facts["load"] = round(os.getloadavg()[0], 2)
    return facts | {name: found for name in _PACKAGES if (found := _version(name))}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
