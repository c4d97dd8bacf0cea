"""Which rows are measured in blocks, and which need all of them in memory."""

__all__ = ["measurable", "require_measurable"]

from harmonrank.data import Schema
from harmonrank.support.errors import UsageError


def measurable(schema: Schema) -> bool:
    """Return whether rows in blocks are measured: neither positions nor other kinds of labels."""
    return schema.plain and schema.position is None


def require_measurable(schema: Schema) -> None:
    """Refuse what is measured with all rows in memory.

    Raises:
        UsageError: The schema has a position, or a graded or conditional objective.
    """
    schema.require_plain("Measuring in blocks, of a table larger than --memory or on a cluster,")
    if schema.position is not None:
        raise UsageError(
            f"Positions ('{schema.position}') are corrected with all rows in memory where a model "
            "is measured; raise --memory, or leave the position out."
        )
