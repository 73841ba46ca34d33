"""What sellers call their listings: six ways to order the words, several words for each thing, spelt with care or not.

Titles are put together by column, never by row. A relist or another seller's copy of a model gets words of its own, so
the titles of one object agree in what they say and differ in how.
"""

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.randomness import stream
from hatchway.simulation import vocabulary
from hatchway.simulation.listings import Listings

_CHUNK = 1 << 20
_CHAIR = [category.name for category in vocabulary.CATEGORIES].index("chair")


def titles(listings: Listings, seed: int) -> pl.Series:
    """Write the title of every listing, [N] String."""
    random = stream(seed, "market", "titles")
    count = len(listings)
    form = random.integers(6, size=count, dtype=np.int8)
    spelling = random.integers(4, size=(2, count), dtype=np.int8)
    width_noise = random.normal(1.0, 0.03, count).astype(np.float32)
    parts = [
        _chunk(listings, rows, form[rows], spelling[:, rows], width_noise[rows])
        for rows in (slice(start, min(start + _CHUNK, count)) for start in range(0, count, _CHUNK))
    ]
    return pl.concat(parts).rename("title")


def _chunk(
    listings: Listings,
    rows: slice,
    form: npt.NDArray[np.int8],
    spelling: npt.NDArray[np.int8],
    width_noise: npt.NDArray[np.float32],
) -> pl.Series:
    """Write the titles of a run of listings."""
    models, model = listings.models, listings.model[rows]
    category, size = models.category[model], models.size[model]
    upholstered = np.array([kind.upholstered for kind in vocabulary.CATEGORIES])[category]
    factor = np.array([0.72, 1.0, 1.3])[size]
    width = np.array([kind.width for kind in vocabulary.CATEGORIES])[category] * factor * width_noise
    nouns = np.array([kind.nouns for kind in vocabulary.CATEGORIES], dtype=object)
    sizes = np.array([kind.sizes for kind in vocabulary.CATEGORIES], dtype=object)
    styles = np.array(vocabulary.STYLE_WORDS, dtype=object)
    wood = np.array(vocabulary.WOODS, dtype=object)[models.wood[model]]
    fabric = np.array(vocabulary.FABRICS, dtype=object)[models.fabric[model]]
    noun = nouns[category, np.maximum(spelling[0] - 1, 0)]
    several = (category == _CHAIR) & (size > 0)
    words = pl.DataFrame(
        {
            "form": form,
            "size": pl.Series(sizes[category, size], dtype=pl.String),
            # Half the sellers use the plain noun, the others one of its synonyms.
            "noun": pl.Series(np.where(several, noun + "s", noun), dtype=pl.String),
            "style": pl.Series(styles[models.style[model], spelling[1]], dtype=pl.String),
            "wood": pl.Series(wood, dtype=pl.String),
            "colour": pl.Series(np.where(upholstered, fabric, wood), dtype=pl.String),
            "maker": pl.Series(np.array(vocabulary.MAKERS, dtype=object)[models.maker[model]], dtype=pl.String),
            "condition": pl.Series(
                np.array(vocabulary.CONDITIONS, dtype=object)[listings.condition[rows]], dtype=pl.String
            ),
            "width": pl.Series(np.round(width).astype(np.int32)).cast(pl.String),
        }
    )
    forms = [
        ("{} {} {}, {}", ("wood", "size", "noun", "style")),
        ("{} {} in {}, {}", ("style", "noun", "colour", "size")),
        ("{} {} {}, {}", ("maker", "size", "noun", "colour")),
        ("{} {} ({}), {}", ("colour", "noun", "style", "condition")),
        ("{} {}, {} {}, {} cm", ("size", "noun", "wood", "style", "width")),
        ("{} {} by {}, {}", ("style", "noun", "maker", "colour")),
    ]
    # Where nothing is upholstered, wood and colour are one word; form 4 alone would not show a sofa's fabric.
    written = pl.coalesce(
        [pl.when(pl.col("form") == number).then(pl.format(text, *names)) for number, (text, names) in enumerate(forms)]
    )
    first = written.str.slice(0, 1).str.to_uppercase()
    return words.select(pl.concat_str([first, written.str.slice(1)]).alias("title"))["title"]
