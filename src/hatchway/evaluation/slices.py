"""Parts of an evaluation looked at alone: popular and rare items, new items, buyers with long and short histories."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Int64
from hatchway.evaluation.cases import Cases

POPULARITY = ("head", "torso", "tail", "new")


@dataclass(frozen=True, eq=False)
class Slice:
    """Some of the relevant items of an evaluation.

    A slice of items takes from each case the relevant items in it, at the ranks they have among *all* candidates, and
    leaves out cases without any; so the hits of head, torso, tail and new add up to all hits. A slice of cases takes
    all relevant items of the cases in it.

    Attributes:
        kind: ``"popularity"`` or ``"history"``.
        name: the slice's name within its kind.
        rule: what is in it, in words.
        chosen: [R] bool over the relevant items of the cases.
    """

    kind: str
    name: str
    rule: str
    chosen: npt.NDArray[np.bool_]


def popularity_classes(counts: Int64, head_share: float, torso_share: float) -> npt.NDArray[np.int8]:
    """Return the class of every item, [N] int8, a position in :data:`POPULARITY`.

    Walking from the most popular item down, an item belongs to the head while the items strictly more popular than it
    hold less than ``head_share`` of all training positives, to the torso while they hold less than ``head_share +
    torso_share``, and to the tail after that. Items of equal count are so never parted. An item without a training
    positive is new, whatever its age in the catalogue.

    Args:
        counts: [N] training positives of each item.
        head_share: share of the training positives.
        torso_share: share of the training positives.

    >>> popularity_classes(np.array([6, 3, 1, 1, 1, 0]), 1 / 3, 1 / 3).tolist()  # 12 positives, 4 and 8 are the edges
    [0, 1, 2, 2, 2, 3]
    """
    values, level = np.unique(counts, return_inverse=True)
    mass = values * np.bincount(level)
    more_popular = (mass.sum() - np.cumsum(mass))[level] / max(int(mass.sum()), 1)
    classes = np.searchsorted([head_share, head_share + torso_share], more_popular, side="right")
    return np.where(counts == 0, 3, classes).astype(np.int8)


def popularity_slices(cases: Cases, counts: Int64, head_share: float, torso_share: float) -> list[Slice]:
    """Return the slices by training popularity of the relevant item; see :func:`popularity_classes`."""
    classes = popularity_classes(counts, head_share, torso_share)
    mine = classes[cases.relevant_items]
    slices = []
    for number, name in enumerate(POPULARITY):
        members = counts[classes == number]
        slices.append(Slice("popularity", name, _span(members), mine == number))
    return slices


def _span(counts: Int64) -> str:
    """Say how many items these are the counts of, and between what they lie."""
    if not len(counts):
        return "no item"
    low, high = int(counts.min()), int(counts.max())
    span = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{len(counts):,} items with {span} training positives"


def history_slices(cases: Cases, edges: tuple[int, ...]) -> list[Slice]:
    """Return the slices by how many earlier engagements the query knows.

    Args:
        cases: the Q cases.
        edges: ascending lengths at which a new bucket begins; (1, 5) makes 0, 1-4 and 5+.
    """
    bucket = np.searchsorted(edges, cases.history_length, side="right")
    mine = np.repeat(bucket, np.diff(cases.relevant_offsets))
    slices = []
    for number, low in enumerate((0, *edges)):
        last = number == len(edges)
        high = 0 if last else edges[number] - 1
        name = f"{low}+" if last else f"{low}" if low == high else f"{low}-{high}"
        slices.append(Slice("history", name, f"{name} earlier engagements", mine == number))
    return slices
