"""Where nights may lie, and what is said where they may not."""

import os
from pathlib import Path

import pytest

from hatchway.errors import UsageError
from hatchway.nightly.places import check_place, nights_beside


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Make the folder of a store, and go where it lies."""
    (tmp_path / "work" / "store").mkdir(parents=True)
    return tmp_path / "work" / "store"


@pytest.mark.parametrize("given", [".", ""])
def test_a_store_without_a_name_is_called_by_its_folder(
    store: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nights lie beside it; only the root of all folders has no name."""
    monkeypatch.chdir(store)
    assert nights_beside(Path(given)) == store.with_name("store-nights")
    assert nights_beside(Path("..")) == store.parent.with_name("work-nights")
    with pytest.raises(UsageError, match="name their folder: --out"):
        nights_beside(Path("/"))


def test_nights_lie_neither_in_the_store_nor_around_it(store: Path) -> None:
    """The next import would remove them; by any path, links included; and nothing is made where they may not lie."""
    (store.parent / "link").symlink_to(store)
    for nights, said in (
        (store, "is the store"),
        (store.parent / "link", "is the store"),
        (store / "nights" / "deep", "lies in the store"),
        (store / ".." / "link" / "nights", "lies in the store"),
        (store.parent, "is where the store .* lies"),
    ):
        with pytest.raises(UsageError, match=f"{said}.*--out NIGHTS"):
            check_place(nights, store)
    assert list(store.iterdir()) == []
    check_place(store.parent / "store-nights", store)
    assert (store.parent / "store-nights").is_dir()


def test_nights_need_a_folder_that_can_be_written_to(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, a folder in a file, one without rights, one that cannot be made: what it is, and the remedy."""
    file = store.parent / "file"
    file.touch()
    for nights in (file, file / "nights"):
        with pytest.raises(UsageError, match="is a file, or lies in one"):
            check_place(nights, store)
    nights = store.parent / "nights"
    nights.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        with pytest.raises(UsageError, match="may not be written to; change its rights, or name"):
            check_place(nights, store)

    def refused(*arguments: object, **named: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refused)
        with pytest.raises(UsageError, match=r"cannot be made \(Permission denied\)"):
            check_place(nights / "deeper", store)
