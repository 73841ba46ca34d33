"""Row-wise sparse optimisation: a step touches the rows that were looked up, and nothing else.

Tables of embeddings are ``nn.Embedding(..., sparse=True)``; their gradient lists (row, value) pairs. The optimiser sums
the pairs of each row and keeps one number of state per row instead of one or two per element, so that twenty million
rows of 64 numbers cost 80 MB of state, not 10 GB, and a step's time does not depend on the size of the table.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


def summed_rows(gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Sum an uncoalesced sparse gradient by row.

    Args:
        gradient: sparse [N, d], as ``nn.Embedding(sparse=True)`` makes it.

    Returns:
        rows: [U] int64, unique and ascending.
        values: [U, d].
    """
    indices, values = gradient._indices()[0], gradient._values()  # noqa: SLF001  the uncoalesced pairs have no public name
    rows, inverse = torch.unique(indices, return_inverse=True)
    summed = values.new_zeros(len(rows), values.shape[1]).index_add_(0, inverse, values)
    return rows, summed


class RowWiseAdagrad(Optimizer):
    """Adagrad with one accumulator a row: the mean square of the row's gradient (Mudigere et al. 2022, section 4.1).

    Parameters with sparse gradients are updated in the touched rows only. State: one float32 a row.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        learning_rate: float,
        *,
        decay: float = 1.0,
        shrink: float = 0.0,
        epsilon: float = 1e-8,
    ) -> None:
        """Make the optimiser.

        Args:
            parameters: [N, d] tables with sparse gradients.
            learning_rate: the step's length in units of the gradient's root mean square.
            decay: factor on a row's accumulator at each of its updates; 1 is Adagrad, below 1 forgets as RMSprop does.
            shrink: weight decay apart from the gradient (Loshchilov & Hutter 2019), of touched rows only: at each of
                its updates a row loses this share of itself, times the learning rate.
            epsilon: added to the root, so that a zero gradient moves nothing.
        """
        super().__init__(list(parameters), {"lr": learning_rate, "decay": decay, "shrink": shrink, "epsilon": epsilon})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update the rows that were looked up since the gradients were last cleared."""
        if closure is not None:
            raise TypeError("RowWiseAdagrad.step takes no closure: it never evaluates the loss again")
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is None:
                    continue
                state = self.state[table]
                if "square" not in state:
                    state["square"] = table.new_zeros(table.shape[0])
                    if group["decay"] < 1.0:
                        state["updates"] = table.new_zeros(table.shape[0])
                rows, gradient = summed_rows(table.grad)
                square = state["square"][rows] * group["decay"]
                fresh = gradient.square().mean(1)
                if group["decay"] < 1.0:
                    updates = state["updates"][rows] + 1
                    state["updates"][rows] = updates
                    square += (1 - group["decay"]) * fresh
                    scale = square / (1 - group["decay"] ** updates)
                else:
                    square += fresh
                    scale = square
                state["square"][rows] = square
                change = gradient * (-group["lr"] / (scale.sqrt() + group["epsilon"]))[:, None]
                if group["shrink"]:
                    change -= group["lr"] * group["shrink"] * table[rows]
                table.index_add_(0, rows, change)
