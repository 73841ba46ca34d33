"""Second derivatives of losses that compute their gradient themselves: refused in words, not silently zero."""

import torch
from torch import Tensor

from hatchway.errors import UsageError


class _Once(torch.autograd.Function):
    """Passes a gradient on, and says what is missing when somebody differentiates it again."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor, loss: str, *inputs: Tensor) -> Tensor:  # noqa: ARG004
        ctx.loss = loss  # type: ignore[attr-defined]
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: Tensor) -> tuple[None, ...]:  # noqa: ARG004
        raise UsageError(
            f"{ctx.loss} gives first derivatives only: its gradient is computed tile by tile and not recorded. "  # type: ignore[attr-defined]
            "For second derivatives (a gradient penalty, say) use hatchway.losses.info_nce, which is plain PyTorch"
        )


def once_differentiable(gradient: Tensor, loss: str, *inputs: Tensor) -> Tensor:
    """Return the gradient; under ``create_graph=True`` it carries a node that refuses a second differentiation.

    Args:
        gradient: of a loss whose backward pass is not recorded.
        loss: the name of the loss, for the message.
        inputs: what the gradient depends on; where none of them needs a gradient, nothing is refused.
    """
    result: Tensor = _Once.apply(gradient, loss, *inputs)  # type: ignore[no-untyped-call]
    return result
