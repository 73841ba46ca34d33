"""Impressions: what this row's buyer was shown and did not engage with."""

from hatchway.data.row_table import RowTable
from hatchway.negatives.sources import Source
from hatchway.negatives.table_columns import TableColumns


class Impressions(TableColumns):
    """At most ``most`` of the items that were shown to the row's buyer and not engaged with.

    A shown item was chosen by whoever showed it: these negatives teach what separates the items that are shown, not
    what separates them from the rest of the catalogue. Beside others they are a few hard ones; alone they made
    retrieval worse (Huang et al. 2020).

    Args:
        table: the lists, by engagement row; :func:`hatchway.data.impressions.shown_not_engaged` makes it.
        most: how many of a row's items become columns at most; where it is not whole, the whole number below it or,
            with the chance of its fraction, one more.
        weight: above 0: a column counts as so much; 1 for one.

    Raises:
        SettingsError: ``most`` is negative or the weight is not above 0.
    """

    def __init__(self, table: RowTable, most: float, weight: float = 1.0) -> None:
        super().__init__(table, most, Source.IMPRESSIONS, weight)
