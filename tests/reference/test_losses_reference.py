"""Every loss against a slow, obvious one in float64, a row and a candidate at a time, and against other libraries."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from hatchway.errors import DataError, SettingsError
from hatchway.frequency.exact import ExactCounts
from hatchway.losses.binary import binary_cross_entropy, gbce, negative_sampling, positive_power
from hatchway.losses.candidates import unmasked
from hatchway.losses.debiased import debiased_contrastive, hard_weighted_contrastive
from hatchway.losses.info_nce import info_nce
from hatchway.losses.sampled_softmax import sampled_softmax
from hatchway.losses.triplet import triplet
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream

B, K, D = 7, 5, 6


def world(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return query, positive, negatives, present and log counts."""
    draw = torch_stream(3, "losses")
    query, positive = (torch.randn(B, D, generator=draw, dtype=torch.float64) for _ in range(2))
    negatives = torch.randn(B, K, D, generator=draw, dtype=torch.float64)
    present = torch.rand(B, K, generator=draw) < 0.7
    present[2] = False
    log = 2 * torch.randn(B, K, generator=draw, dtype=torch.float64)
    return query.to(dtype), positive.to(dtype), negatives.to(dtype), present, log.to(dtype)


Row = Callable[[float, list[float], list[float]], float]


def by_row(row: Row, temperature: float) -> list[float]:
    """Compute each row's loss from its positive's score and its candidates' scores and log counts, in Python floats."""
    query, positive, negatives, present, log = world()
    losses = []
    for i in range(B):
        at = [k for k in range(K) if present[i, k]]
        scores = [float(query[i] @ negatives[i, k]) / temperature for k in at]
        losses.append(row(float(query[i] @ positive[i]) / temperature, scores, [float(log[i, k]) for k in at]))
    return losses


def sigmoid(x: float) -> float:
    """Return the logistic function."""
    return 1 / (1 + math.exp(-x))


def test_info_nce() -> None:
    """−ln of the positive's share, with and without counts."""

    def row(own: float, scores: list[float], log: list[float], alpha: float) -> float:
        others = sum(math.exp(s - alpha * n) for s, n in zip(scores, log, strict=True))
        return -math.log(math.exp(own) / (math.exp(own) + others))

    query, positive, negatives, present, log = world()
    for alpha in (0.0, 0.5, 1.0):
        got = info_nce(
            query, positive, negatives, temperature=0.5, present=present, log_count=log, alpha=alpha, reduction="none"
        )
        assert got.tolist() == pytest.approx(by_row(lambda o, s, n, a=alpha: row(o, s, n, a), 0.5), rel=1e-12)  # type: ignore[misc]
    plain = info_nce(query, positive, negatives, temperature=0.5, present=present, reduction="none")
    assert plain.tolist() == pytest.approx(by_row(lambda o, s, n: row(o, s, n, 0.0), 0.5), rel=1e-12)


def test_info_nce_is_cross_entropy_over_one_and_k() -> None:
    """PyTorch's own cross-entropy, loss and gradients, for own and for shared candidates."""
    query, positive, negatives, _, _ = world()
    for candidates in (negatives, negatives[0]):
        leaves = [x.clone().requires_grad_() for x in (query, positive, candidates)]
        own = (leaves[0] * leaves[1]).sum(1, keepdim=True)
        others = torch.einsum("bd,bkd->bk" if candidates.dim() == 3 else "bd,kd->bk", leaves[0], leaves[2])
        wanted = functional.cross_entropy(torch.cat([own, others], 1), torch.zeros(B, dtype=torch.int64))
        got = info_nce(*leaves)
        torch.testing.assert_close(got, wanted)
        for mine, right in zip(torch.autograd.grad(got, leaves), torch.autograd.grad(wanted, leaves), strict=True):
            torch.testing.assert_close(mine, right)


def test_info_nce_over_a_ledger_is_the_sampled_softmax() -> None:
    """With the ledger's columns, counts and masks it is the same loss, computed the obvious way."""
    draw = torch_stream(4, "ledger")
    counts = torch.randint(1, 9, (30,), generator=draw)
    positives = torch.randint(0, 30, (12,), generator=draw)
    ledger = draw_ledger(positives, [InBatch(ExactCounts(counts)), Uniform(30, 40)], draw, "uncorrected")
    items = torch.randn(30, D, generator=draw)
    query = torch.randn(12, D, generator=draw)
    tiled = sampled_softmax(query, items[positives], items[ledger.items], ledger, temperature=0.3, alpha=0.8)
    dense = info_nce(
        query,
        items[positives],
        items[ledger.items],
        present=unmasked(ledger),
        log_count=ledger.log_count,
        temperature=0.3,
        alpha=0.8,
    )
    assert float(tiled) == pytest.approx(float(dense), rel=1e-5)


def test_a_real_valued_k_is_a_mask() -> None:
    """Rows of two and of three candidates: each row loses what it loses alone with its own."""
    query, positive, negatives, _, _ = world()
    present = torch.arange(K) < torch.where(torch.arange(B) % 2 == 0, 2, 3)[:, None]
    got = info_nce(query, positive, negatives, present=present, reduction="none")
    for i in range(B):
        k = 2 + i % 2
        assert float(got[i]) == pytest.approx(float(info_nce(query[i : i + 1], positive[i : i + 1], negatives[i, :k])))


@pytest.mark.parametrize("correction", ["weight", "logit"])
def test_binary_losses(correction: str) -> None:
    """Logistic functions written out, with a weight of 1/n or a score less ln n."""
    query, positive, negatives, present, log = world()
    own_log = torch.linspace(-2, 2, B, dtype=torch.float64)
    rank = iter(range(B))

    def terms(own: float, scores: list[float], counts: list[float], alpha: float) -> tuple[float, float]:
        if correction == "weight":
            weights = [math.exp(-alpha * n) for n in counts]
        else:
            own -= alpha * float(own_log[next(rank)])
            scores = [s - alpha * n for s, n in zip(scores, counts, strict=True)]
            weights = [1.0] * len(scores)
        return -math.log(sigmoid(own)), sum(-w * math.log(1 - sigmoid(s)) for w, s in zip(weights, scores, strict=True))

    options = {"temperature": 0.8, "present": present, "log_count": log, "alpha": 0.6, "reduction": "none"}
    options |= {"correction": correction, "positive_log_count": own_log}
    arguments = (query, positive, negatives)
    beta = [1 + 0.75 * (int(k) / 99 - 1) for k in present.sum(1)]
    losses: dict[str, tuple[Tensor, Callable[[float, float, int, float], float]]] = {
        "sum": (negative_sampling(*arguments, **options), lambda one, others, *_: one + others),  # type: ignore[arg-type]
        "mean": (binary_cross_entropy(*arguments, **options), lambda one, others, k, _: (one + others) / (1 + k)),  # type: ignore[arg-type]
        "gbce": (gbce(*arguments, 100, **options), lambda one, others, k, b: (b * one + others) / (1 + k)),  # type: ignore[arg-type]
    }
    for got, combine in losses.values():
        rank, powers = iter(range(B)), iter(beta)
        wanted = by_row(lambda o, s, n, c=combine, p=powers: c(*terms(o, s, n, 0.6), len(s), next(p)), 0.8)  # type: ignore[misc]
        assert got.tolist() == pytest.approx(wanted, rel=1e-10)


def test_binary_cross_entropy_is_pytorchs() -> None:
    """BCE with logits over 1 + K targets of which the first is 1."""
    query, positive, negatives, _, _ = world()
    logits = torch.cat([(query * positive).sum(1, keepdim=True), torch.einsum("bd,bkd->bk", query, negatives)], 1)
    targets = torch.zeros_like(logits)
    targets[:, 0] = 1
    torch.testing.assert_close(
        binary_cross_entropy(query, positive, negatives), functional.binary_cross_entropy_with_logits(logits, targets)
    )


def test_gbce_is_the_published_transformation() -> None:
    """Its authors' form: the positive's score becomes ln(1/(σ^(−β) − 1)) in float64, then BCE with logits."""
    query, positive, negatives, _, _ = world()
    rate = K / (1000 - 1)
    beta = rate * (0.75 * (1 - 1 / rate) + 1 / rate)
    own = (query * positive).sum(1, keepdim=True)
    changed = torch.log(1 / (torch.sigmoid(own) ** -beta - 1))
    logits = torch.cat([changed, torch.einsum("bd,bkd->bk", query, negatives)], 1)
    targets = torch.zeros_like(logits)
    targets[:, 0] = 1
    wanted = functional.binary_cross_entropy_with_logits(logits, targets)
    torch.testing.assert_close(gbce(query, positive, negatives, 1000, calibration=0.75), wanted)
    single = gbce(query.float(), positive.float(), negatives.float(), 1000, calibration=0.75)
    assert float(single) == pytest.approx(float(wanted), rel=1e-6)
    assert float(positive_power(torch.tensor([float(K)]), 1000, 0.75)) == pytest.approx(beta)


def test_gbce_between_its_ends() -> None:
    """At t = 0 it is BCE; at t = 1 the best score of an item is its logit under the whole catalogue's BCE."""
    query, positive, negatives, _, _ = world()
    torch.testing.assert_close(
        gbce(query, positive, negatives, 1000, calibration=0.0), binary_cross_entropy(query, positive, negatives)
    )
    # An item is the positive with chance p, and each of K uniform draws is it with chance 1/(N − 1) where it is not.
    # The loss p·β·(−ln σ) + (1 − p)·K/(N − 1)·(−ln(1 − σ)) is least at σ = p if β is K/(N − 1).
    share, draws, catalogue = 0.3, 20.0, 101
    beta = float(positive_power(torch.tensor([draws]), catalogue, 1.0))
    logit = torch.tensor(math.log(share / (1 - share)), dtype=torch.float64, requires_grad=True)
    loss = share * beta * functional.softplus(-logit) + (1 - share) * draws / (catalogue - 1) * functional.softplus(
        logit
    )
    loss.backward()
    assert logit.grad is not None
    assert float(logit.grad) == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize(("correction", "alpha"), [("weight", 0.0), ("weight", 0.4), ("weight", 1.0), ("logit", 1.0)])
def test_what_a_binary_loss_learns(correction: str, alpha: float) -> None:
    """Least at scores of ln P + (alpha − 1)·ln n, by the expected gradient over every positive and every candidate."""
    chance = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    count = torch.tensor([2.0, 0.5, 0.1], dtype=torch.float64)
    scores = (chance.log() + (alpha - 1) * count.log()).requires_grad_()
    query = torch.ones(1, 1, dtype=torch.float64)
    total = torch.zeros((), dtype=torch.float64)
    empty, every = torch.zeros(1, 0, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.bool)
    for item in range(3):
        vector = scores[item].reshape(1, 1)
        options = {"correction": correction, "alpha": alpha, "positive_log_count": count[item].log().reshape(1)}
        as_positive = negative_sampling(query, vector, empty, log_count=torch.zeros(1, 0), **options)  # type: ignore[arg-type]
        both = negative_sampling(
            query,
            vector,
            vector[None],
            present=every,
            log_count=count[item].log().reshape(1),
            **options,  # type: ignore[arg-type]
        )
        total = total + chance[item] * as_positive + count[item] * (both - as_positive)
    (gradient,) = torch.autograd.grad(total, scores)
    assert gradient.tolist() == pytest.approx([0.0] * 3, abs=1e-12)


def test_weighted_candidates_stand_for_the_catalogue() -> None:
    """With alpha 1 the expected candidates' part, over every single draw, is the sum over all items, once each."""
    draw = torch_stream(5, "enumerate")
    items = torch.randn(6, D, generator=draw, dtype=torch.float64)
    chance = torch.rand(6, generator=draw, dtype=torch.float64)
    chance /= chance.sum()
    query = torch.randn(1, D, generator=draw, dtype=torch.float64)
    empty = items[None, :0]
    alone = negative_sampling(query, query, empty)
    draws = 10  # n = draws · chance; each of the draws is item j with that chance
    expected = sum(
        draws
        * float(chance[j])
        * float(
            negative_sampling(query, query, items[None, j : j + 1], log_count=(draws * chance[j : j + 1]).log()) - alone
        )
        for j in range(6)
    )
    whole = float(functional.softplus(query @ items.T).sum())
    assert expected == pytest.approx(whole, rel=1e-12)


def test_counts_that_cannot_be_are_refused() -> None:
    """A drawn candidate has a count; NCE needs the positive's, too; a share of the correction is 0 or more."""
    query, positive, negatives, present, log = world()
    present[0, 0] = True
    zero = log.clone()
    zero[0, 0] = -math.inf
    with pytest.raises(DataError, match="log_count is not finite for a candidate that is present"):
        info_nce(query, positive, negatives, present=present, log_count=zero)
    present[0, 0] = False
    assert math.isfinite(float(info_nce(query, positive, negatives, present=present, log_count=zero)))
    with pytest.raises(DataError, match=r"log_count has shape \(7, 4\), expected \(7, 5\)"):
        info_nce(query, positive, negatives, log_count=log[:, :4])
    with pytest.raises(SettingsError, match="'logit' needs positive_log_count"):
        negative_sampling(query, positive, negatives, log_count=log, correction="logit")
    with pytest.raises(DataError, match="positive_log_count is not finite"):
        negative_sampling(query, positive, negatives, log_count=log, correction="logit", positive_log_count=zero[:, 0])
    with pytest.raises(SettingsError, match="correction is 'nce'; allowed: weight, logit"):
        negative_sampling(query, positive, negatives, log_count=log, correction="nce")  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"present is torch.float32; allowed: torch.bool"):
        info_nce(query, positive, negatives, present=present.float())
    for alpha in (-0.5, math.nan, math.inf):
        for loss in (info_nce, negative_sampling, binary_cross_entropy):
            with pytest.raises(SettingsError, match=r"alpha is .*; allowed: 0"):
                loss(query, positive, negatives, log_count=log, alpha=alpha)
    for calibration in (-0.1, 1.1, math.nan):
        with pytest.raises(SettingsError, match="calibration is"):
            gbce(query, positive, negatives, 100, calibration=calibration)
    with pytest.raises(SettingsError, match="catalogue is 1; allowed: 2"):
        gbce(query, positive, negatives, 1)


@pytest.mark.parametrize("distance", ["cosine", "dot"])
@pytest.mark.parametrize("hardest", [None, 1, 2, 9])
def test_triplet(distance: str, hardest: int | None) -> None:
    """Differences of distances, the largest ones first, by hand."""
    query, positive, negatives, present, _ = world()

    def apart(a: Tensor, b: Tensor) -> float:
        product = float(a @ b)
        return 1 - product / float(a.norm() * b.norm()) if distance == "cosine" else -product

    wanted = []
    for i in range(B):
        over = [
            max(0.0, apart(query[i], positive[i]) - apart(query[i], negatives[i, k]) + 0.3)
            for k in range(K)
            if present[i, k]
        ]
        over = sorted(over, reverse=True)[: hardest or K]
        wanted.append(sum(over) / len(over) if over else 0.0)
    got = triplet(
        query,
        positive,
        negatives,
        margin=0.3,
        distance=distance,  # type: ignore[arg-type]
        hardest=hardest,
        present=present,
        reduction="none",
    )
    assert got.tolist() == pytest.approx(wanted, rel=1e-12)
    single = triplet(
        query.float(),
        positive.float(),
        negatives.float(),
        margin=0.3,
        distance=distance,  # type: ignore[arg-type]
        present=present,
        hardest=hardest,
    )
    assert float(single) == pytest.approx(sum(wanted) / B, rel=1e-5)


def test_triplet_is_pytorchs() -> None:
    """PyTorch's triplet loss with a distance of 1 − cosine, loss and gradients."""
    query, positive, negatives, _, _ = world()
    leaves = [x.clone().requires_grad_() for x in (query, positive, negatives)]
    wanted = functional.triplet_margin_with_distance_loss(
        leaves[0][:, None].expand(B, K, D).reshape(-1, D),
        leaves[1][:, None].expand(B, K, D).reshape(-1, D),
        leaves[2].reshape(-1, D),
        distance_function=lambda a, b: 1 - functional.cosine_similarity(a, b),
        margin=0.2,
    )
    got = triplet(leaves[0], leaves[1], leaves[2], margin=0.2)
    torch.testing.assert_close(got, wanted)
    for mine, right in zip(torch.autograd.grad(got, leaves), torch.autograd.grad(wanted, leaves), strict=True):
        torch.testing.assert_close(mine, right)


def test_directions_of_odd_lengths() -> None:
    """Vectors as long as 1e30 and as short as 1e-30 have cosines; a zero vector has cosine 0 and no gradient."""
    draw = torch_stream(6, "lengths")
    query, positive = (torch.randn(4, D, generator=draw) for _ in range(2))
    negatives = torch.randn(4, 2, D, generator=draw)
    wanted = triplet(query, positive, negatives, margin=0.5)
    long = triplet(query * 1e30, positive * 1e-30, negatives * 1e30, margin=0.5)
    assert float(long) == pytest.approx(float(wanted), rel=1e-5)
    zero = torch.zeros(4, D, requires_grad=True)
    loss = triplet(zero, positive, negatives, margin=0.5)
    loss.backward()
    assert float(loss.detach()) == 0.5
    assert zero.grad is not None
    assert float(zero.grad.abs().max()) == 0.0


def test_margins_that_cannot_be_are_refused() -> None:
    """Negative and NaN margins, unknown distances, no candidates to average."""
    query, positive, negatives, _, _ = world()
    for margin in (-0.1, math.nan, math.inf):
        with pytest.raises(SettingsError, match="margin is"):
            triplet(query, positive, negatives, margin=margin)
    with pytest.raises(SettingsError, match="distance is 'euclid'; allowed: cosine, dot"):
        triplet(query, positive, negatives, margin=0.1, distance="euclid")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="hardest is 0; allowed: 1 or more"):
        triplet(query, positive, negatives, margin=0.1, hardest=0)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.95])
@pytest.mark.parametrize("hardness", [0.0, 0.5, 2.0])
def test_debiased(share: float, hardness: float) -> None:
    """The published estimate with its floor, in exponentials; both sides of the floor occur."""
    query, positive, negatives, present, _ = world()
    unit = [functional.normalize(x, dim=-1) for x in (query, positive, negatives)]
    floored = 0
    wanted = []
    for i in range(B):
        own = math.exp(float(unit[0][i] @ unit[1][i]) / 0.5)
        others = [math.exp(float(unit[0][i] @ unit[2][i, k]) / 0.5) for k in range(K) if present[i, k]]
        if not others:
            wanted.append(0.0)
            continue
        number = len(others)
        importance = [x**hardness for x in others]
        total = sum(a * x for a, x in zip(importance, others, strict=True)) / (sum(importance) / number)
        estimate = (total - share * number * own) / (1 - share)
        floored += estimate < number * math.exp(-1 / 0.5)
        wanted.append(-math.log(own / (own + max(estimate, number * math.exp(-1 / 0.5)))))
    options = {"positive_share": share, "temperature": 0.5, "present": present, "reduction": "none"}
    got = hard_weighted_contrastive(*unit, hardness=hardness, **options)  # type: ignore[arg-type]
    assert got.tolist() == pytest.approx(wanted, rel=1e-10)
    if not hardness:
        assert debiased_contrastive(*unit, **options).tolist() == got.tolist()  # type: ignore[arg-type]
    assert (floored > 0) == (share > 0)
    assert floored < B - 1 or share == 0.95


def test_debiased_without_a_share_is_info_nce() -> None:
    """τ = 0 takes nothing out, and the floor is below every score of unit vectors."""
    query, positive, negatives, present, _ = world()
    unit = [functional.normalize(x, dim=-1) for x in (query, positive, negatives)]
    torch.testing.assert_close(
        debiased_contrastive(unit[0], unit[1], unit[2], positive_share=0.0, temperature=0.2, present=present),
        info_nce(unit[0], unit[1], unit[2], temperature=0.2, present=present),
    )


def test_debiasing_takes_the_false_negatives_out() -> None:
    """A share τ of candidates that are positives, in the mean: the loss is that of the true negatives alone."""
    share, number = 0.25, 400
    true = np.cos(np.linspace(0.5, 3.0, int(number * (1 - share))))
    candidates = torch.cat([torch.tensor(true), torch.full((int(number * share),), 0.9, dtype=torch.float64)])
    query, positive = torch.ones(1, 1, dtype=torch.float64), torch.full((1, 1), 0.9, dtype=torch.float64)
    got = debiased_contrastive(query, positive, candidates[:, None], positive_share=share, temperature=0.3)
    # The estimate is of N true negatives, of which N·(1 − τ) are there.
    others = np.exp(true / 0.3).mean() * number
    own = math.exp(0.9 / 0.3)
    assert float(got) == pytest.approx(-math.log(own / (own + others)), rel=1e-9)


def test_shares_that_cannot_be_are_refused() -> None:
    """τ from 0 to below 1, β of 0 or more, a finite lowest score."""
    query, positive, negatives, _, _ = world()
    for share in (-0.1, 1.0, math.nan):
        with pytest.raises(SettingsError, match="positive_share is"):
            debiased_contrastive(query, positive, negatives, positive_share=share)
    for hardness in (-1.0, math.nan, math.inf):
        with pytest.raises(SettingsError, match="hardness is"):
            hard_weighted_contrastive(query, positive, negatives, positive_share=0.1, hardness=hardness)
    with pytest.raises(SettingsError, match="lowest is"):
        debiased_contrastive(query, positive, negatives, positive_share=0.1, lowest=-math.inf)
