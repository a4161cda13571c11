"""What a single head does and adds, measured on its weights or on a trace."""

from collections.abc import Iterable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mha_teach import _checks, masks
from mha_teach.attention import AttentionTrace, MultiHeadAttention
from mha_teach.masks import Mask


def entropy(
    weights: Float[Tensor, "*lead query key"], mask: Mask | None = None
) -> Float[Tensor, "*lead"]:
    r"""Measure how evenly each head spreads its weights: the mean entropy of its rows.

    $$ H(a_i) = \sum_j a_{ij} \ln \frac{1}{a_{ij}}, \qquad 0 \le H(a_i) \le \ln n_k $$

    in nats. It is 0 where a query gives one key everything, ln n_k where it gives all
    keys the same, and a weight of 0 adds 0. The mean is over the queries that may
    attend somewhere.

    Parameters
    ----------
    weights
        (…, n_q, n_k), mostly (batch, head, n_q, n_k): after softmax, before dropout.
    mask
        The mask that made them, 2-D or of the rank of ``weights``; it says which
        queries count. ``pad & pad.mT`` leaves out padded queries as well. By default
        every query with a weight above 0 counts.

    Returns
    -------
    Tensor
        The leading axes, mostly (batch, head); float32 for half-precision weights.
        nan where no query counts.

    Raises
    ------
    TypeError, ValueError
        If a row is no set of shares, or the mask did not make these weights.

    Examples
    --------
    >>> sure, torn = [1.0, 0.0], [0.5, 0.5]
    >>> entropy(torch.tensor([[sure, sure], [sure, torn], [torn, torn]]))
    tensor([0.0000, 0.3466, 0.6931])

    References
    ----------
    Shannon (1948), "A Mathematical Theory of Communication".
    """
    _checks.weights_arguments(weights, mask)
    attends = weights.any(dim=-1)
    if mask is not None:
        attends = attends & masks.as_tensor(mask, weights.device).any(dim=-1)
    weights = weights.to(torch.promote_types(weights.dtype, torch.float32))
    # A log that is finite at 0, so that its gradient is too.
    surprise = weights.clamp_min(torch.finfo(weights.dtype).tiny).reciprocal().log()
    return _mean_over_queries((weights * surprise).sum(dim=-1), attends)


def _mean_over_queries(
    values: Float[Tensor, "*lead query"], counts: Bool[Tensor, "*lead query"]
) -> Float[Tensor, "*lead"]:
    return values.where(counts, 0.0).sum(dim=-1) / counts.sum(dim=-1)


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

    Raises
    ------
    TypeError, ValueError
        If the trace has other heads than the module, or one of them is none.

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
    _checks.own_trace(module, trace)
    # Under autocast a trace is narrower than the weights.
    weight = module.out_proj.weight.to(trace.head_outputs.dtype)
    blocks = weight.unflatten(-1, (module.num_heads, module.d_v))
    return torch.einsum("...hqv,mhv->...hqm", trace.head_outputs, blocks)


def ablate(num_heads: int, heads: Iterable[int]) -> Float[Tensor, " num_heads"]:
    r"""Make the gate that switches heads off: 0 for each of them, 1 for the others.

    $$ \mathrm{output} = \sum_i g_i\, \mathrm{head}_i\, W_i^O + b, \qquad
       g_i \in \{0, 1\} $$

    Parameters
    ----------
    num_heads
        Number of heads, h.
    heads
        Which of them to switch off, counted from 0; none if it is empty.

    Returns
    -------
    Tensor
        (num_heads,), float32: the ``head_gate`` of ``MultiHeadAttention``.

    Raises
    ------
    TypeError, ValueError
        If ``heads`` is a single number, or names a head that does not exist.

    Examples
    --------
    >>> ablate(4, [1, 2])
    tensor([1., 0., 0., 1.])

    References
    ----------
    Michel et al. (2019), "Are Sixteen Heads Really Better than One?".
    """
    off = _checks.head_numbers(num_heads, heads)
    gate = torch.ones(num_heads)
    gate[off] = 0.0
    return gate
