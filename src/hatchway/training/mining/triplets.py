"""A mined set for other programs: the user's own ids, a row for each positive, as lists."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from hatchway.artefacts.atomic import replacing_file
from hatchway.data.contexts import contexts_of
from hatchway.data.log import Log
from hatchway.negatives.sources import Reason
from hatchway.training.mining.mined import Mined
from hatchway.training.mining.mined_set import as_lists

FILE = "triplets.parquet"
_HISTORY = 20
_ROWS_A_GROUP = 65_536


def triplets(mined: Mined, log: Log, history: int = _HISTORY) -> pl.DataFrame:
    """Return the mined set with external ids, [P] rows.

    Columns: ``buyer``, ``query_item``, ``history`` (oldest first) and, where the log has query texts, ``query``: who
    asked, as of the row's time; ``positive`` with ``positive_score`` and ``positive_rank`` (null where it is unknown,
    or beyond the ranks that were asked for); ``negatives`` with ``negative_scores`` and ``negative_ranks``; ``refused``
    with ``refused_scores``, ``refused_ranks`` and ``refused_reasons``. Where the catalogue has titles,
    ``query_item_title``, ``positive_title`` and ``negative_titles`` stand beside. An id is null where there is none: no
    listing was looked at, or the refused item is not in the catalogue.

    Args:
        mined: what was mined.
        log: for which it was.
        history: how many of the last engagements are told.
    """
    engagements = log.engagements
    contexts = contexts_of(engagements, mined.rows, history)
    titles = log.catalogue.frame["title"] if log.catalogue.has("title") else None
    positives = engagements.items[mined.rows]
    columns = [
        log.buyers.external(contexts.buyers).alias("buyer"),
        _ids(log, contexts.query_items, "query_item"),
        as_lists("history", _ids(log, contexts.history, "history"), contexts.history_offsets),
        *([] if contexts.texts is None else [pl.Series("query", contexts.texts, dtype=pl.String)]),
        _ids(log, positives, "positive"),
        pl.Series("positive_score", mined.positive_scores).fill_nan(None),
        pl.Series("positive_rank", mined.positive_ranks).set(pl.Series(mined.positive_ranks == 0), None),
    ]
    for name, plural, chosen in (
        ("negative", "negatives", mined.reasons == 0),
        ("refused", "refused", mined.reasons != 0),
    ):
        counted = np.concatenate([[0], np.cumsum(chosen)])
        offsets = counted[mined.offsets].astype(np.int64)
        flat = {
            plural: _ids(log, mined.items[chosen], plural),
            f"{name}_scores": pl.Series(mined.scores[chosen]),
            f"{name}_ranks": pl.Series(mined.ranks[chosen]),
        }
        if name == "refused":
            words = {int(reason): reason.name.lower() for reason in Reason}
            told = pl.Series(mined.reasons[chosen]).cast(pl.Int64)
            flat["refused_reasons"] = told.replace_strict(words, return_dtype=pl.String)
        elif titles is not None:
            flat["negative_titles"] = titles.gather(mined.items[chosen].astype(np.uint32))
        columns += [as_lists(key, values, offsets) for key, values in flat.items()]
    if titles is not None:
        looked_at = pl.Series(contexts.query_items.astype(np.int64))
        columns.append(titles.gather(looked_at.set(looked_at < 0, None)).alias("query_item_title"))
        columns.append(titles.gather(positives.astype(np.uint32)).alias("positive_title"))
    return pl.DataFrame(columns)


def write_triplets(folder: Path, mined: Mined, log: Log) -> Path:
    """Write ``triplets.parquet`` into a folder, whole or not at all, and return its path."""
    path = folder / FILE
    with replacing_file(path) as partial:
        triplets(mined, log).write_parquet(partial, compression="zstd", row_group_size=_ROWS_A_GROUP)
    return path


def _ids(log: Log, rows: npt.NDArray[np.integer], name: str) -> pl.Series:
    """Return the external ids of item rows, null where a row is −1."""
    places = pl.Series(rows.astype(np.int64))
    return log.catalogue.ids.gather(places.set(places < 0, None)).alias(name)
