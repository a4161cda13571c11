"""Multi-head attention once more, one query of one head at a time; and how close.

Written without the package, so that the two can disagree.
"""

import torch
from torch import Tensor, nn

VALUES = {torch.float32: 1e-6, torch.float64: 1e-12}
GRADIENTS = {torch.float32: 2e-6, torch.float64: 1e-12}


def attend(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor, scale: float) -> Tensor:
    """Attend from (n_q, d_k) to the allowed keys only: the others are not there."""
    rows = []
    for query, keep in zip(q, allowed, strict=True):
        scores = (k[keep] * query * scale).sum(-1)
        weights = scores.exp() / scores.exp().sum()
        rows.append((weights[:, None] * v[keep]).sum(0))
    return torch.stack(rows)


def loop_over_heads(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    allowed: Tensor,
    gate: Tensor,
) -> Tensor:
    """Add up the heads of (batch, n, width) tensors, each cut out of the weights.

    ``allowed`` is (batch, num_heads, n_q, n_k), ``gate`` (batch, num_heads).
    """
    d_k, d_v = module.d_k, module.d_v
    heads_per_key_head = module.num_heads // module.num_kv_heads
    sequences = []
    for x_q, x_k, x_v, rows, gates in zip(
        query, key, value, allowed, gate, strict=True
    ):
        total = x_q.new_zeros(len(x_q), module.d_model)
        for i in range(module.num_heads):
            j = i // heads_per_key_head
            q = _rows(module.q_proj, x_q, i * d_k, d_k)
            k = _rows(module.k_proj, x_k, j * d_k, d_k)
            v = _rows(module.v_proj, x_v, j * d_v, d_v)
            head = gates[i] * attend(q, k, v, rows[i], d_k**-0.5)
            total = total + head @ module.out_proj.weight[:, i * d_v : (i + 1) * d_v].mT
        if module.out_proj.bias is not None:
            total = total + module.out_proj.bias
        sequences.append(total)
    return torch.stack(sequences)


def gradients(output: Tensor, tensors: list[Tensor]) -> list[Tensor]:
    """Differentiate a fixed weighted sum of the output."""
    weight = torch.linspace(-1, 1, output.numel(), dtype=output.dtype)
    return list(torch.autograd.grad((output * weight.view_as(output)).sum(), tensors))


def assert_same_values(found: Tensor, expected: Tensor) -> None:
    """Compare to 1e-6 in float32, 1e-12 in float64."""
    torch.testing.assert_close(found, expected, atol=VALUES[expected.dtype], rtol=0)


def assert_same_gradients(found: list[Tensor], expected: list[Tensor]) -> None:
    """Compare to 2e-6 (1e-12 in float64) of the largest entry of all."""
    largest = max(gradient.abs().max().item() for gradient in expected)
    assert largest > 0
    for one, other in zip(found, expected, strict=True):
        tolerance = GRADIENTS[other.dtype] * largest
        torch.testing.assert_close(one, other, atol=tolerance, rtol=0)


def _rows(proj: nn.Linear, x: Tensor, start: int, width: int) -> Tensor:
    projected = x @ proj.weight[start : start + width].mT
    if proj.bias is None:
        return projected
    return projected + proj.bias[start : start + width]
