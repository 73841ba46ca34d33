"""The market as a whole: what must hold of every event, and the biases that it is there for."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from hatchway.simulation.buyers import taste
from hatchway.simulation.market import Market
from hatchway.simulation.settings import MarketSettings

SETTINGS = MarketSettings(listings=2_000, buyers=1_000, days=8)
START, DAY = 1_772_323_200, 86_400


@dataclass(frozen=True, eq=False)
class Simulated:
    """A market whose days are over."""

    market: Market
    events: pl.DataFrame
    catalogue: pl.DataFrame

    def of(self, *kinds: str) -> pl.DataFrame:
        """Return the events of some kinds."""
        return self.events.filter(pl.col("event").is_in(kinds))


def run(seed: int) -> Simulated:
    """Simulate a market to its end."""
    market = Market.open(SETTINGS, seed)
    events = pl.concat(list(market.days()))
    return Simulated(market, events, market.catalogue(photos=True))


@pytest.fixture(scope="module")
def simulated() -> Simulated:
    """Return one market."""
    return run(seed=5)


def auc(positive: npt.NDArray[np.float32], negative: npt.NDArray[np.float32]) -> float:
    """Return how often one of ``positive`` is above one of ``negative``."""
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, "left") + np.searchsorted(ordered, positive, "right")
    return float(below.mean() / 2 / len(negative))


def test_a_seed_is_one_market(simulated: Simulated) -> None:
    """The same seed gives the same events and catalogue, another seed others."""
    again, other = run(seed=5), run(seed=6)
    assert again.events.equals(simulated.events)
    assert again.catalogue.equals(simulated.catalogue)
    assert not other.catalogue["title"].equals(simulated.catalogue["title"])
    assert other.events["time"].to_list() != simulated.events["time"].to_list()


def test_events_are_in_the_order_of_time_and_within_the_days(simulated: Simulated) -> None:
    """Day after day, nothing before the first second or after the last."""
    time = simulated.events["time"]
    assert time.is_sorted()
    assert int(time[0]) >= START
    assert int(time[-1]) < START + 8 * DAY


def test_a_listing_has_events_only_while_it_is_there(simulated: Simulated) -> None:
    """None before it is listed, none after it is gone; a sale may be the very second."""
    there = simulated.events.join(simulated.catalogue.select("item", "listed", "gone"), on="item")
    assert (there["time"] >= there["listed"]).all()
    gone = there.filter(pl.col("gone").is_not_null())
    sale = pl.col("event") == "purchase"
    assert len(gone) > 1_000
    assert gone.select(((pl.col("time") < pl.col("gone")) | ((pl.col("time") == pl.col("gone")) & sale)).all()).item()


def test_a_single_piece_is_sold_once(simulated: Simulated) -> None:
    """No listing is bought more often than it has pieces; one that sold out is gone at its last sale."""
    sales = simulated.of("purchase").group_by("item").agg(pl.len().alias("sold"), pl.col("time").max().alias("last"))
    stock = simulated.market.world.listings.stock[sales["item"].to_numpy() - 1]
    sold = sales["sold"].to_numpy()
    assert len(sales) > 50
    assert (sold <= stock).all()
    out = sales.with_columns(stock=stock).filter(pl.col("sold") == pl.col("stock"))
    gone = out.join(simulated.catalogue.select("item", "gone"), on="item")
    assert (gone["gone"] <= gone["last"]).all()


def test_what_is_forgotten_is_written_about_and_never_sold(simulated: Simulated) -> None:
    """Stale listings stand in the way: they are shown, opened and written about, and nobody gets one."""
    stale = simulated.market.world.listings.stale
    assert stale[simulated.of("message")["item"].to_numpy() - 1].sum() > 10
    assert not stale[simulated.of("purchase")["item"].to_numpy() - 1].any()


def test_what_is_sold_is_sold_within_days(simulated: Simulated) -> None:
    """Half of what was listed within the eight days and sold was sold in the first five."""
    sales = simulated.of("purchase").join(simulated.catalogue.select("item", "listed"), on="item")
    waited = sales.filter(pl.col("listed") >= START).select((pl.col("time") - pl.col("listed")) / DAY).to_series()
    assert len(waited) > 20
    assert waited.median() < 5  # type: ignore[operator]


def test_nobody_does_the_same_thing_twice(simulated: Simulated) -> None:
    """A buyer saves, writes about and buys a listing at most once."""
    deeds = simulated.of("save", "message", "purchase").select("buyer", "item", "event")
    assert len(deeds) > 500
    assert not deeds.is_duplicated().any()


def test_whoever_buys_wrote_first_and_whoever_saves_looked_first(simulated: Simulated) -> None:
    """Every purchase follows a message of the buyer, every save and message a view."""
    first = simulated.events.group_by("buyer", "item").agg(
        [pl.col("time").filter(pl.col("event") == kind).min().alias(kind) for kind in ("view", "message")]
    )
    bought = simulated.of("purchase").join(first, on=["buyer", "item"], how="left")
    acted = simulated.of("save", "message").join(first, on=["buyer", "item"], how="left")
    assert (bought["message"] < bought["time"]).all()
    assert (acted["view"] < acted["time"]).all()


def test_a_page_has_distinct_listings_in_distinct_slots_and_never_its_own(simulated: Simulated) -> None:
    """A page is the impressions of one session at one second."""
    shown = simulated.of("impression")
    pages = shown.group_by("session", "time").agg(
        pl.len().alias("shown"), pl.col("item").n_unique().alias("items"), pl.col("position").n_unique().alias("slots")
    )
    assert (pages["items"] == pages["shown"]).all()
    assert (pages["slots"] == pages["shown"]).all()
    assert (shown["position"].min(), shown["position"].max()) == (1, 8)
    assert shown.filter(pl.col("item") == pl.col("query_item")).is_empty()


def test_views_come_from_what_was_shown(simulated: Simulated) -> None:
    """Every view has an impression of the same session, listing and slot before it."""
    keys = ["session", "item", "position"]
    shown = simulated.of("impression").group_by(keys).agg(pl.col("time").min().alias("shown"))
    views = simulated.of("view").join(shown, on=keys, how="left")
    assert len(views) > 1_000
    assert (views["shown"] < views["time"]).all()


def test_a_session_is_one_buyers_and_short(simulated: Simulated) -> None:
    """Apart from a sale that comes about later, a session lasts less than an hour."""
    sessions = simulated.of("impression", "view", "save", "message").group_by("session")
    facts = sessions.agg(pl.col("buyer").n_unique(), (pl.col("time").max() - pl.col("time").min()).alias("seconds"))
    assert (facts["buyer"] == 1).all()
    assert facts["seconds"].max() < 3_600  # type: ignore[operator]


def test_searches_name_what_is_needed(simulated: Simulated) -> None:
    """A search names a kind of furniture, and nobody who is on a listing's page searches."""
    with_query = simulated.events.filter(pl.col("query").is_not_null())
    assert (with_query["query_item"].null_count(), len(with_query)) == (len(with_query), len(with_query))
    texts = with_query["query"].unique().to_list()
    assert "sofa" in texts
    assert all(text.split()[-1] in {"sofa", "armchair", "chair", "table", "desk", "bed", "wardrobe", "bookcase",
                                    "sideboard", "lamp", "rug", "mirror"} for text in texts)  # fmt: skip


def test_most_listings_are_never_engaged_with_and_few_have_most(simulated: Simulated) -> None:
    """A never-engaged majority, a long tail: the busiest hundredth has an eighth of the engagements or more."""
    engaged = simulated.of("save", "message").group_by("item").len()["len"].sort(descending=True)
    assert len(engaged) < 0.5 * SETTINGS.listings
    assert engaged.head(SETTINGS.listings // 100).sum() > engaged.sum() / 8


def test_slots_further_down_are_opened_less_at_the_same_liking(simulated: Simulated) -> None:
    """Position bias: within each fifth of the true liking the first two slots are opened at least twice as often."""
    shown = simulated.of("impression")
    opened = simulated.of("view").select("session", "item", "position", pl.lit(value=True).alias("opened"))
    both = shown.join(opened.unique(), on=["session", "item", "position"], how="left")
    likings = taste_of(simulated, both)
    fifth = np.searchsorted(np.quantile(likings, [0.2, 0.4, 0.6, 0.8]), likings)
    hit = both["opened"].fill_null(value=False).to_numpy()
    slot = both["position"].to_numpy()
    for group in (2, 3, 4):  # what is not liked is hardly opened anywhere
        high, low = hit[(fifth == group) & (slot <= 2)].mean(), hit[(fifth == group) & (slot >= 7)].mean()
        assert high > 2 * low


def taste_of(simulated: Simulated, events: pl.DataFrame) -> npt.NDArray[np.float32]:
    """Return the true liking behind each event, on its day."""
    world = simulated.market.world
    likings = np.empty(len(events), np.float32)
    days = (events["time"].to_numpy() - START) // DAY
    who, what = events["buyer"].to_numpy() - 1, events["item"].to_numpy() - 1
    for day in range(SETTINGS.days):
        mine = days == day
        likings[mine] = taste(world.buyers, world.listings, who[mine], what[mine], day)
    return likings


def test_taste_decides_what_is_engaged_with(simulated: Simulated) -> None:
    """What was saved is liked better than what was only opened, and that better than what was only shown."""
    shown, viewed, saved = (taste_of(simulated, simulated.of(kind)) for kind in ("impression", "view", "save"))
    assert auc(viewed, shown) > 0.7
    assert auc(saved, viewed) > 0.6
    assert auc(saved, shown) > 0.8


def test_the_odds_of_a_save_are_those_of_the_rules(simulated: Simulated) -> None:
    """docs/market.md: saved with probability σ(liking − 4.6), so about .5 between 4.1 and 5.1 and .27 around 3.6."""
    first = simulated.of("view").unique(["buyer", "item"], keep="first", maintain_order=True)
    saved = simulated.of("save").select("session", "item", pl.col("time").alias("saved"))
    hit = first.join(saved, on=["session", "item"], how="left", maintain_order="left")
    soon = hit.select((pl.col("saved") - pl.col("time") < 95).fill_null(value=False)).to_series().to_numpy()
    likings = taste_of(simulated, first)
    for low, high, share in ((4.1, 5.1, 0.50), (3.1, 4.1, 0.27), (2.1, 3.1, 0.12)):
        inside = (likings > low) & (likings < high)
        assert inside.sum() > 300
        assert soon[inside].mean() == pytest.approx(share, abs=0.06)


def test_the_popular_is_shown_more_than_its_appeal_deserves(simulated: Simulated) -> None:
    """The old recommender's bias: what was engaged with early is shown more later, at the same true appeal."""
    appeal = simulated.market.world.listings.appeal
    half = START + SETTINGS.days * DAY // 2
    early = counts(simulated.of("save", "message").filter(pl.col("time") < half))
    late = counts(simulated.of("impression").filter(pl.col("time") >= half))
    there = (
        simulated.catalogue.select(
            (pl.col("listed") < START) & (pl.col("gone").is_null() | (pl.col("gone") > half + 2 * DAY))
        )
        .to_series()
        .to_numpy()
    )
    for low, high in ((-0.5, 0.5), (0.5, 1.5)):
        alike = there & (appeal > low) & (appeal < high)
        assert late[alike & (early >= 2)].mean() > 1.5 * late[alike & (early == 0)].mean()


def counts(events: pl.DataFrame) -> npt.NDArray[np.int64]:
    """Count events by listing."""
    return np.bincount(events["item"].to_numpy() - 1, minlength=SETTINGS.listings)


def test_popularity_beats_random_and_the_truth_beats_popularity(simulated: Simulated) -> None:
    """On the last two days, ranking by earlier saves finds more than chance, and ranking by the true taste far more."""
    cut = START + 6 * DAY
    positives = simulated.of("save", "message")
    past, future = positives.filter(pl.col("time") < cut), positives.filter(pl.col("time") >= cut)
    popularity = counts(past).astype(np.float32)
    listed, gone = (simulated.catalogue[name].fill_null(2**62).to_numpy() for name in ("listed", "gone"))
    world, everything = simulated.market.world, np.arange(SETTINGS.listings)
    found = {"popularity": 0, "truth": 0}
    for buyer, item, time in future.select("buyer", "item", "time").iter_rows():
        there = (listed <= time) & (gone > time)
        who = np.full(SETTINGS.listings, buyer - 1)
        likings = taste(world.buyers, world.listings, who, everything, (time - START) // DAY)
        for name, score in (("popularity", popularity), ("truth", likings)):
            rank = (score[there] > score[item - 1]).sum() + (score[there] == score[item - 1]).sum() / 2
            found[name] += rank < 20
    chance = 20 / 1_200 * len(future)  # about 1,200 of the 2,000 are for sale at any time
    assert found["popularity"] > 4 * chance
    assert found["truth"] > 1.5 * found["popularity"]


def test_the_catalogue_names_its_photos(simulated: Simulated) -> None:
    """Photos lie a thousand to a folder, one a listing."""
    photos = simulated.catalogue["photo"]
    assert (photos[0], photos[1_336]) == ("photos/00000/1.jpg", "photos/00001/1337.jpg")
    assert photos.n_unique() == SETTINGS.listings
    assert "photo" not in simulated.market.catalogue(photos=False).columns
