"""Tabular: a result that prints, and shows in a notebook, as its table."""

__all__ = ["Tabular"]

from abc import ABC, abstractmethod

from harmonrank.table._table import Table


class Tabular(ABC):
    """Shows itself by `to_table`."""

    @abstractmethod
    def to_table(self) -> Table:
        """Return what a person reads."""

    def __repr__(self) -> str:
        return self.to_table().to_text()

    def _repr_html_(self) -> str:
        return self.to_table().to_html()
