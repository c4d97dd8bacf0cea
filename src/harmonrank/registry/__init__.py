"""Registry: versions of a model on disk, published through guardrails, one of them current."""

from harmonrank.registry.diff import Diff
from harmonrank.registry.guardrails import Guardrails
from harmonrank.registry.registry import Registry
from harmonrank.registry.version import Check, Version

__all__ = ["Check", "Diff", "Guardrails", "Registry", "Version"]
