"""What a market's buyers were shown, as rows of features, and small rankers trained on them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from trials import LIKED, TEST_DAYS, Market

from hatchway.randomness import stream
from hatchway.simulation.listings import DAY
from hatchway.simulation.mistakes import wanted

NEGATIVES, HISTORY = 10, 10
ENGAGED = ("save", "message")


@dataclass(frozen=True, eq=False)
class Pages:
    """A market's pages. All items are rows of the catalogue, which are the store's ids less one.

    Attributes:
        market: the market.
    """

    market: Market

    @cached_property
    def shown(self) -> pl.DataFrame:
        """Every listing where a session first showed it, and whether it was saved or written about in the session."""
        events = self.market.store.events()
        engaged = events.filter(pl.col("event").is_in(ENGAGED)).select("session", "item").unique()
        shown = events.filter(pl.col("event") == "impression").sort("time", "position")
        shown = shown.unique(["session", "item"], keep="first", maintain_order=True)
        return shown.join(engaged.with_columns(engaged=True), on=["session", "item"], how="left").collect()

    @cached_property
    def engagements(self) -> tuple[np.ndarray, ...]:
        """Buyers, items and times of everything that was opened, saved or written about, in this order."""
        events = self.market.store.events().filter(pl.col("event").is_in(["view", *ENGAGED]))
        found = events.select("buyer", "item", "time").sort("buyer", "time").collect()
        return found["buyer"].to_numpy(), found["item"].to_numpy() - 1, found["time"].to_numpy()

    @cached_property
    def positives(self) -> tuple[np.ndarray, np.ndarray]:
        """Sorted item and second in one number each of what was saved or written about; and the first of each item."""
        events = self.market.store.events().filter(pl.col("event").is_in(ENGAGED)).select("item", "time").collect()
        keys = np.sort((events["item"].to_numpy() - 1) << 32 | self._since(events["time"].to_numpy()))
        return keys, np.searchsorted(keys, np.arange(len(self.items)) << 32)

    @cached_property
    def items(self) -> pl.DataFrame:
        """The catalogue, in row order."""
        return self.market.store.catalogue().frame.sort("item")

    @cached_property
    def words(self) -> list[frozenset[str]]:
        """The words of every title."""
        return [frozenset(title.lower().split()) for title in self.items["title"]]

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """Category, style and condition as numbers, the logarithm of the price, and the times of being on offer."""
        frame = self.items
        found = {
            name: frame[name].rank("dense").to_numpy().astype(float) for name in ("category", "style", "condition")
        }
        found |= {"price": np.log(frame["price"].to_numpy()), "listed": frame["listed"].to_numpy()}
        return found | {"gone": frame["gone"].fill_null(2**62).to_numpy()}

    def _since(self, times: np.ndarray) -> np.ndarray:
        return times - self.market.settings.start

    def features(self, pages: pl.DataFrame, items: np.ndarray) -> np.ndarray:
        """Return [n, 15] what is known of listings on pages, at the time of the page; the last is the slot.

        Args:
            pages: [n] rows of :attr:`shown`, for buyer, time, what the page is of, and the slot.
            items: [n] the listings.
        """
        has, times = self.columns, pages["time"].to_numpy()
        query = pages["query_item"].fill_null(0).to_numpy() - 1
        on_page = query >= 0
        past, there = self._history(pages["buyer"].to_numpy(), times)
        seen = np.maximum(there.sum(1), 1)
        keys, first = self.positives
        popular = np.searchsorted(keys, items << 32 | self._since(times)) - first[items]
        searched = [frozenset((text or "").split()) for text in pages["query"]]

        def alike(name: str) -> list[np.ndarray]:
            """Say whether page and item agree in a column, and how much of the buyer's history does."""
            mine = has[name][items]
            of_page = np.where(on_page, has[name][query] == mine, np.nan)
            return [of_page, ((has[name][past] == mine[:, None]) & there).sum(1) / seen]

        price = has["price"][items]
        gaps = np.where(there, np.abs(has["price"][past] - price[:, None]), 0.0).sum(1) / seen
        return np.column_stack(
            [
                *alike("category"),
                *alike("style"),
                np.where(on_page, np.abs(has["price"][query] - price), np.nan),
                np.where(seen > 0, gaps, np.nan),
                [len(self.words[q] & self.words[i]) if q >= 0 else 0 for q, i in zip(query, items, strict=True)],
                [len(words & self.words[i]) for words, i in zip(searched, items, strict=True)],
                price,
                np.log1p(np.maximum(times - has["listed"][items], 0)),
                np.log1p(popular),
                *(has[name][items] for name in ("category", "style", "condition")),
                pages["position"].to_numpy(),
            ]
        )

    def _history(self, buyers: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return [n, 10] the last items that buyers opened before times, and which of them there are."""
        of, items, at = self.engagements
        keys = of << 32 | self._since(at)
        end = np.searchsorted(keys, buyers << 32 | self._since(times))
        places = end[:, None] - 1 - np.arange(HISTORY)
        there = (places >= 0) & (of[np.maximum(places, 0)] == buyers[:, None])
        return items[np.maximum(places, 0)], there

    def _random(self, pages: pl.DataFrame, name: str) -> np.ndarray:
        """Draw a listing for each page, uniformly from what was on offer at its time."""
        generator, times = stream(self.market.seed, name), pages["time"].to_numpy()
        listed, gone = self.columns["listed"], self.columns["gone"]
        found = np.full(len(pages), -1)
        while (found < 0).any():
            open_rows = np.flatnonzero(found < 0)
            drawn = generator.integers(len(listed), size=len(open_rows))
            fits = (listed[drawn] <= times[open_rows]) & (gone[drawn] > times[open_rows])
            found[open_rows[fits]] = drawn[fits]
        return found

    def ranker(self, *, shown: bool) -> dict[str, float]:
        """Train a ranker and measure it on the last days.

        The slot is a feature in training, and the first one is put in when listings are scored.

        Args:
            shown: whether its negatives are what was shown and not engaged with; else listings drawn at random for the
                same pages.

        Returns:
            auc_slot: on what was shown, of engaged against not engaged in the same slot, over slots; auc_liked: on what
            was shown, of what the buyer truly likes; auc_random: of engaged against listings drawn at random.
        """
        frame, generator = self.shown, stream(self.market.seed, "pages")
        split = self.market.settings.start + (self.market.settings.days - TEST_DAYS) * DAY
        engaged = frame["engaged"].is_not_null()
        train = frame.filter(pl.col("time") < split, engaged)
        count = NEGATIVES * len(train)
        others = frame.filter(pl.col("time") < split, ~engaged)
        pages = others[generator.choice(len(others), min(count, len(others)), replace=False)]
        items = pages["item"].to_numpy() - 1 if shown else self._random(pages, "of training")
        rows = np.concatenate([self.features(train, train["item"].to_numpy() - 1), self.features(pages, items)])
        labels = np.repeat([1, 0], [len(train), len(pages)])
        # Trees are added until a tenth of the training rows, held out, shows no gain any more.
        model = HistGradientBoostingClassifier(random_state=self.market.seed, early_stopping=True).fit(rows, labels)

        def scores(of: pl.DataFrame, items: np.ndarray) -> np.ndarray:
            found = self.features(of, items)
            found[:, -1] = 1
            return np.asarray(model.decision_function(found))

        test = frame.filter(pl.col("time") >= split)
        items, label = test["item"].to_numpy() - 1, test["engaged"].is_not_null().to_numpy()
        score, slots = scores(test, items), test["position"].to_numpy()
        slot = [(label[at].sum(), roc_auc_score(label[at], score[at])) for at in (slots == s for s in np.unique(slots))]
        weights, found = np.array(slot).T
        liked = wanted(self.market.truth, test["buyer"].to_numpy(), items + 1, test["time"].to_numpy()) >= LIKED
        good = test.filter(pl.Series(label))
        against = scores(good, self._random(good, "of the last days"))
        both = np.concatenate([score[label], against])
        return {
            "auc_slot": float(weights @ found / weights.sum()),
            "auc_liked": float(roc_auc_score(liked, score)),
            "auc_random": float(roc_auc_score(np.repeat([1, 0], [label.sum(), len(against)]), both)),
        }
