"""What sellers call their listings: seven patterns, several words for each thing, spelt with care or not.

Titles are put together by column, never by row. What a title says is drawn for the object (or for the model, where the
seller copies the maker's words), so a relist says the same as what it relists; how it is written is drawn for the
listing: in another order, with a letter wrong, with inches for centimetres.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.data.engagements import Float32
from hatchway.randomness import stream
from hatchway.simulation import vocabulary
from hatchway.simulation.listings import Bools, Int8, Listings

_CHUNK = 1 << 20
_CHAIR = [category.name for category in vocabulary.CATEGORIES].index("chair")
_UPHOLSTERED = np.array([category.upholstered for category in vocabulary.CATEGORIES])

# Every pattern in three orders: the first is how it is written at first, the others are how it is written again.
PATTERNS = (
    ("{wood} {size} {noun}, {style}, {detail}",
     "{style} {noun}, {size}, {wood}, {detail}",
     "{detail}, {size} {noun} in {wood}, {style}"),
    ("{style} {noun} in {colour}, {size}, {width}",
     "{size} {noun}, {colour}, {style}, {width}",
     "{colour} {noun} {width}, {style}, {size}"),
    ("{maker} {name} {size} {noun}, {colour}",
     "{colour} {size} {noun}, {maker} {name}",
     "{size} {noun} by {maker}, {name}, {colour}"),
    ("{colour} {noun} ({style}), {detail}, {condition}",
     "{condition}, {style} {noun}, {colour}, {detail}",
     "{noun} {detail}, {colour} ({style}), {condition}"),
    ("{size} {noun}, {wood} {style}, {width}, {detail}",
     "{wood} {style} {noun}, {size}, {detail}, {width}",
     "{width} {noun}, {detail}, {wood}, {size}, {style}"),
    ("{style} {noun} by {maker}, {detail}, {colour}",
     "{maker} {style} {noun}, {colour}, {detail}",
     "{colour} {noun}, {detail}, {style}, {maker}"),
    # The maker's words, which some sellers copy.
    ("{maker} {name}, {style} {size} {noun}, {colour}, {detail}, {width}",
     "{size} {noun} {maker} {name}, {colour}, {style}, {width}, {detail}",
     "{name} {size} {noun} by {maker}, {detail}, {style}, {colour}, {width}"),
)  # fmt: skip
MAKERS_PATTERN = len(PATTERNS) - 1
ORDERS = 3
CARELESS = 0.1  # share of first listings with a letter wrong
CARELESS_AGAIN = 0.5  # the same of what is written again
METRIC = 0.8  # share of objects whose width is first given in centimetres
SLIPS = ("noun", "style", "detail", "colour")  # where a letter can be wrong


@dataclass(frozen=True, eq=False)
class _Said:
    """What the titles of T objects or models say.

    Attributes:
        pattern: [T] int8 position in ``PATTERNS``.
        noun, style: [T] int8 which of the words for the kind (the first counts twice) and for the style.
        other: [T] bool, whether the model's other detail is named.
        metric: [T] bool, whether the width is first given in centimetres.
        measured: [T] float32, the width as it was measured, relative to the true one.
    """

    pattern: Int8
    noun: Int8
    style: Int8
    other: Bools
    metric: Bools
    measured: Float32

    @classmethod
    def draw(cls, random: np.random.Generator, count: int) -> "_Said":
        """Draw it for ``count`` objects that sellers describe in their own words."""
        return cls(
            pattern=random.integers(MAKERS_PATTERN, size=count, dtype=np.int8),
            noun=random.integers(4, size=count, dtype=np.int8),
            style=random.integers(4, size=count, dtype=np.int8),
            other=random.random(count) < 0.5,
            metric=random.random(count) < METRIC,
            measured=random.normal(1.0, 0.01, count).astype(np.float32),
        )


def titles(listings: Listings, seed: int) -> pl.Series:
    """Write the title of every listing, [N] String."""
    count = len(listings)
    own = _Said.draw(stream(seed, "market", "words"), int(listings.thing.max(initial=-1)) + 1)
    makers = _Said.draw(stream(seed, "market", "words", "makers"), len(listings.models))
    random = stream(seed, "market", "titles")
    order = random.integers(1, ORDERS, size=count, dtype=np.int8)
    slip = random.integers(len(SLIPS), size=count, dtype=np.int8)
    wrong = random.integers(1, 4, size=count, dtype=np.int8)
    careless, translated = random.random(count, np.float32), random.random(count, np.float32) < 0.5
    again = (listings.relists >= 0) | listings.makers
    order[~again] = 0
    wrong[careless >= np.where(again, CARELESS_AGAIN, CARELESS)] = 0
    how = _Written(order, slip, wrong, translated & again)
    starts = range(0, count, _CHUNK)
    parts = [_chunk(listings, own, makers, how, slice(start, min(start + _CHUNK, count))) for start in starts]
    return pl.concat(parts, rechunk=False).rename("title")


@dataclass(frozen=True, eq=False)
class _Written:
    """How each of N titles is written.

    Attributes:
        order: [N] int8 which of the pattern's three orders.
        slip: [N] int8 position in ``SLIPS`` of the word with a wrong letter.
        wrong: [N] int8 which misspelling of it, 0 for none.
        translated: [N] bool, whether centimetres and inches are exchanged.
    """

    order: Int8
    slip: Int8
    wrong: Int8
    translated: Bools


def _chunk(listings: Listings, own: _Said, makers: _Said, how: _Written, rows: slice) -> pl.Series:
    """Write the titles of a run of listings."""
    models, model, thing = listings.models, listings.model[rows], listings.thing[rows]
    copied = listings.makers[rows]

    words = _Said(
        *(np.where(copied, getattr(makers, name)[model], getattr(own, name)[thing]) for name in _Said.__annotations__)
    )
    category, size, style = models.category[model], models.size[model], models.style[model]
    wood, fabric = models.wood[model], models.fabric[model]
    upholstered = _UPHOLSTERED[category]
    noun = np.maximum(words.noun.astype(np.int64) - 1, 0)
    detail = np.where(words.other, models.other_detail[model], models.detail[model])
    woods = len(vocabulary.WOODS)
    spelling = {
        name: np.where(how.slip[rows] == place, how.wrong[rows], 0).astype(np.int64) for place, name in enumerate(SLIPS)
    }
    several = (category == _CHAIR) & (size > 0)
    parts = pl.DataFrame(
        {
            "form": np.where(copied, MAKERS_PATTERN, words.pattern).astype(np.int16) * ORDERS + how.order[rows],
            "size": _SIZES.gather(category.astype(np.int64) * 3 + size),
            "noun": _NOUNS.gather(((several.astype(np.int64) * _KINDS + category) * 3 + noun) * 4 + spelling["noun"]),
            "style": _STYLES.gather((style.astype(np.int64) * 4 + words.style) * 4 + spelling["style"]),
            "wood": _COLOURS.gather(wood.astype(np.int64) * 4 + spelling["colour"]),
            "colour": _COLOURS.gather(
                np.where(upholstered, woods + fabric.astype(np.int64), wood) * 4 + spelling["colour"]
            ),
            "detail": _DETAILS.gather((category.astype(np.int64) * _DETAILS_A_KIND + detail) * 4 + spelling["detail"]),
            "maker": _MAKERS.gather(models.maker[model].astype(np.int64)),
            "name": _NAMES.gather(models.name[model].astype(np.int64)),
            "condition": _CONDITIONS.gather(listings.condition[rows].astype(np.int64)),
            "width": _widths(listings, model, words.measured, words.metric ^ how.translated[rows]),
        }
    )
    forms = [text for orders in PATTERNS for text in orders]
    written = pl.coalesce([pl.when(pl.col("form") == number).then(_filled(text)) for number, text in enumerate(forms)])
    first = written.str.slice(0, 1).str.to_uppercase()
    return parts.select(pl.concat_str([first, written.str.slice(1)]).alias("title"))["title"]


def _filled(pattern: str) -> pl.Expr:
    """Turn ``{wood} {noun}`` into an expression over the columns of these names."""
    pieces = pattern.replace("}", "{").split("{")
    return pl.format("{}".join(pieces[::2]), *pieces[1::2])


def _widths(listings: Listings, model: npt.NDArray[np.int32], measured: Float32, metric: Bools) -> pl.Series:
    """Write widths, [n] String: "203 cm" or "80 in"."""
    models = listings.models
    category = models.category[model]
    usual = np.array([kind.width for kind in vocabulary.CATEGORIES])[category]
    width = usual * np.array([0.72, 1.0, 1.3])[models.size[model]] * (0.88 + 0.24 * models.shape[model])
    centimetres = np.round(width * measured).astype(np.int32)
    frame = pl.DataFrame({"cm": centimetres, "in": np.round(centimetres / 2.54).astype(np.int32), "metric": metric})
    written = pl.when("metric").then(pl.format("{} cm", "cm")).otherwise(pl.format("{} in", "in"))
    return frame.select(written.alias("width"))["width"]


def misspelt(words: str) -> tuple[str, str, str]:
    """Return three ways to get the longest word wrong: two letters exchanged, one left out, one doubled.

    >>> misspelt("danish design")
    ('dansih design', 'dansh design', 'daniish design')
    """
    longest = max(words.split(), key=len)
    middle = len(longest) // 2
    before, letter, after = longest[:middle], longest[middle], longest[middle + 1 :]
    if len(longest) < 4 or not longest.isalpha():  # nobody gets "60s" wrong
        return words, words, words
    exchanged = before + after[0] + letter + after[1:]
    return (
        words.replace(longest, exchanged, 1),
        words.replace(longest, before + after, 1),
        words.replace(longest, before + letter + letter + after, 1),
    )


def _spellings(words: list[str]) -> pl.Series:
    """Lay out each word followed by its three misspellings, [4 · words] String."""
    return pl.Series([spelling for word in words for spelling in (word, *misspelt(word))])


_KINDS = len(vocabulary.CATEGORIES)
_DETAILS_A_KIND = len(vocabulary.DETAILS[0])
_NOUNS = _spellings([noun + plural for plural in ("", "s") for kind in vocabulary.CATEGORIES for noun in kind.nouns])
_STYLES = _spellings([word for words in vocabulary.STYLE_WORDS for word in words])
_COLOURS = _spellings([*vocabulary.WOODS, *vocabulary.FABRICS])
_DETAILS = _spellings([detail for details in vocabulary.DETAILS for detail in details])
_SIZES = pl.Series([size for kind in vocabulary.CATEGORIES for size in kind.sizes])
_MAKERS, _CONDITIONS = pl.Series(vocabulary.MAKERS), pl.Series(vocabulary.CONDITIONS)
_NAMES = pl.Series([begin + end for begin in vocabulary.NAME_BEGINS for end in vocabulary.NAME_ENDS])
