"""The words of a bundle's items, and which are engaged with most: read once for each bundle."""

import numpy as np
import polars as pl

from hatchway.data.catalogue import Catalogue
from hatchway.index.protocol import Int64
from hatchway.serving.names import as_names

CATEGORY_LIMIT = 60
"""The most categories that a page lets one choose from."""


class Words:
    """What pages look items up by.

    Args:
        catalogue: the bundle's catalogue.

    Attributes:
        of_items: [N] titles and ids, in small letters.
        by_popularity: [N] row numbers, the items with most engagements first.
        categories: all of them, sorted; none where there are too many to choose from.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        frame = catalogue.frame
        title = pl.col("title").fill_null("") if catalogue.has("title") else pl.lit("")
        words = pl.concat_str(title, pl.lit(" "), pl.col("item").cast(pl.String)).str.to_lowercase()
        self.of_items = frame.select(words.alias("words"))["words"]
        engaged = frame["engagements"].to_numpy() if catalogue.has("engagements") else np.zeros(len(frame))
        self.by_popularity: Int64 = np.argsort(-engaged, kind="stable").astype(np.int64)
        self.categories: tuple[str, ...] = ()
        if catalogue.has("category"):
            counted = as_names(frame["category"]).drop_nulls().value_counts(sort=True).head(CATEGORY_LIMIT + 1)
            self.categories = tuple(sorted(counted["category"].to_list())) if len(counted) <= CATEGORY_LIMIT else ()
