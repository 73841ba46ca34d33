"""Near-identical photos: hashes against an independent transform, files that cannot be read, relists that are found."""

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps
from scipy.fft import dctn

from hatchway.errors import DataError
from hatchway.screening.hashes import View, blank, empty_hashes, hashes_of, variants
from hatchway.screening.photos import given_hashes, perceptual_hashes, similar_photos, similar_pictures
from hatchway.screening.thumbnails import SIDE, read_thumbnails

Draw = Callable[[int], Image.Image]


def thumbnail(image: Image.Image) -> np.ndarray:
    """Scale a picture as the screen does."""
    return np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX))


def bits_between(one: np.uint64, other: np.uint64) -> int:
    """Count the bits that differ."""
    return int(np.bitwise_count(one ^ other))


def saved(folder: Path, images: Sequence[Image.Image | bytes | None]) -> list[str | None]:
    """Write pictures as JPEG files, and bytes as they are."""
    names: list[str | None] = []
    for number, image in enumerate(images):
        names.append(None if image is None else f"{number}.jpg")
        if isinstance(image, bytes):
            (folder / f"{number}.jpg").write_bytes(image)
        elif image is not None:
            image.convert("RGB").save(folder / f"{number}.jpg", quality=85)
    return names


def found_pairs(
    folder: Path, images: Sequence[Image.Image | bytes | None], *, with_variants: bool = True
) -> list[tuple[int, int]]:
    """Return the pairs of near-identical pictures."""
    seen = perceptual_hashes(saved(folder, images), folder)
    first, second = similar_pictures(seen, 8, with_variants=with_variants).similar.first_of_pairs()
    return list(zip(first.tolist(), second.tolist(), strict=True))


def test_the_hash_is_that_of_an_independent_cosine_transform(draw: Draw) -> None:
    """SciPy's transform of the luminance, its eight by eight lowest frequencies against their median."""
    pixels = np.stack([thumbnail(draw(number)) for number in range(20)])
    light = pixels @ np.array([0.299, 0.587, 0.114])
    low = dctn(light, axes=(1, 2), norm="ortho")[:, :8, :8].reshape(20, 64)
    # SciPy's orthonormal first row and column are smaller by the root of two than waves of amplitude one.
    scale = np.ones(8)
    scale[0] = np.sqrt(0.5)
    low *= np.outer(scale, scale).reshape(-1)
    wanted = [sum(1 << k for k in range(64) if row[k] > np.median(row)) for row in low]
    assert hashes_of(pixels).tolist() == wanted


def test_views_are_those_of_a_picture_that_was_cropped_or_mirrored(draw: Draw) -> None:
    """The hash of a view from the small picture is nearly that of the picture itself, cut or turned beforehand."""
    for number in range(8):
        image = draw(number)
        pixels = thumbnail(image)[None]
        mirrored = hashes_of(thumbnail(ImageOps.mirror(image))[None])[0]
        assert bits_between(hashes_of(pixels, View(mirrored=True))[0], mirrored) <= 2
        cut = image.crop((20, 0, 400, 285))  # 5 % off the left and the bottom
        assert (
            bits_between(hashes_of(pixels, View((0.05, 1.0), (0.0, 0.95)))[0], hashes_of(thumbnail(cut)[None])[0]) <= 6
        )
    assert len(set(variants())) == 38


@pytest.mark.parametrize(
    "change",
    [
        lambda image: image,
        lambda image: image.resize((133, 100)),
        lambda image: ImageEnhance.Brightness(image).enhance(0.85),
        lambda image: image.convert("L"),
        ImageOps.mirror,
        lambda image: image.crop((20, 15, 380, 285)),  # a tenth of either side, all round
        lambda image: image.crop((40, 0, 400, 300)),  # a tenth off the left
        lambda image: image.crop((0, 0, 380, 270)),
        lambda image: ImageOps.mirror(image.crop((12, 9, 388, 291))),
        lambda image: image.rotate(1.5, resample=Image.Resampling.BICUBIC).crop((10, 8, 390, 292)),
    ],
    ids=["same", "small", "dark", "grey", "mirrored", "cropped", "left", "corner", "both", "turned"],
)
def test_a_changed_photo_is_found_among_others(
    tmp_path: Path, draw: Draw, change: Callable[[Image.Image], Image.Image]
) -> None:
    """Of eight photos that are shown again, at least seven are found, and no two others are taken for one."""
    images = [draw(number) for number in range(40)]
    pairs = found_pairs(tmp_path, [*images, *(change(image) for image in images[:8])])
    assert set(pairs) <= {(number, 40 + number) for number in range(8)}
    assert len(pairs) >= 7


def test_without_variants_a_mirrored_photo_is_another(tmp_path: Path, draw: Draw) -> None:
    """The setting switches them off; the plain copy is found still."""
    images = [draw(1), ImageOps.mirror(draw(1)), draw(1)]
    assert found_pairs(tmp_path, images, with_variants=False) == [(0, 2)]
    assert found_pairs(tmp_path, images) == [(0, 1), (0, 2), (1, 2)]


def test_near_hashes_of_different_pictures_are_told_apart(draw: Draw) -> None:
    """The same shapes in other colours and with another detail: the hash hardly differs, a closer look does."""
    seen = perceptual_hashes([], Path())
    image = draw(3)
    other = image.copy()
    other.paste((250, 250, 250), (180, 120, 230, 160))
    red, green, blue = image.split()
    pixels = np.stack([thumbnail(image), thumbnail(Image.merge("RGB", (blue, green, red))), thumbnail(other)])
    hashes = hashes_of(pixels)
    seen = type(seen)(hashes, np.ones(3, bool), {}, pixels)
    assert similar_photos(hashes, seen.usable, 16).similar.pairs >= 1
    assert similar_pictures(seen, 16).similar.pairs == 0


def test_files_that_cannot_be_read_are_counted_and_match_none(tmp_path: Path, draw: Draw) -> None:
    """Cut short, no image, empty, absent, a folder, a name that cannot be; the two good ones are found."""
    names = saved(tmp_path, [draw(1), draw(1), b"", b"no image at all", None])
    whole = (tmp_path / "0.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "folder").mkdir()
    names += ["cut.jpg", "absent.jpg", "folder", "a\0b", "", "../" * 40 + "etc/passwd"]
    seen = perceptual_hashes(names, tmp_path)
    assert seen.faults["unreadable"] >= 4
    assert seen.faults["no file"] >= 2
    assert seen.faults["no photo"] == 2
    assert seen.usable.tolist() == [True, True] + [False] * (len(names) - 2)
    assert sum(seen.faults.values()) == len(names) - 2
    first, second = similar_pictures(seen, 8).similar.first_of_pairs()
    assert (first.tolist(), second.tolist()) == ([0], [1])


def bomb(width: int, height: int) -> bytes:
    """Return a small PNG that unfolds into a very large picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([1, 0, 0, 0, 0])
    packer = zlib.compressobj(9)
    line = bytes(1 + (width + 7) // 8)
    data = b"".join(packer.compress(line) for _ in range(min(height, 2000))) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(9_500, 9_500), (12_000, 9_000), (40_000, 40_000)], ids=["ours", "warned", "refused"])
def test_a_small_file_that_unfolds_into_a_huge_picture_is_not_decoded(tmp_path: Path, size: tuple[int, int]) -> None:
    """Below and above Pillow's own two limits; a warning is no way out, since tests take warnings for errors."""
    (tmp_path / "bomb.png").write_bytes(bomb(*size))
    assert (tmp_path / "bomb.png").stat().st_size < 500_000
    assert read_thumbnails(["bomb.png"], tmp_path).faults == {"too large": 1}


@pytest.mark.parametrize("mode", ["L", "P", "LA", "RGBA", "CMYK", "1", "I;16", "F"])
def test_every_kind_of_picture_is_read(tmp_path: Path, draw: Draw, mode: str) -> None:
    """Grey, palettes, transparency on white, print colours, sixteen bits and floats."""
    image = draw(5)
    if mode == "I;16":
        image = Image.fromarray((np.asarray(image.convert("L")).astype(np.uint16) * 257).astype(np.uint16))
    else:
        image = image.convert("L").convert(mode) if mode in ("F", "LA") else image.convert(mode)
    image.save(tmp_path / "photo.tiff")
    seen = perceptual_hashes(["photo.tiff"], tmp_path)
    assert seen.faults == {}
    assert bits_between(seen.hashes[0], hashes_of(thumbnail(draw(5))[None])[0]) <= (22 if mode == "1" else 6)


def test_transparency_is_white_and_photos_are_turned_upright(tmp_path: Path, draw: Draw) -> None:
    """A cut-out before white is the same picture; a camera's note of how it was held is read."""
    cut = draw(2).convert("RGBA")
    cut.putalpha(Image.new("L", cut.size, 0))
    cut.save(tmp_path / "gone.png")
    assert (read_thumbnails(["gone.png"], tmp_path).pixels == 255).all()
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    draw(2).rotate(90, expand=True).save(tmp_path / "turned.jpg", exif=exif, quality=90)
    draw(2).save(tmp_path / "upright.jpg", quality=90)
    hashes = perceptual_hashes(["turned.jpg", "upright.jpg"], tmp_path).hashes
    assert bits_between(*hashes) <= 2


def test_photos_that_show_nothing_match_none(tmp_path: Path) -> None:
    """White, nearly white, a soft gradient, two words on white: excluded, though all their hashes agree."""
    white = Image.new("RGB", (200, 150), "white")
    noisy = Image.fromarray(np.random.default_rng(1).integers(251, 255, (150, 200, 3)).astype(np.uint8))
    gradient = Image.linear_gradient("L").convert("RGB")
    images: Sequence[Image.Image | bytes | None] = [white, white, noisy, noisy, gradient, gradient]
    seen = perceptual_hashes(saved(tmp_path, images), tmp_path)
    assert seen.faults == {"blank": 6}
    assert similar_pictures(seen, 8).similar.pairs == 0
    assert blank(np.zeros((3, SIDE, SIDE, 3), np.uint8)).all()


def test_given_hashes_of_blank_photos_are_left_out() -> None:
    """All bits alike, or nearly; null is no photo."""
    hashes = np.array([0, 0, 2**64 - 1, 1, 0xF0F0F0F00F0F0F0F, 0xF0F0F0F00F0F0F0E, 5], np.uint64)
    seen = given_hashes(hashes, np.array([True] * 6 + [False]))
    assert seen.faults == {"no photo": 1, "blank": 4}
    assert seen.usable.tolist() == [False] * 4 + [True] * 2 + [False]
    assert empty_hashes(hashes).tolist() == [True] * 4 + [False] * 2 + [True]
    found = similar_photos(seen.hashes, seen.usable, 8)
    assert found.similar.of(4).tolist() == [5]
    assert found.similar.pairs == 1


def test_a_placeholder_of_a_million_listings_is_set_aside() -> None:
    """Equal hashes beyond the limit match none, whoever is near them neither; the largest group is told."""
    hashes = np.full(1_000_000, 0xF0F0F0F00F0F0F0F, np.uint64)
    hashes[:3] = [0x123456789ABCDEF0, 0x123456789ABCDEF1, 0xF0F0F0F00F0F0F0E]
    found = similar_photos(hashes, np.ones(len(hashes), bool), 2)
    assert found.similar.pairs == 1
    assert found.similar.of(0).tolist() == [1]
    assert found.crowded[2:].all()
    assert not found.crowded[:2].any()
    assert found.largest_group == 999_997


def test_pictures_that_everybody_uses_are_set_aside(tmp_path: Path, draw: Draw) -> None:
    """Five copies at a limit of three others; with a limit of four they are all alike."""
    seen = perceptual_hashes(saved(tmp_path, [*[draw(1)] * 5, draw(2), draw(2)]), tmp_path)
    few, all_ = (similar_pictures(seen, 8, most=most) for most in (3, 4))
    assert few.crowded.tolist() == [True] * 5 + [False] * 2
    assert few.similar.pairs == 1
    assert all_.similar.pairs == 11
    assert few.largest_group == 5


def test_no_photos_are_no_trouble(tmp_path: Path) -> None:
    """An empty catalogue, and one without any usable photo."""
    for names in ([], [None, ""]):
        seen = perceptual_hashes(names, tmp_path)
        found = similar_pictures(seen, 8)
        assert len(found.similar) == len(names)
        assert found.similar.pairs == found.largest_group == 0


def test_hashes_alone_cannot_be_looked_at() -> None:
    """The error says what to use instead."""
    with pytest.raises(DataError, match="use similar_photos"):
        similar_pictures(given_hashes(np.zeros(2, np.uint64), np.ones(2, bool)), 8)
    with pytest.raises(DataError, match="2 hashes, and 3 times"):
        similar_photos(np.zeros(2, np.uint64), np.ones(3, bool), 8)
