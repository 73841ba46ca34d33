"""Mined negatives: items that an earlier model placed near the row's context, from a table that is handed down."""

from hatchway.data.row_table import RowTable
from hatchway.negatives.sources import Source
from hatchway.negatives.table_columns import TableColumns


class Mined(TableColumns):
    """At most ``most`` of the items that were mined for the row.

    Two a positive did best where it was tried; more made retrieval worse (Huang et al. 2020).

    Args:
        table: the lists, by engagement row.
        most: how many of a row's items become columns at most; where it is not whole, the whole number below it or,
            with the chance of its fraction, one more.
        weight: above 0: a column counts as so many; 1 for one.

    Raises:
        SettingsError: ``most`` is negative or the weight is not above 0.
    """

    def __init__(self, table: RowTable, most: float = 2, weight: float = 1.0) -> None:
        super().__init__(table, most, Source.MINED, weight)
