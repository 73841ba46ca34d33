"""Which items were there to be ignored: a listing that was not on offer is no negative."""

import numpy as np
import numpy.typing as npt

from hatchway.data.engagements import Part
from hatchway.data.log import Log


def living_in_training(log: Log) -> npt.NDArray[np.bool_] | None:
    """Mark the items that were on offer at some time of the training part.

    An item was not, if the catalogue says that it was listed after the last training engagement or gone before the
    first. An item that somebody engaged with in the training part was, whatever the catalogue says. A log that brings
    its own answer (:attr:`~hatchway.data.log.Log.living`) is believed.

    Returns:
        [N] bool, or None where the log has no times or the catalogue no column ``listed`` or ``gone`` (then every item
        counts as living).
    """
    if log.living is not None:
        return log.living
    engagements, catalogue = log.engagements, log.catalogue
    in_training = engagements.parts == Part.TRAIN
    if engagements.times is None or not (catalogue.has("listed") or catalogue.has("gone")) or not in_training.any():
        return None
    times = engagements.times[in_training]
    first, last = int(times.min()), int(times.max())
    living = np.ones(len(catalogue), bool)
    if catalogue.has("listed"):
        living &= catalogue.frame["listed"].fill_null(first).to_numpy() <= last
    if catalogue.has("gone"):
        living &= catalogue.frame["gone"].fill_null(last).to_numpy() >= first
    living[engagements.items[in_training]] = True
    return living
