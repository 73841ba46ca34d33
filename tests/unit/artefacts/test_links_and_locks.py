"""Targets behind links, and one writer at a time."""

from pathlib import Path

import pytest

from hatchway.artefacts.alone import alone_in
from hatchway.artefacts.atomic import replacing_folder, settle, write_text
from hatchway.errors import UsageError


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_behind_a_link_is_replaced_where_it_lies(tmp_path: Path, there: bool) -> None:
    """A store that was moved to a larger disk stays there, and the link stays a link."""
    real = tmp_path / "large" / "store"
    real.parent.mkdir()
    if there:
        real.mkdir()
        (real / "old").write_text("old")
    link = tmp_path / "store"
    link.symlink_to(real)
    with replacing_folder(link) as partial:
        assert partial.parent == real.parent
        (partial / "new").write_text("new")
    assert link.is_symlink()
    assert [path.name for path in real.iterdir()] == ["new"]
    assert not list(real.parent.glob(".*"))


def test_what_a_kill_left_behind_a_link_is_put_back(tmp_path: Path) -> None:
    """The old folder lies beside the real one."""
    real = tmp_path / "large" / "store"
    old = real.with_name(".store.old")
    old.mkdir(parents=True)
    (tmp_path / "store").symlink_to(real)
    settle(tmp_path / "store")
    assert real.is_dir()
    assert not old.exists()


def test_a_file_behind_a_link_is_replaced_where_it_lies(tmp_path: Path) -> None:
    """The link stays."""
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_one_at_a_time(tmp_path: Path) -> None:
    """The second is refused while the first is there, and leaves nothing; afterwards there is room again."""
    folder = tmp_path / "run"
    with alone_in(folder, "trained"), pytest.raises(UsageError, match="is being trained by another process"):
        alone_in(folder, "trained").__enter__()
    with alone_in(folder, "trained"):
        pass
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_called_by_no_name_is_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``.`` and ``..`` have no name to put a dot before: what a killed writer left beside them is put back, too."""
    (tmp_path / "store" / "events").mkdir(parents=True)
    (tmp_path / ".store.old").mkdir()
    for given, here in ((".", "store"), ("..", "store/events")):
        monkeypatch.chdir(tmp_path / here)
        settle(Path(given))
        assert not (tmp_path / ".store.old").exists(), "the new one is there"
        (tmp_path / ".store.old").mkdir()
