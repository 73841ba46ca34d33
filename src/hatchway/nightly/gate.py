"""What keeps a model from being published: it is worse, it shifted, or its index is broken."""

from collections.abc import Mapping, Sequence

from hatchway.index.build import IndexFacts
from hatchway.nightly.comparison import DECIDING, Compared
from hatchway.nightly.pointer import Verdict
from hatchway.nightly.settings import GateSettings


def judge(
    index: IndexFacts,
    offered: int,
    compared: Sequence[Compared],
    shares: tuple[Mapping[str, float], Mapping[str, float]] | None,
    settings: GateSettings,
) -> tuple[Verdict, ...]:
    """Look at what tonight made.

    Args:
        index: the new index.
        offered: how many items are for sale, all of which the index should hold.
        compared: the new model beside the old one, all cases first; empty where there is no old one.
        shares: how the old and the new model divide what they recommend between head, torso, tail and new.
        settings: the limits.
    """
    verdicts = [_whole(index, offered), _recall(index, settings)]
    verdicts += [_regression(piece, settings) for piece in compared if piece.kind in DECIDING]
    if shares is not None:
        verdicts.append(_shift(*shares, settings))
    return tuple(verdicts)


def _whole(index: IndexFacts, offered: int) -> Verdict:
    said = f"the index holds {index.vectors:,} of {offered:,} listings on offer"
    return Verdict(name="index whole", passed=index.vectors == offered, said=said)


def _recall(index: IndexFacts, settings: GateSettings) -> Verdict:
    if index.recall is None:
        return Verdict(name="index recall", passed=True, said="nothing to measure recall on", decided=False)
    passed = index.recall >= settings.least_recall
    said = (
        f"recall@{index.recall_at} of the index {index.recall:.4f}, at least {settings.least_recall:g} "
        f"({'reached' if passed else 'missed'})"
    )
    return Verdict(name="index recall", passed=passed, said=said)


def _regression(piece: Compared, settings: GateSettings) -> Verdict:
    """Refuse where even the upper end of the interval is a loss beyond what is allowed."""
    metric = f"{settings.metric}@{settings.k}"
    name = metric if piece.kind == "all" else f"{metric} {piece.kind} {piece.name}"
    said = f"{piece.old:.4f} → {piece.new:.4f} over {piece.cases:,} {'case' if piece.cases == 1 else 'cases'}"
    if piece.high is None or piece.low is None or piece.cases < settings.fewest_cases:
        return Verdict(name=name, passed=True, said=f"{said}: too few to refuse a night", decided=False)
    said += f", difference {piece.low:+.4f} to {piece.high:+.4f}"
    allowed = -settings.most_loss * piece.old
    if piece.high < allowed:
        return Verdict(name=name, passed=False, said=f"{said}: a loss beyond the interval")
    if piece.low < allowed:
        return Verdict(name=name, passed=True, said=f"{said}: these cases do not decide", decided=False)
    return Verdict(name=name, passed=True, said=said + (": better" if piece.low > 0 else ": not worse"))


def _shift(old: Mapping[str, float], new: Mapping[str, float], settings: GateSettings) -> Verdict:
    moved = new["head"] - old["head"]
    said = f"the head's share of what is recommended {old['head']:.1%} → {new['head']:.1%}"
    passed = abs(moved) <= settings.most_shift
    return Verdict(
        name="head against tail",
        passed=passed,
        said=said + ("" if passed else f": more than {settings.most_shift:.0%}"),
    )
