"""A temperature that a module keeps, fixed or learned."""

import torch
from torch import Tensor, nn

from hatchway.losses.checks import check_temperature


class Tempered(nn.Module):
    """A module with a temperature.

    Args:
        temperature: the fixed or the initial temperature.
        learn_temperature: make its logarithm a parameter that is trained.
    """

    def __init__(self, temperature: float = 0.1, *, learn_temperature: bool = False) -> None:
        super().__init__()
        check_temperature(temperature)
        # The logarithm is learned, so that no step can make the temperature zero or negative.
        self.log_temperature = nn.Parameter(torch.tensor(temperature).log(), requires_grad=learn_temperature)

    @property
    def temperature(self) -> Tensor:
        """The temperature as it is now, a scalar."""
        return self.log_temperature.exp()
