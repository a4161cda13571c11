"""Multi-head attention, once to read and once to run.

After this file you can say what every intermediate of multi-head attention is, and
why the fast path gives the same numbers. Read ``scaled_dot_product_attention`` first,
then ``MultiHeadAttention.trace``; ``forward`` takes the same steps through a fused
kernel, which does not store the scores.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from mha_teach import _checks, masks
from mha_teach._kernels import fused_attention, in_float32
from mha_teach.cache import KVCache
from mha_teach.masks import Mask


class AttentionResult(NamedTuple):
    """What one attention computes: ``output`` (…, n_q, d_v), ``weights`` (…, n_q, n_k).

    For half-precision input the weights are float32.
    """

    output: Tensor
    weights: Tensor

    def __repr__(self) -> str:
        return _shapes(self)


class AttentionTrace(NamedTuple):
    """Every intermediate of one call of ``MultiHeadAttention.trace``.

    Attributes
    ----------
    q
        (batch, num_heads, n_q, d_k): queries.
    k, v
        (batch, num_kv_heads, n_k, d_k) and (…, d_v): keys and values.
    scores
        (batch, num_heads, n_q, n_k): QKᵀ/√d_k, before the mask.
    weights
        (batch, num_heads, n_q, n_k): after mask and softmax, before dropout.
    head_outputs
        (batch, num_heads, n_q, d_v): after dropout and gate.
    output
        (batch, n_q, d_model).

    Unbatched input drops the batch axis throughout. For half-precision input scores
    and weights are float32.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    scores: Tensor
    weights: Tensor
    head_outputs: Tensor
    output: Tensor

    def __repr__(self) -> str:
        return _shapes(self)


def scaled_dot_product_attention(
    q: Float[Tensor, "*q_lead n_q q_width"],
    k: Float[Tensor, "*k_lead n_k k_width"],
    v: Float[Tensor, "*v_lead n_v d_v"],
    mask: Mask | None = None,
    *,
    scale: float | None = None,
) -> AttentionResult:
    r"""Average the values, each weighted by how well its key fits the query.

    $$ \operatorname{Attention}(Q, K, V)
       = \operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right) V $$

    Parameters
    ----------
    q, k, v
        (…, n_q, d_k), (…, n_k, d_k), (…, n_k, d_v) with equal leading axes, of one
        dtype, on one device.
    mask
        True = may attend. 2-D (n_q, n_k), or of the rank of q, broadcastable to the
        scores (…, n_q, n_k). A query that may attend nowhere gets zeros.
    scale
        Factor on the dot products, 1/√d_k by default.

    Returns
    -------
    AttentionResult
        ``output`` (…, n_q, d_v) and ``weights`` (…, n_q, n_k).

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit the others; the message says which and why.

    Examples
    --------
    >>> q, k = torch.tensor([[1.0, 0.0]]), torch.eye(2)
    >>> v = torch.tensor([[10.0], [20.0]])
    >>> output, weights = scaled_dot_product_attention(q, k, v)
    >>> print([round(w, 2) for w in weights[0].tolist()], round(output.item(), 1))
    [0.67, 0.33] 13.3

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.2.1, equation (1).
    """
    _checks.attention_arguments(q, k, v, mask, scale)
    weights = masked_softmax(scaled_scores(q, k, scale), _spelled_out(mask, q))
    return AttentionResult(weighted_sum(weights, v), weights)


@in_float32
def scaled_scores(
    q: Float[Tensor, "*lead query d_k"],
    k: Float[Tensor, "*lead key d_k"],
    scale: float | None = None,
) -> Float[Tensor, "*lead query key"]:
    """Return QKᵀ times ``scale``, which is 1/√d_k by default.

    The factor is put on the queries: where d_k < n_k they hold fewer numbers than the
    scores.
    """
    return (q * (q.shape[-1] ** -0.5 if scale is None else scale)) @ k.mT


def masked_softmax(
    scores: Float[Tensor, "*lead query key"], mask: Bool[Tensor, "..."] | None
) -> Float[Tensor, "*lead query key"]:
    """Turn each row of scores into weights over the keys it may attend to.

    A row without such keys has no softmax. It keeps its scores through the softmax,
    so that gradients stay finite, and gets zeros after it.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    attends_somewhere = mask.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~mask & attends_somewhere, float("-inf"))
    return scores.softmax(dim=-1).masked_fill(~attends_somewhere, 0.0)


def weighted_sum(
    weights: Float[Tensor, "*lead query key"], v: Float[Tensor, "*lead key d_v"]
) -> Float[Tensor, "*lead query d_v"]:
    """Average the values with these weights, in the dtype of the values."""
    return _average(weights, v).to(v.dtype)


@in_float32
def _average(
    weights: Float[Tensor, "*lead query key"], v: Float[Tensor, "*lead key d_v"]
) -> Float[Tensor, "*lead query d_v"]:
    return weights @ v


class MultiHeadAttention(nn.Module):
    r"""Attention in ``num_heads`` subspaces at once, added up.

    $$ \operatorname{MultiHead}(Q, K, V)
       = \operatorname{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)\, W^O, \qquad
       \mathrm{head}_i
       = \operatorname{Attention}(Q W_i^Q,\; K W_i^K,\; V W_i^V) $$

    The h projections of each kind are stacked in one linear map: head i reads rows
    i·d_k to (i+1)·d_k of ``q_proj.weight`` and its columns of ``out_proj.weight``.

    Parameters
    ----------
    d_model
        Width of the queries that come in and of the output.
    num_heads
        Number of heads, h.
    d_k
        Width of a query and of a key in a head; d_model / num_heads by default.
    d_v
        Width of a value in a head; d_k by default.
    num_kv_heads
        Number of key and value heads, each shared by a group of num_heads /
        num_kv_heads query heads; num_heads by default.
    d_context
        Width of the keys and values that come in; d_model by default.
    bias
        Whether the four projections have a bias. (The paper's have none.)
    dropout
        Probability of dropping a weight in training.

    Raises
    ------
    TypeError, ValueError
        If the sizes do not fit; the message names sizes that do.

    Notes
    -----
    Initial weights: Xavier uniform with gain 1/√2 for queries, keys and values, the
    default of ``nn.Linear`` for the output, biases zero. Where d_context = d_model =
    num_heads · d_k, d_v = d_k and num_kv_heads = num_heads, this is the distribution
    of ``nn.MultiheadAttention`` with its default sizes; elsewhere it is not.

    Examples
    --------
    >>> mha = MultiHeadAttention(d_model=12, num_heads=3)
    >>> trace = mha.trace(torch.randn(2, 5, 12))
    >>> tuple(trace.q.shape), tuple(trace.weights.shape)
    ((2, 3, 5, 4), (2, 3, 5, 5))

    References
    ----------
    Vaswani et al. (2017), "Attention Is All You Need", section 3.2.2. Groups of query
    heads: Ainslie et al. (2023), "GQA", section 2.2.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        num_kv_heads: int | None = None,
        d_context: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.d_model, self.num_heads, self.dropout = d_model, num_heads, dropout
        self.d_k, self.d_v, self.num_kv_heads, self.d_context = _checks.head_sizes(
            d_model, num_heads, d_k, d_v, num_kv_heads, d_context, bias, dropout
        )
        self.q_proj = nn.Linear(d_model, num_heads * self.d_k, bias)
        self.k_proj = nn.Linear(self.d_context, self.num_kv_heads * self.d_k, bias)
        self.v_proj = nn.Linear(self.d_context, self.num_kv_heads * self.d_v, bias)
        self.out_proj = nn.Linear(num_heads * self.d_v, d_model, bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights; set biases to zero."""
        for proj in (self.q_proj, self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(proj.weight, gain=2**-0.5)
        self.out_proj.reset_parameters()
        for proj in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            if proj.bias is not None:
                nn.init.zeros_(proj.bias)

    def forward(
        self,
        query: Float[Tensor, "*batch n_q d_query"],
        key: Float[Tensor, "*batch_k n_k d_key"] | None = None,
        value: Float[Tensor, "*batch_v n_v d_value"] | None = None,
        mask: Mask | None = None,
        *,
        head_gate: Float[Tensor, "*gate"] | None = None,
    ) -> Float[Tensor, "*batch n_q d_query"]:
        """Attend through PyTorch's fused kernel.

        The kernel never stores the scores. On a CPU it does not run for d_v ≠ d_k or
        active dropout; there PyTorch stores them. It has no second derivative and no
        forward-mode derivative: use ``trace`` for those.

        Parameters
        ----------
        query
            (batch, n_q, d_model) or (n_q, d_model).
        key, value
            (batch, n_k, d_context) or (n_k, d_context). ``key`` defaults to
            ``query``, ``value`` to ``key``.
        mask
            True = may attend: 2-D (n_q, n_k), 4-D broadcastable to (batch, num_heads,
            n_q, n_k), or ``masks.causal(n_q, n_k)``. A query that may attend nowhere
            gets the bias of ``out_proj``.
        head_gate
            (num_heads,) or (batch, num_heads): a factor on each head's output before
            ``out_proj``. 0 removes the head, 1 leaves it.

        Returns
        -------
        Tensor
            (batch, n_q, d_model), or without the batch axis.

        Raises
        ------
        TypeError, ValueError
            If an argument does not fit; the message says which and why.
        """
        inputs = _checks.module_arguments(self, query, key, value, mask, head_gate)
        q, k, v = self._project(inputs.query, inputs.key, inputs.value)
        head_outputs = fused_attention(q, k, v, mask, self._active_dropout())
        head_outputs = _gated(head_outputs, head_gate)
        output = self.out_proj(self.merge_heads(head_outputs))
        return output if query.dim() == 3 else output.squeeze(0)

    def trace(
        self,
        query: Float[Tensor, "*batch n_q d_query"],
        key: Float[Tensor, "*batch_k n_k d_key"] | None = None,
        value: Float[Tensor, "*batch_v n_v d_value"] | None = None,
        mask: Mask | None = None,
        *,
        head_gate: Float[Tensor, "*gate"] | None = None,
    ) -> AttentionTrace:
        """Attend step by step and return every intermediate.

        Takes the arguments of ``forward`` and computes the same output; with active
        dropout the two draw different weights to drop.
        """
        inputs = _checks.module_arguments(self, query, key, value, mask, head_gate)
        q, k, v = self._project(inputs.query, inputs.key, inputs.value)
        scores = scaled_scores(q, self._shared(k))
        weights = masked_softmax(scores, _spelled_out(mask, q))
        kept = F.dropout(weights, self.dropout, self.training)
        head_outputs = _gated(weighted_sum(kept, self._shared(v)), head_gate)
        output = self.out_proj(self.merge_heads(head_outputs))
        trace = AttentionTrace(q, k, v, scores, weights, head_outputs, output)
        if query.dim() == 3:
            return trace
        return AttentionTrace(*(tensor.squeeze(0) for tensor in trace))

    @staticmethod
    def split_heads(
        x: Float[Tensor, "*batch n head_times_width"], num_heads: int
    ) -> Float[Tensor, "*batch {num_heads} n width"]:
        """Cut the last axis into heads and move them in front of the tokens.

        Raises
        ------
        TypeError, ValueError
            If ``num_heads`` does not divide the last axis.
        """
        _checks.split_arguments(x, num_heads)
        return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)

    @staticmethod
    def merge_heads(
        x: Float[Tensor, "*batch head n width"],
    ) -> Float[Tensor, "*batch n head_times_width"]:
        """Put the heads side by side again: the inverse of ``split_heads``.

        Raises
        ------
        TypeError, ValueError
            If ``x`` has fewer than three axes.
        """
        _checks.merge_arguments(x)
        return x.transpose(-3, -2).flatten(-2)

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> "MultiHeadAttention":
        """Copy an ``nn.MultiheadAttention``: weights, dtype, device, mode, dropout.

        The copy takes (batch, n, d_model) whatever ``batch_first`` says. All its
        parameters require gradients: ``requires_grad`` is not copied.

        Raises
        ------
        TypeError
            For anything else, a subclass included.
        ValueError
            For kdim ≠ vdim, add_bias_kv and add_zero_attn.
        """
        _checks.torch_module(module)
        copy = cls(
            module.embed_dim,
            module.num_heads,
            d_context=module.kdim,
            bias=module.in_proj_bias is not None,
            dropout=module.dropout,
        ).to(module.out_proj.weight)
        if module.in_proj_weight is not None:
            weights = module.in_proj_weight.chunk(3)
        else:
            weights = (
                module.q_proj_weight,
                module.k_proj_weight,
                module.v_proj_weight,
            )
        weights = (*weights, module.out_proj.weight)
        projections = (copy.q_proj, copy.k_proj, copy.v_proj, copy.out_proj)
        with torch.no_grad():
            for proj, weight in zip(projections, weights, strict=True):
                proj.weight.copy_(weight)
            if module.in_proj_bias is not None:
                biases = (*module.in_proj_bias.chunk(3), module.out_proj.bias)
                for proj, bias in zip(projections, biases, strict=True):
                    proj.bias.copy_(bias)
        return copy.train(module.training)

    def to_torch(self) -> nn.MultiheadAttention:
        """Copy this module into an ``nn.MultiheadAttention`` with ``batch_first=True``.

        All parameters of the copy require gradients.

        Raises
        ------
        ValueError
            If num_heads · d_k ≠ d_model, d_v ≠ d_k or num_kv_heads < num_heads.
        """
        _checks.has_torch_counterpart(self)
        copy = nn.MultiheadAttention(
            self.d_model,
            self.num_heads,
            dropout=self.dropout,
            bias=self.q_proj.bias is not None,
            kdim=self.d_context,
            vdim=self.d_context,
            batch_first=True,
        ).to(self.out_proj.weight)
        projections = (self.q_proj, self.k_proj, self.v_proj)
        weights = [proj.weight for proj in projections]
        with torch.no_grad():
            if copy.in_proj_weight is not None:
                copy.in_proj_weight.copy_(torch.cat(weights))
            else:
                copy.q_proj_weight.copy_(weights[0])
                copy.k_proj_weight.copy_(weights[1])
                copy.v_proj_weight.copy_(weights[2])
            copy.out_proj.weight.copy_(self.out_proj.weight)
            if copy.in_proj_bias is not None:
                copy.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
                copy.out_proj.bias.copy_(self.out_proj.bias)
        return copy.train(self.training)

    def new_cache(self, batch_size: int, max_length: int) -> KVCache:
        """Make an empty cache for ``max_length`` tokens of ``batch_size`` sequences.

        Raises
        ------
        TypeError, ValueError
            If a size is not an int of 0 or more.
        """
        masks.require_size("batch_size", batch_size)
        masks.require_size("max_length", max_length)
        weight = self.k_proj.weight
        k = weight.new_empty(batch_size, self.num_kv_heads, max_length, self.d_k)
        v = weight.new_empty(batch_size, self.num_kv_heads, max_length, self.d_v)
        return KVCache(k, v)

    @torch.no_grad()
    def decode(
        self,
        x_new: Float[Tensor, "*batch n_new d_new"],
        cache: KVCache,
        mask: Mask | None = None,
    ) -> Float[Tensor, "*batch n_new d_new"]:
        """Attend causally from new tokens to themselves and all that the cache holds.

        In eval mode equal to the last rows of ``forward`` with ``masks.causal`` over
        the whole sequence. The new keys and values are stored in the cache.

        Parameters
        ----------
        x_new
            One token or a chunk: (batch, n_new, d_model) or (n_new, d_model).
        cache
            From ``new_cache``; it grows by n_new.
        mask
            True = may attend, besides causality: 2-D (n_new, length + n_new) or 4-D
            broadcastable to (batch, num_heads, n_new, length + n_new).

        Returns
        -------
        Tensor
            (batch, n_new, d_model), or without the batch axis.

        Raises
        ------
        TypeError, ValueError
            If the cache is full or was made for another module, or if an argument
            does not fit; the cache is left unchanged.
        """
        x = _checks.decode_arguments(self, x_new, cache, mask)
        q, k, v = self._project(x, x, x)
        k, v = cache.append(k, v)
        allowed = masks.causal(x.shape[1], cache.length)
        if mask is not None:
            allowed = masks.combine(allowed, mask)
        head_outputs = fused_attention(q, k, v, allowed, self._active_dropout())
        output = self.out_proj(self.merge_heads(head_outputs))
        return output if x_new.dim() == 3 else output.squeeze(0)

    def extra_repr(self) -> str:
        """Show the sizes in ``print(module)``, and what differs from the defaults."""
        names = ["d_model", "num_heads", "d_k", "d_v", "num_kv_heads"]
        if self.d_context != self.d_model:
            names.append("d_context")
        if self.dropout:
            names.append("dropout")
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)

    def _project(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_context"],
        value: Float[Tensor, "batch key d_context"],
    ) -> tuple[
        Float[Tensor, "batch head query d_k"],
        Float[Tensor, "batch kv_head key d_k"],
        Float[Tensor, "batch kv_head key d_v"],
    ]:
        return (
            self.split_heads(self.q_proj(query), self.num_heads),
            self.split_heads(self.k_proj(key), self.num_kv_heads),
            self.split_heads(self.v_proj(value), self.num_kv_heads),
        )

    def _shared(
        self, x: Float[Tensor, "batch kv_head key width"]
    ) -> Float[Tensor, "batch head key width"]:
        """Give each query head its group's keys or values."""
        if self.num_kv_heads == self.num_heads:
            return x
        return x.repeat_interleave(self.num_heads // self.num_kv_heads, dim=1)

    def _active_dropout(self) -> float:
        return self.dropout if self.training else 0.0


def _shapes(record: AttentionResult | AttentionTrace) -> str:
    """Name each tensor with its shape: a cell that ends in a trace stays readable."""
    shapes = (f"{k}={tuple(v.shape)}" for k, v in record._asdict().items())
    return f"{type(record).__name__}({', '.join(shapes)})"


def _gated(
    head_outputs: Float[Tensor, "batch head query d_v"],
    head_gate: Float[Tensor, "*gate"] | None,
) -> Float[Tensor, "batch head query d_v"]:
    if head_gate is None:
        return head_outputs
    return head_outputs * head_gate[..., None, None].to(head_outputs.dtype)


def _spelled_out(mask: Mask | None, q: Tensor) -> Tensor | None:
    return None if mask is None else masks.as_tensor(mask, q.device)
