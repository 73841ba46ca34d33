"""Hashed words and n-grams against a plain loop."""

import re
import zlib

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatchway.towers.text import TextReader, hashed_grams


def plain(text: str, buckets: int) -> list[int]:
    """Cut one text the slow way."""
    grams: list[str] = []
    for run in re.findall(r"[^\W_]+", text.lower()):
        word = f"<{run}>"
        grams.append(word)
        for size in (3, 4):
            if len(word) > size:
                grams += [word[start : start + size] for start in range(min(len(word) - size + 1, 24))]
    return sorted(zlib.crc32(gram.encode()) % buckets for gram in grams)


@pytest.mark.parametrize("text", ["", "Teak 3-seater sofa", "a", "ab", "żółć Übergröße", "x" * 100, "🛋️ sofa", "!!!"])
def test_the_same_as_cut_by_hand(text: str) -> None:
    """Every text gives the n-grams of its words, and no others."""
    grams, offsets = hashed_grams(pl.Series([text, None, text]), 1 << 20)
    assert offsets.tolist() == [0, len(grams) // 2, len(grams) // 2, len(grams)]
    assert sorted(grams[: len(grams) // 2].tolist()) == plain(text, 1 << 20)
    assert sorted(grams[len(grams) // 2 :].tolist()) == plain(text, 1 << 20)


@given(st.lists(st.text(alphabet="abcXYZ 019-é", max_size=40), max_size=8))
def test_any_texts(texts: list[str]) -> None:
    """Texts do not run into each other."""
    grams, offsets = hashed_grams(pl.Series(texts, dtype=pl.String), 997)
    pieces = [sorted(grams[offsets[i] : offsets[i + 1]].tolist()) for i in range(len(texts))]
    assert pieces == [plain(text, 997) for text in texts]


def test_buckets_are_the_same_everywhere() -> None:
    """Bucket numbers are part of a trained model: these were computed once, by CRC-32's definition."""
    grams, _ = hashed_grams(pl.Series(["ab"]), 1 << 32)
    assert sorted(grams.tolist()) == sorted([zlib.crc32(b"<ab>"), zlib.crc32(b"<ab"), zlib.crc32(b"ab>")])


@given(st.lists(st.lists(st.sampled_from(["", "red sofa", "sofa", "lamp 3"]), max_size=6), max_size=4))
def test_a_reader_remembers_and_reads_the_same(batches: list[list[str]]) -> None:
    """Batch after batch, what a reader gives is what cutting every text anew gives."""
    reader = TextReader(997)
    for texts in batches:
        grams, offsets = reader.read(np.array(texts, dtype=object))
        wanted, bounds = hashed_grams(pl.Series(texts, dtype=pl.String), 997)
        assert grams.tolist() == wanted.tolist()
        assert offsets.tolist() == bounds.tolist()


def test_nothing_is_cut_where_all_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of texts that were read before costs no pass over them: most batches of a training are such."""
    cut: list[int] = []

    def counted(texts: pl.Series, buckets: int) -> tuple[np.ndarray, np.ndarray]:
        cut.append(len(texts))
        return hashed_grams(texts, buckets)

    monkeypatch.setattr("hatchway.towers.text.hashed_grams", counted)
    reader = TextReader(997)
    for texts in (["sofa", "lamp"], ["lamp"], ["sofa", "chair"], []):
        reader.read(np.array(texts, dtype=object))
    assert cut == [2, 1]
