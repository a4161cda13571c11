"""What a single head adds, measured on a trace."""

import torch
from jaxtyping import Float
from torch import Tensor

from mha_teach.attention import AttentionTrace, MultiHeadAttention


def contributions(
    module: MultiHeadAttention, trace: AttentionTrace
) -> Float[Tensor, "*batch head query d_model"]:
    r"""Split the output of a module into one term per head.

    $$ \operatorname{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)\, W^O
       = \sum_i \mathrm{head}_i\, W_i^O $$

    where $W_i^O$ is the block of d_v columns of ``out_proj.weight`` that head i meets.

    Returns
    -------
    Tensor
        (batch, num_heads, n_q, d_model), in the dtype of ``trace.head_outputs``,
        without the bias of ``out_proj``: the sum over heads plus the bias, once, is
        ``trace.output``.

    Examples
    --------
    >>> mha = MultiHeadAttention(d_model=6, num_heads=2)
    >>> trace = mha.trace(torch.randn(4, 6))
    >>> total = contributions(mha, trace).sum(dim=-3) + mha.out_proj.bias
    >>> torch.allclose(total, trace.output, atol=1e-6)
    True

    References
    ----------
    Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits", section
    "Attention Heads are Independent and Additive".
    """
    # Under autocast a trace is narrower than the weights.
    weight = module.out_proj.weight.to(trace.head_outputs.dtype)
    blocks = weight.unflatten(-1, (module.num_heads, module.d_v))
    return torch.einsum("...hqv,mhv->...hqm", trace.head_outputs, blocks)
