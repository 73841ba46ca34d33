"""Row-wise sparse optimisation: a step touches the rows that were looked up, and nothing else.

The optimiser sums the gradients of each row that was looked up and keeps one number of state per row instead of one or
two per element, so that twenty million rows of 64 numbers cost 80 MB of state, not 10 GB, and a step's time does not
depend on the size of the table.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from hatchway.towers.lookups import LookedUp
from hatchway.towers.tables import Seen, Table
from hatchway.training.row_updates import RowRule, update_rows


class RowWiseAdagrad(Optimizer):
    """Adagrad with one accumulator a row: the mean square of the row's gradient (Mudigere et al. 2022, section 4.1).

    Parameters with sparse gradients are updated in the touched rows only. State: one float32 a row.
    """

    def __init__(
        self,
        tables: Iterable[nn.Embedding | Tensor],
        learning_rate: float,
        *,
        decay: float = 1.0,
        shrink: float = 0.0,
        epsilon: float = 1e-8,
    ) -> None:
        """Make the optimiser, which takes over the gradients of every :class:`~hatchway.towers.tables.Table`.

        Args:
            tables: tables, or [N, d] parameters whose gradients are sparse.
            learning_rate: the step's length in units of the gradient's root mean square.
            decay: factor on a row's accumulator at each of its updates; 1 is Adagrad, below 1 forgets as RMSprop does.
            shrink: weight decay apart from the gradient (Loshchilov & Hutter 2019), of touched rows only: at each of
                its updates a row loses this share of itself, times the learning rate.
            epsilon: added to the root, so that a zero gradient moves nothing.
        """
        given = list(tables)
        weights = [part.weight if isinstance(part, nn.Embedding) else part for part in given]
        super().__init__(weights, {"lr": learning_rate, "decay": decay, "shrink": shrink, "epsilon": epsilon})
        self._seen: dict[Tensor, Seen] = {}
        for part in given:
            if isinstance(part, Table):
                self._seen[part.weight] = Seen()
                part.owned_by(self._seen[part.weight])

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients that arrived."""
        super().zero_grad(set_to_none)
        for seen in self._seen.values():
            seen.clear()

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update the rows that were looked up since the gradients were last cleared."""
        if closure is not None:
            raise TypeError("RowWiseAdagrad.step takes no closure: it never evaluates the loss again")
        for group in self.param_groups:
            rule = RowRule(group["lr"], group["decay"], group["shrink"], group["epsilon"])
            for table in group["params"]:
                looked_up = self._looked_up(table)
                if not looked_up:
                    continue
                state = self.state[table]
                if "square" not in state:
                    state["square"] = table.new_zeros(table.shape[0])
                    if rule.decay < 1.0:
                        state["updates"] = table.new_zeros(table.shape[0])
                update_rows(table, state["square"], state.get("updates"), looked_up, rule)

    def _looked_up(self, table: Tensor) -> Sequence[LookedUp]:
        found = list(self._seen.get(table, ()))
        if table.grad is not None:
            pairs = table.grad
            found.append(LookedUp(pairs._indices()[0], pairs._values()))  # noqa: SLF001  no public name for the pairs as they are
        return found
