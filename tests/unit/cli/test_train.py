"""What ``hatchway train`` says of the weights that it kept."""

from hatchway.cli.train import validation_line

HISTORY = ({"step": 19.0, "recall@20": 0.2692}, {"step": 38.0, "recall@20": 0.2442}, {"step": 57.0, "recall@20": 0.2})


def test_the_validation_is_that_of_the_weights_which_are_kept_not_the_last_one() -> None:
    """The best step is kept by default, and later validations are worse."""
    assert validation_line(HISTORY, kept=19) == ["validation of step 19: recall@20 0.2692"]
    assert validation_line(HISTORY, kept=57) == ["validation of step 57: recall@20 0.2000"]


def test_weights_that_were_not_validated_name_the_step_that_was() -> None:
    """Nothing is said where there was no validation so far."""
    assert validation_line(HISTORY, kept=40) == ["validation of step 38: recall@20 0.2442"]
    assert validation_line((), kept=40) == []
    assert validation_line(HISTORY, kept=3) == []
