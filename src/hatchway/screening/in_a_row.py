"""Which items a buyer would take for the same thing, side by side in one row."""

from hatchway.screening.screen import Screen
from hatchway.screening.similar import SimilarItems


def alike_in_a_row(screen: Screen) -> SimilarItems | None:
    """Return the items that a row should show once: near-identical photos, and one seller's titles that say the same.

    Titles of different sellers may say the same of different things; a negative is better left out then, but a buyer
    wants to see both.

    Args:
        screen: what is known of the catalogue.

    Returns:
        the lists, or None where the screen knows neither photos nor, with the sellers, titles.
    """
    titles = None
    if screen.titles is not None and screen.sellers is not None:
        first, second = screen.titles.first_of_pairs()
        same = (screen.sellers[first] >= 0) & (screen.sellers[first] == screen.sellers[second])
        titles = SimilarItems.from_pairs(len(screen.titles), first[same], second[same])
    if titles is None or screen.photos is None:
        return titles if screen.photos is None else screen.photos
    return screen.photos.union(titles)
