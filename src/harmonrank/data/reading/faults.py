"""Faults: everything that is wrong with a table, said at once."""

__all__ = ["Faults"]

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from harmonrank.support.errors import DataError, did_you_mean

_MOST = 20


@dataclass(frozen=True)
class Faults:
    """Gathers what is wrong with the columns of a table.

    Attributes:
        table: How errors call the table.
    """

    table: str
    _found: list[tuple[str, str]] = field(default_factory=list)

    def add(self, column: str, sentence: str) -> None:
        """Add a fault: the column with its role, and how the sentence about it goes on."""
        table = "the table" if self.table == "The table" else self.table
        self._found.append((f"{column} of {table} {sentence}", f"{column} {sentence}"))

    def present(self, there: Iterable[str], wanted: Iterable[str]) -> list[str]:
        """Return the wanted columns that are there once; note the others.

        Raises:
            DataError: None of them is there.
        """
        counts, found = Counter(there), []
        for name in dict.fromkeys(wanted):
            if counts[name] == 1:
                found.append(name)
                continue
            if counts[name]:
                rest = f"{counts[name]} columns named '{name}'; expected one, so rename or drop "
                fault = f"{rest}the others."
            else:
                hint = did_you_mean(name, counts) if counts else "It has no columns."
                fault = f"no column '{name}'. {hint}"
            self._found.append((f"{self.table} has {fault}", f"It has {fault}"))
        if not found:
            self.refuse()
        return found

    def refuse(self) -> None:
        """Raise one error: a sentence for a single fault, a list for several.

        Raises:
            DataError: There is a fault.
        """
        if not self._found:
            return
        if len(self._found) == 1:
            raise DataError(self._found[0][0])
        lines = [f"\n- {listed}" for _, listed in self._found[:_MOST]]
        if len(self._found) > _MOST:
            lines.append(f"\n- and {len(self._found) - _MOST} more.")
        raise DataError(f"{self.table} has {len(self._found)} faults:{''.join(lines)}")
