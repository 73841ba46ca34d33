"""The schedules by hand, how many negatives rows get, and the bound on the information."""

import math

import pytest
import torch

from hatchway.errors import SettingsError
from hatchway.how_many.schedule import ScheduleSettings, information_bound, k_at, negatives_of_rows, share_at
from hatchway.randomness import torch_stream

ADAPTIVE = {"k": 9.0, "turning_point": 0.2}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ADAPTIVE, [1, 5, 9, 7, 5, 3, 1]),
        (
            ADAPTIVE | {"decline": "cosine"},
            [1, 5, 9, 9 - 8 * (1 - math.sqrt(0.5)) / 2, 5, 1 + 4 - 4 * math.sqrt(0.5), 1],
        ),
        (ADAPTIVE | {"decline": "exponential"}, [1, 5, 9, 9**0.75, 3, 9**0.25, 1]),
        ({"shape": "fixed", "k": 9.0}, [9] * 7),
        ({"shape": "increase", "k": 9.0}, [1, 1.8, 2.6, 4.2, 5.8, 7.4, 9]),
        ({"shape": "decrease", "k": 9.0}, [9, 8.2, 7.4, 5.8, 4.2, 2.6, 1]),
    ],
)
def test_shapes_by_hand(settings: dict[str, object], expected: list[float]) -> None:
    """Each shape and decline at 0, 10, 20, 40, 60, 80 and 100 % of a run."""
    schedule = ScheduleSettings.parse(settings)
    assert [k_at(schedule, step, 101) for step in (0, 10, 20, 40, 60, 80, 100)] == pytest.approx(expected)


def test_the_default_turns_at_a_tenth() -> None:
    """As published: from 1 to K* in 10 % of the steps, then down to 1 at the end."""
    values = [k_at(ScheduleSettings(k=20), step, 1001) for step in range(1001)]
    assert values.index(max(values)) == 100
    assert (values[0], max(values), values[-1]) == (1, 20, 1)


@pytest.mark.parametrize(("turning_point", "expected"), [(0.0, [5.0, 3.0, 1.0]), (1.0, [1.0, 3.0, 5.0])])
def test_a_turning_point_at_an_end(turning_point: float, expected: list[float]) -> None:
    """At 0 the run begins with K*, at 1 it ends with it."""
    schedule = ScheduleSettings(k=5, turning_point=turning_point)
    assert [k_at(schedule, step, 3) for step in range(3)] == expected


def test_short_runs() -> None:
    """One step and two have values, too."""
    assert k_at(ScheduleSettings(k=5), 0, 1) == 1
    assert [k_at(ScheduleSettings(k=5), step, 2) for step in (0, 1)] == [1, 1]


@pytest.mark.parametrize(("step", "total"), [(-1, 10), (10, 10), (0, 0)])
def test_no_step_of_the_run(step: int, total: int) -> None:
    """A step outside the run is a mistake of the caller."""
    with pytest.raises(ValueError, match=f"step {step} is not one of a run of {total} steps"):
        k_at(ScheduleSettings(), step, total)


def test_settings_that_say_nothing_are_refused() -> None:
    """The turning point and the decline are the adaptive shape's; written out as they are by default they pass."""
    with pytest.raises(SettingsError, match="turning_point go with shape adaptive; shape is fixed"):
        ScheduleSettings.parse({"shape": "fixed", "turning_point": 0.3})
    with pytest.raises(SettingsError, match="decline go with shape adaptive"):
        ScheduleSettings.parse({"shape": "increase", "decline": "cosine"})
    with pytest.raises(SettingsError, match="greater than or equal to 1"):
        ScheduleSettings.parse({"k": 0.5})
    written = ScheduleSettings(shape="fixed", k=3).model_dump()
    assert ScheduleSettings.parse(written) == ScheduleSettings(shape="fixed", k=3)


def test_rows_get_whole_numbers() -> None:
    """Of 2.25, a quarter of the rows get 3 and the others 2; the mean is 2.25 within five deviations."""
    drawn = negatives_of_rows(2.25, 100_000, torch_stream(1, "rows"))
    assert drawn.dtype == torch.int64
    assert set(drawn.tolist()) == {2, 3}
    assert float(drawn.double().mean()) == pytest.approx(2.25, abs=5 * math.sqrt(0.25 * 0.75 / 100_000))


@pytest.mark.parametrize("k", [0.0, 1.0, 7.0])
def test_a_whole_number_is_met_by_every_row(k: float) -> None:
    """No row gets one more or one less."""
    assert negatives_of_rows(k, 1000, torch_stream(1, "whole")).tolist() == [int(k)] * 1000


def test_the_stream_does_not_depend_on_k() -> None:
    """What is drawn afterwards from the same generator is the same for every K."""
    left = []
    for k in (1.0, 2.5, 30.9):
        generator = torch_stream(4, "rows")
        negatives_of_rows(k, 17, generator)
        left.append(float(torch.rand(1, generator=generator)))
    assert left[0] == left[1] == left[2]


def test_the_share_of_the_draws() -> None:
    """All of them where K is K*, a K*-th at the ends; never none."""
    schedule = ScheduleSettings(k=4, turning_point=0.5)
    assert [share_at(schedule, step, 5) for step in range(5)] == [0.25, 0.625, 1, 0.625, 0.25]
    assert share_at(ScheduleSettings(shape="fixed", k=7.3), 2, 5) == 1


def test_the_bound_on_the_information() -> None:
    """A model that knows nothing has a loss of ln(K + 1) and a bound of 0; a perfect one says ln(K + 1) at most."""
    assert information_bound(math.log(5), 4) == pytest.approx(0)
    assert information_bound(0.0, 4) == pytest.approx(math.log(5))
    assert information_bound(1.0, 1.5) == pytest.approx(math.log(2.5) - 1)
