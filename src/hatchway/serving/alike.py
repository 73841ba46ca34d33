"""One of each in a row: of relists and near-duplicates the one that scores highest stands for the others."""

from dataclasses import dataclass, field

from hatchway.index.protocol import Int64
from hatchway.screening.similar import SimilarItems

_ASKED = -1


@dataclass
class OneOfEach:
    """Goes down a ranking and keeps of each group of items that are alike the first, which is the best.

    Two items are alike where the bundle's lists say so, or where one seller gave them the same title or photo. Being
    alike is asked of the kept item and the next one only, so a chain of items each like its neighbour is no group.

    Attributes:
        similar: the bundle's lists, for its own items; None where it has none.
        kept: places in the ranking that are kept.
        others: for each kept one the places of those that it stands for.
    """

    similar: SimilarItems | None
    kept: list[int] = field(default_factory=list)
    others: list[list[int]] = field(default_factory=list)
    _by_mark: dict[tuple[str, int], int] = field(default_factory=dict)
    _by_row: dict[int, int] = field(default_factory=dict)

    def already_shown(self, row: int, title: int, photo: int, alike: Int64) -> None:
        """Leave out what is like an item that the buyer has before them.

        Args:
            row: its row number.
            title: its mark of seller and title, 0 for none.
            photo: its mark of seller and photo, 0 for none.
            alike: the row numbers of items that are like it and of the same seller.
        """
        self._claim(row, title, photo, alike, _ASKED)

    def offer(self, place: int, row: int, title: int, photo: int) -> bool:
        """Take the next of the ranking; say whether it is kept.

        Args:
            place: its place in the ranking.
            row: its row number.
            title: its mark of seller and title, 0 for none.
            photo: its mark of seller and photo, 0 for none.
        """
        owner = self._by_row.get(row)
        if owner is None and title:
            owner = self._by_mark.get(("title", title))
        if owner is None and photo:
            owner = self._by_mark.get(("photo", photo))
        if owner is not None:
            if owner != _ASKED:
                self.others[owner].append(place)
            return False
        alike = self.similar.of(row) if self.similar is not None and row < len(self.similar) else None
        self._claim(row, title, photo, alike, len(self.kept))
        self.kept.append(place)
        self.others.append([])
        return True

    def _claim(self, row: int, title: int, photo: int, alike: Int64 | None, owner: int) -> None:
        """Let whatever is like an item be represented by it."""
        self._by_row.setdefault(row, owner)
        if title:
            self._by_mark.setdefault(("title", title), owner)
        if photo:
            self._by_mark.setdefault(("photo", photo), owner)
        for other in alike.tolist() if alike is not None else ():
            self._by_row.setdefault(other, owner)
