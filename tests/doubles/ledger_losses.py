"""Losses of a ledger's columns, for tests that hold one way of computing them against another."""

from collections.abc import Callable

from torch import Tensor

from hatchway.losses.binary import binary_cross_entropy, gbce, negative_sampling
from hatchway.losses.debiased import debiased_contrastive, hard_weighted_contrastive
from hatchway.losses.info_nce import info_nce
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.losses.triplet import triplet
from hatchway.negatives.ledger import Ledger

Vectors = dict[str, Tensor]
"""``query``, ``positive``, ``columns``, ``own``, and ``items``, those of the whole catalogue."""

LOSSES: dict[str, Callable[[Ledger, Vectors], Tensor]] = {
    "sampled softmax": lambda ledger, v: sampled_softmax(v["query"], v["positive"], v["columns"], ledger, own=v["own"]),
    "InfoNCE": lambda ledger, v: info_nce(v["query"], v["positive"], v["own"], present=ledger.own_stands),
    "negative sampling": lambda ledger, v: negative_sampling(
        v["query"], v["positive"], v["own"], present=ledger.own_stands, log_count=ledger.own_log_count
    ),
    "binary cross-entropy": lambda _, v: binary_cross_entropy(v["query"], v["positive"], v["columns"]),
    "gBCE": lambda ledger, v: gbce(v["query"], v["positive"], v["own"], len(v["items"]), present=ledger.own_stands),
    "triplet": lambda ledger, v: triplet(v["query"], v["positive"], v["own"], margin=0.5, present=ledger.own_stands),
    "debiased": lambda _, v: debiased_contrastive(v["query"], v["positive"], v["columns"], positive_share=0.1),
    "hard-weighted": lambda _, v: hard_weighted_contrastive(
        v["query"], v["positive"], v["columns"], positive_share=0.1, hardness=1.0
    ),
}
