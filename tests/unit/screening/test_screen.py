"""The screen: which reason holds for a pair, the same from every side, with unknown sellers and absent parts."""

import numpy as np
import pytest
import torch

from hatchway.errors import DataError
from hatchway.negatives.ledger import account, with_masked
from hatchway.negatives.sources import Reason
from hatchway.negatives.uniform import Uniform
from hatchway.screening.screen import Screen
from hatchway.screening.similar import SimilarItems

SELLERS = np.array([7, 7, -1, -1, 2, 2])


def some() -> Screen:
    """Return a screen of six items: sellers 7 7 ? ? 2 2, photos 0-1 and 0-2 and 3-5, titles 0-2 and 4-1."""
    return Screen(
        sellers=SELLERS,
        photos=SimilarItems.from_pairs(6, np.array([0, 0, 3]), np.array([1, 2, 5])),
        titles=SimilarItems.from_pairs(6, np.array([0, 4]), np.array([2, 1])),
    )


def told(screen: Screen, positive: int, candidate: int) -> int:
    """Ask the obvious way, one pair and one reason after another."""
    if positive == candidate:
        return int(Reason.SAME_ITEM)
    sellers = screen.sellers
    if sellers is not None and sellers[positive] >= 0 and sellers[positive] == sellers[candidate]:
        return 6
    if screen.photos is not None and candidate in screen.photos.of(positive):
        return 7
    return 8 if screen.titles is not None and candidate in screen.titles.of(positive) else 0


PARTS = [some(), Screen(sellers=SELLERS), Screen(titles=some().titles), Screen(photos=some().photos), Screen()]


@pytest.mark.parametrize("screen", PARTS, ids=["all", "sellers", "titles", "photos", "none"])
def test_the_first_reason_that_holds_is_told_by_every_question(screen: Screen) -> None:
    """Pairs, shared columns and own columns agree with the obvious way; copies of the positive are spared."""
    positives, candidates = np.indices((6, 6)).reshape(2, -1)
    wanted = np.array([told(screen, int(p), int(c)) for p, c in zip(positives, candidates, strict=True)])
    assert screen.pairs(positives, candidates).tolist() == wanted.tolist()
    assert screen.pairs(positives.reshape(6, 6), candidates.reshape(6, 6)).tolist() == wanted.reshape(6, 6).tolist()

    own = screen.own(torch.arange(6), torch.cat([torch.arange(6).expand(6, 6), torch.full((6, 1), -1)], 1))
    spared = np.where(wanted == int(Reason.SAME_ITEM), 0, wanted).reshape(6, 6)
    assert own.tolist() == np.pad(spared, ((0, 0), (0, 1))).tolist()

    columns = torch.tensor([5, 3, 0, 2, 1, 4, 0])
    ledger = account(torch.arange(6), columns, torch.full((7,), 2, dtype=torch.int8), [Uniform(6, 7)], "count")
    masked = with_masked(ledger, screen.coordinates(ledger.positives, ledger.items)).masked
    found = np.zeros((6, 7), int)
    found[masked.rows, masked.columns] = masked.reasons
    assert found.tolist() == spared[:, columns.numpy()].tolist()


def test_the_reasons_that_are_on_are_named() -> None:
    """A part that is absent is off."""
    assert some().reasons == (Reason.SELLER, Reason.PHOTO, Reason.TITLE)
    assert Screen().reasons == ()


def test_empty_batches_are_answered() -> None:
    """No rows, no columns, no pairs."""
    nothing = torch.empty(0, dtype=torch.int64)
    for positives, columns in ((nothing, nothing), (torch.arange(6), nothing), (nothing, torch.arange(6))):
        assert len(some().coordinates(positives, columns).rows) == 0
    assert some().pairs(np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []
    assert some().own(torch.arange(6), torch.empty(6, 0, dtype=torch.int64)).shape == (6, 0)


def test_items_and_parts_of_another_catalogue_are_refused() -> None:
    """The error names what came and what is allowed."""
    with pytest.raises(DataError, match=r"are of \[5, 6\] items"):
        Screen(sellers=SELLERS, photos=SimilarItems.none(5))
    with pytest.raises(DataError, match="item rows 6 to 6; allowed: 0 to 5"):
        some().pairs(np.array([0]), np.array([6]))
    with pytest.raises(DataError, match="give pairs"):
        some().pairs(np.array([0]), np.array([1, 2]))
