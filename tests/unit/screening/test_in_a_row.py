"""Which items a row shows once."""

import numpy as np

from hatchway.screening.in_a_row import alike_in_a_row
from hatchway.screening.screen import Screen
from hatchway.screening.similar import SimilarItems

SELLERS = np.array([1, 1, 2, -1, -1])
TITLES = SimilarItems.from_pairs(5, np.array([0, 0, 3]), np.array([1, 2, 4]))
PHOTOS = SimilarItems.from_pairs(5, np.array([2]), np.array([4]))


def test_titles_count_within_a_seller_and_photos_always() -> None:
    """Items 0 and 1 are one seller's; 0 and 2 are not, and of 3 and 4 nobody knows; 2 and 4 share a photo."""
    found = alike_in_a_row(Screen(sellers=SELLERS, photos=PHOTOS, titles=TITLES))
    assert found is not None
    assert [pair.tolist() for pair in found.first_of_pairs()] == [[0, 2], [1, 4]]


def test_what_is_not_known_says_nothing() -> None:
    """Without sellers titles are no reason; without both there are no lists."""
    assert alike_in_a_row(Screen(titles=TITLES)) is None
    assert alike_in_a_row(Screen(titles=TITLES, photos=PHOTOS)) is PHOTOS
    by_title = alike_in_a_row(Screen(sellers=SELLERS, titles=TITLES))
    assert by_title is not None
    assert by_title.of(0).tolist() == [1]
