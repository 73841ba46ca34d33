"""Posts, swaps and restarts: what is gone is never shown, what is new is found, and nothing is lost."""

import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from shops import make_shop, shop_frame

from hatchway.data.identifiers import Identifiers
from hatchway.errors import ArtefactError, FailureError, UnknownIdError, UsageError
from hatchway.index.bundle import Bundle
from hatchway.serving.filters import Filters
from hatchway.serving.journal import Journal
from hatchway.serving.posts import RefusedPostError
from hatchway.serving.service import Service
from hatchway.serving.settings import ServingSettings
from hatchway.serving.state import JOURNAL

NOON = 1_772_452_800  # 2 March 2026
EVENING = NOON + 6 * 3600


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    """Return the bundle of a shop of sixty listings, whose data ends with 1 March 2026."""
    return make_shop(tmp_path / "bundle", shop_frame(60), day="2026-03-01")


def row_of(service: Service, item: str, k: int, filters: Filters | None = None) -> list[int | str]:
    """Return the ids in the row of an item's page."""
    shelf = service.now()
    found = shelf.recommender.similar(shelf.stock.row(item), k, filters or Filters())
    return shelf.stock.ids(found.rows)


def new_sofa(item: str = "new", **columns: object) -> dict[str, object]:
    """Return a listing as it is posted."""
    return {"item": item, "title": "sofa number 999", "category": "sofa", "price": 30, "seller": "s9", **columns}


def test_what_is_gone_is_in_no_row(bundle: Bundle) -> None:
    """Gone by one post, back by another; the row stays as long as it was, however many of its best are gone."""
    service = Service(bundle, clock=lambda: NOON)
    first = row_of(service, "i0", 10)
    taken, _ = service.post([{"item": item, "gone": True} for item in first])
    assert (taken.new, taken.changed, taken.gone) == (0, 0, 10)
    second = row_of(service, "i0", 10)
    assert len(second) == 10
    assert not set(first) & set(second)
    service.post([{"item": item, "gone": NOON - 5} for item in second])
    third = row_of(service, "i0", 60)
    assert len(third) == 60 - 1 - 20
    assert not {*first, *second} & set(third)
    service.post([{"item": first[0], "gone": None}])
    assert row_of(service, "i0", 10)[0] == first[0]
    everything = [str(item) for item in shop_frame(60)["item"]]
    service.post([{"item": item, "gone": True} for item in everything])
    assert row_of(service, "i0", 10) == []


def test_a_new_listing_is_found_at_once(bundle: Bundle) -> None:
    """In the rows of others where its score puts it, with a row of its own, by search, and changed by a later post."""
    service = Service(bundle, clock=lambda: NOON)
    with pytest.raises(UnknownIdError):
        service.now().stock.row("new")
    taken, shelf = service.post([new_sofa(), new_sofa("late", gone=NOON)])
    assert (taken.new, taken.changed, taken.gone) == (2, 0, 1)
    row = shelf.stock.row("new")
    assert row == 60
    whole = np.concatenate([bundle.vectors, shelf.stock.posted.vectors[:1]])
    scores = whole.astype(np.float64) @ whole[0].astype(np.float64)
    wanted = [int(other) for other in np.argsort(-scores, kind="stable") if other != 0]
    found = shelf.recommender.similar(0, 61)
    assert found.rows.tolist() == wanted
    np.testing.assert_allclose(found.scores, scores[wanted], rtol=1e-6)
    own = shelf.recommender.similar(row, 5)
    assert (
        own.rows.tolist()
        == [int(other) for other in np.argsort(-(whole @ whole[60]), kind="stable") if other != 60][:5]
    )
    assert shelf.recommender.recommend([row], 5).rows.tolist() == own.rows.tolist()
    assert shelf.listings.search("999", 5)[0].tolist() == [61, 60]
    assert "late" not in row_of(service, "i0", 62)
    before = shelf.stock.posted.vectors[0].copy()
    taken, later = service.post([{"item": "new", "title": "lamp", "category": "lamp"}])
    assert (taken.new, taken.changed) == (0, 1)
    assert later.stock.describe(np.array([60]))[0]["price"] == 30
    assert not np.array_equal(later.stock.posted.vectors[0], before)
    assert np.array_equal(shelf.stock.posted.vectors[0], before), "a shelf that a request holds never changes"
    service.post([{"item": "new", "gone": True}])
    assert "new" not in row_of(service, "i0", 62)


def test_a_new_listing_scores_as_the_bundle_that_knows_it(bundle: Bundle, tmp_path: Path) -> None:
    """Posted, or in the catalogue of a bundle of the same model: the same vector."""
    service = Service(bundle)
    listing = shop_frame(1, first=60).to_dicts()[0]
    _, shelf = service.post([listing])
    frame = pl.concat([shop_frame(60), shop_frame(1, first=60)])
    told = make_shop(tmp_path / "told", frame)  # the same categories, but scaled by other prices
    posted = shelf.stock.posted.vectors[0]
    assert float(posted @ told.vectors[60]) > 0.98


def test_changes_of_known_items(bundle: Bundle) -> None:
    """A price that was posted is the one that is filtered by and shown; the vector stays that of training."""
    service = Service(bundle, clock=lambda: NOON)
    dear = Filters(price_min=1000)
    assert row_of(service, "i0", 5, dear) == []
    _, shelf = service.post([{"item": "i7", "price": 1500, "seller": "s new", "category": "boat"}])
    assert row_of(service, "i0", 5, dear) == ["i7"]
    assert row_of(service, "i0", 5, Filters(categories=("boat",))) == ["i7"]
    assert row_of(service, "i0", 5, Filters(sellers=("s new",))) == ["i7"]
    (entry,) = shelf.listings.at(np.array([7]))
    assert (entry.price, entry.seller, entry.category, entry.title) == ("1,500", "s new", "boat", "lamp number 7")


@pytest.mark.parametrize(
    ("listing", "place", "said"),
    [
        ({}, ("listings", 1, "item"), "is missing"),
        ({"item": None}, ("listings", 1, "item"), "should be an id"),
        ({"item": True}, ("listings", 1, "item"), "should be an id"),
        ({"item": ""}, ("listings", 1, "item"), "1 to 256 characters"),
        ({"item": "x" * 257}, ("listings", 1, "item"), "1 to 256 characters"),
        ({"item": "\ud800"}, ("listings", 1, "item"), "no Unicode"),
        ({"item": 10**400}, ("listings", 1, "item"), "64-bit"),
        ({"item": "i1", "prise": 3}, ("listings", 1, "prise"), "is no column; columns are title, category"),
        ({"item": "i1", "price": float("nan")}, ("listings", 1, "price"), "finite"),
        ({"item": "i1", "price": float("inf")}, ("listings", 1, "price"), "finite"),
        ({"item": "i1", "price": 10**400}, ("listings", 1, "price"), "finite"),
        ({"item": "i1", "price": -1}, ("listings", 1, "price"), "at least 0"),
        ({"item": "i1", "price": "12"}, ("listings", 1, "price"), "a number"),
        ({"item": "i1", "price": True}, ("listings", 1, "price"), "a number"),
        ({"item": "i1", "title": "x" * 2001}, ("listings", 1, "title"), "2,001 characters"),
        ({"item": "i1", "title": {"a": 1}}, ("listings", 1, "title"), "a text"),
        ({"item": "i1", "title": "\udfff"}, ("listings", 1, "title"), "no Unicode"),
        ({"item": "i1", "gone": "yes"}, ("listings", 1, "gone"), "a number"),
        ({"item": "i1", "gone": 10**12}, ("listings", 1, "gone"), "1970 and 2099"),
        ({"item": "i1", "listed": -5}, ("listings", 1, "listed"), "1970 and 2099"),
        ({"item": "unheard of"}, ("listings", 1, "item"), "nothing of what places a new one: category, price, title"),
        ({"item": "unheard of", "seller": "s1"}, ("listings", 1, "item"), "nothing of what places a new one"),
        ("i1", ("listings", 1), "should be an object"),
    ],
)
def test_a_bad_listing_refuses_the_whole_post(
    bundle: Bundle, tmp_path: Path, listing: object, place: tuple[object, ...], said: str
) -> None:
    """The place and the reason are named; the good listing beside it is not taken, and nothing is written."""
    service = Service(bundle, state=tmp_path / "state")
    shelf = service.now()
    with pytest.raises(RefusedPostError) as refused:
        service.post([{"item": "i5", "gone": True}, listing])
    ((at, why),) = refused.value.offences
    assert at == place
    assert said in why
    assert service.now() is shelf
    assert not (tmp_path / "state" / JOURNAL).exists()
    service.close()


def test_no_post_holds_against_those_that_come_after_it(bundle: Bundle, tmp_path: Path) -> None:
    """Times far ahead are refused, those a little ahead mean now; of equal times the later arrival holds."""
    now = [NOON]
    service = Service(bundle, state=tmp_path / "state", clock=lambda: now[0])
    with pytest.raises(RefusedPostError, match=r"time: is 4000000000, which lies .* hours ahead of the server's clock"):
        service.post([{"item": "i1", "price": 1}], 4_000_000_000)
    with pytest.raises(RefusedPostError, match=r"listings\.1\.gone: is \d+, which lies 1\.0 hours ahead"):
        service.post([{"item": "i2", "gone": NOON}, {"item": "i1", "gone": NOON + 3_601}])
    service.post([{"item": "i1", "price": 1}], NOON + 3_600)
    service.post([{"item": "i1", "price": 2}])
    service.post([{"item": "i1", "price": 3}], NOON)
    assert service.now().stock.describe(np.array([1]))[0]["price"] == 3
    service.post([{"item": "i1", "price": 4}], NOON - 60)  # what was so a minute ago is not so any more
    assert service.now().stock.describe(np.array([1]))[0]["price"] == 3
    service.close()
    # A journal that an earlier version wrote, or that was written while the clock was wrong.
    now[0] = NOON - 3_600
    again = Service(bundle, state=tmp_path / "state", clock=lambda: now[0])
    again.post([{"item": "i1", "price": 5}])
    assert again.now().stock.describe(np.array([1]))[0]["price"] == 5
    again.close()


def test_limits_of_new_listings(bundle: Bundle) -> None:
    """More new ones than the settings allow are refused; known ones are still taken, and what is gone."""
    service = Service(bundle, settings=ServingSettings(new_limit=2))
    service.post([new_sofa("a"), new_sofa("b")])
    with pytest.raises(RefusedPostError, match="more than 2 new ones"):
        service.post([new_sofa("c")])
    service.post([{"item": "a", "price": 3}, {"item": "i1", "gone": True}, {"item": "never seen", "gone": True}])
    assert service.now().stock.unplaced == frozenset()


def test_columns_that_nobody_knows_can_be_left_out(bundle: Bundle) -> None:
    """Where the caller says so."""
    service = Service(bundle)
    _, shelf = service.post([{"item": "i1", "price": 3, "colour": "red"}], ignore_unknown=True)
    assert "colour" not in shelf.stock.describe(np.array([1]))[0]


def test_posts_survive_a_restart(bundle: Bundle, tmp_path: Path) -> None:
    """The same rows before and after, also where the process ended without a word and in the middle of a line."""
    service = Service(bundle, state=tmp_path / "state", clock=lambda: NOON)
    service.post([new_sofa(), {"item": "i3", "gone": True}])
    service.post([{"item": "i4", "price": 77.5}, {"item": "new", "price": 31}])
    before = (row_of(service, "i0", 60), service.now().stock.describe(np.array([4, 60])))
    service.close()
    journal = tmp_path / "state" / JOURNAL
    with journal.open("ab") as file:
        file.write(b'00000000 {"time": 1, "listi')
    again = Service(bundle, state=tmp_path / "state", clock=lambda: NOON)
    assert (row_of(again, "i0", 60), again.now().stock.describe(np.array([4, 60]))) == before
    assert "i3" not in before[0]
    again.post([{"item": "i5", "gone": True}])
    again.close()
    third = Service(bundle, state=tmp_path / "state", clock=lambda: NOON)
    assert set(before[0]) - set(row_of(third, "i0", 60)) == {"i5"}
    third.close()


def test_a_state_is_of_one_process(bundle: Bundle, tmp_path: Path) -> None:
    """A second service with the same state is refused, and can have it when the first has ended."""
    service = Service(bundle, state=tmp_path / "state")
    service.post([{"item": "i3", "gone": True}])
    with pytest.raises(UsageError, match="being served from by another process"):
        Service(bundle, state=tmp_path / "state")
    service.close()
    Service(bundle, state=tmp_path / "state").close()
    with pytest.raises(UsageError, match="cannot be made: there is a file where a folder is needed"):
        Service(bundle, state=tmp_path / "bundle" / "manifest.json" / "state")


def test_a_journal_that_cannot_be_written_changes_nothing(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The post fails, nothing of it is shown, and the next one is taken."""
    service = Service(bundle, state=tmp_path / "state")
    service.post([{"item": "i3", "gone": True}])
    length = (tmp_path / "state" / JOURNAL).stat().st_size

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FailureError, match="nothing of the post was taken"):
        service.post([{"item": "i4", "gone": True}])
    monkeypatch.undo()
    assert (tmp_path / "state" / JOURNAL).stat().st_size == length
    assert "i4" in row_of(service, "i0", 60)
    service.post([{"item": "i5", "gone": True}])
    service.close()
    journal, records = Journal.open(tmp_path / "state" / JOURNAL)
    journal.close()
    assert set(records) == {"i3", "i5"}


def test_damage_in_a_journal_is_not_passed_over(bundle: Bundle, tmp_path: Path) -> None:
    """A changed line that is not the last stops the start, with its number."""
    service = Service(bundle, state=tmp_path / "state")
    for item in ("i1", "i2", "i3"):
        service.post([{"item": item, "gone": True}])
    service.close()
    path = tmp_path / "state" / JOURNAL
    path.write_bytes(path.read_bytes().replace(b"i2", b"i9"))
    for _ in range(2):  # and lets go of the state
        with pytest.raises(ArtefactError, match="damaged in line 3"):
            Service(bundle, state=tmp_path / "state")


def test_a_long_journal_is_shortened(bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes to the same as before, in a few lines."""
    monkeypatch.setattr("hatchway.serving.journal._REWRITE_FROM", 20)
    service = Service(bundle, state=tmp_path / "state", clock=lambda: NOON)
    service.post([new_sofa()])
    for price in range(30):
        service.post([{"item": "i4", "price": price}, {"item": "i3", "gone": True}])
    before = row_of(service, "i0", 60)
    service.close()
    assert (tmp_path / "state" / JOURNAL).read_bytes().count(b"\n") < 20
    again = Service(bundle, state=tmp_path / "state", clock=lambda: NOON)
    assert row_of(again, "i0", 60) == before
    assert again.now().stock.describe(np.array([4]))[0]["price"] == 29
    again.close()


def test_a_new_bundle_is_reconciled_with_what_was_posted(bundle: Bundle, tmp_path: Path) -> None:
    """What it has come to know is its own; what it does not know yet goes on; a rollback finds everything again."""
    now = [NOON]
    service = Service(bundle, state=tmp_path / "state", clock=lambda: now[0])
    service.post(
        [
            new_sofa("i60", price=5),
            new_sofa("i61", title="another sofa"),
            {"item": "i3", "gone": True},
            {"item": "i4", "price": 5},
        ]
    )
    now[0] = EVENING + 86_400
    service.post([{"item": "i5", "price": 6}])
    frame = shop_frame(61).with_columns(gone=pl.Series([None] * 61, dtype=pl.Int64))
    frame[6, "gone"] = NOON
    tomorrow = make_shop(tmp_path / "tomorrow", frame, seed=1, day="2026-03-02")
    service.serve(tomorrow)
    stock = service.now().stock
    assert service.now().digest == tomorrow.digest
    assert stock.row("i60") == 60
    assert stock.posted.items == ("i61",)
    prices = [known["price"] for known in stock.describe(stock.rows(["i60", "i4", "i5"]))]
    assert prices == [37 * 60 % 100, 37 * 4 % 100, 6], "what was posted after the data of the bundle still holds"
    found = row_of(service, "i0", 62)
    assert set(found) == {f"i{number}" for number in range(62)} - {"i0", "i3", "i6"}
    service.post([{"item": "i6", "gone": None}])
    assert "i6" in row_of(service, "i0", 62), "back for sale, though the index does not hold it"
    service.serve(bundle)
    assert set(row_of(service, "i0", 62)) == {f"i{number}" for number in range(62)} - {"i0", "i3"}
    service.close()


def test_what_is_old_and_agreed_upon_is_forgotten(bundle: Bundle, tmp_path: Path) -> None:
    """After sixty days of data; what a catalogue contradicts is remembered."""
    service = Service(bundle, clock=lambda: NOON)
    service.post([{"item": "i3", "gone": True}, {"item": "i4", "gone": True}, {"item": "nobody", "gone": True}])
    frame = shop_frame(60).with_columns(gone=pl.Series([None] * 60, dtype=pl.Int64))
    frame[3, "gone"] = NOON
    service.serve(make_shop(tmp_path / "soon", frame, day="2026-04-01"))
    assert set(service._records) == {"i3", "i4", "nobody"}
    service.serve(make_shop(tmp_path / "later", frame, day="2026-05-15"))
    assert set(service._records) == {"i4"}
    assert not {"i3", "i4"} & set(row_of(service, "i0", 60))


def test_a_model_without_columns_places_nothing_new(tmp_path: Path, bundle: Bundle) -> None:
    """Refused with the reason; a swap to such a bundle keeps the listings for the next one that can."""
    service = Service(bundle)
    service.post([new_sofa()])
    import json  # noqa: PLC0415

    path = make_shop(tmp_path / "bare", shop_frame(60), seed=3).path
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["parts"] = [part for part in manifest["parts"] if part["name"] != "item_encoder.safetensors"]
    (path / "manifest.json").write_text(json.dumps(manifest))
    (path / "item_encoder.safetensors").unlink()
    service.serve(Bundle.open(path))
    assert service.now().stock.unplaced == {"new"}
    with pytest.raises(RefusedPostError, match=r"knows items by their ids only.*train with .*model\.item\.categories"):
        service.post([new_sofa("other")])
    service.serve(bundle)
    assert "new" in row_of(service, "i0", 60)


def test_integer_ids(tmp_path: Path) -> None:
    """As numbers or their text; anything else is refused."""
    frame = shop_frame(20).with_columns(item=pl.Series(range(100, 120)))
    service = Service(make_shop(tmp_path / "bundle", frame))
    _, shelf = service.post([{"item": "101", "gone": True}, {"item": 500, "title": "sofa"}])
    assert shelf.stock.ids(np.array([20])) == [500]
    assert shelf.stock.rows(["500", 500, 101, "x", 7]).tolist() == [20, 20, 1, -1, -1]
    for item in ("1e3", " 101", "101.0", 10.5, 2**63, "x"):
        with pytest.raises(RefusedPostError):
            service.post([{"item": item, "title": "sofa"}])


def test_readers_never_see_half_a_post(bundle: Bundle) -> None:
    """While two sets of items take turns to be gone, no row has any of both, and each is as long as it should be."""
    service = Service(bundle)
    names = shop_frame(60)["item"].to_list()
    sets = [set(names[1:21]), set(names[21:41])]
    service.post([{"item": item, "gone": True} for item in sorted(sets[1])])
    ended = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not ended.is_set():
            found = set(row_of(service, "i0", 60))
            if len(found) != 39 or (found & sets[0] and found & sets[1]):
                wrong.append(found)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(60):
        gone, back = sets[turn % 2], sets[1 - turn % 2]
        service.post([{"item": item, "gone": True if item in gone else None} for item in sorted(gone | back)])
    ended.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_one_id_is_asked_of_a_scan_not_of_a_join(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of a page costs no join over the catalogue."""
    service = Service(bundle)
    service.post([new_sofa()])

    def no_join(self: Identifiers, ids: pl.Series) -> None:
        raise AssertionError("joined")

    service.now().stock.row("i1")
    monkeypatch.setattr(Identifiers, "rows", no_join)
    assert len(row_of(service, "i0", 10, Filters(sellers=("s1",), categories=("sofa", "desk")))) == 4
