"""Other right answers to the exercises of chapter 08: the checks must accept them."""

import itertools

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from mha_teach import MultiHeadAttention, heads


def sums_by_running(c_0, c_1, c_2, bias, n_k, seen):
    terms = torch.tensor([c_0, c_1, c_2], dtype=torch.float)

    def output(gate):
        return (torch.tensor(gate) * terms).sum() + bias

    orders = itertools.permutations(terms)
    same = [sum(order) + bias == output([1.0, 1.0, 1.0]) for order in orders]
    scores = torch.randn(n_k).masked_fill(torch.arange(n_k) >= seen, -1e9)
    return {
        "output": output([1.0, 1.0, 1.0]),
        "without": output([1.0, 0.0, 1.0]),
        "off": output([0.0, 0.0, 0.0]),
        "shares": output([1 / 3, 1 / 3, 1 / 3]),
        "orders": sum(same),
        "keys": ((0 * scores).softmax(dim=-1) > 0).sum(),
    }


def sums_by_hand(c_0, c_1, c_2, bias, n_k, seen):
    return {
        "keys": n_k,
        "orders": 3 * 2 * 1,
        "shares": bias + c_0 / 3 + c_1 / 3 + c_2 / 3,
        "off": float(bias),
        "without": c_0 + c_2 + bias,
        "output": sum([c_0, c_1, c_2], bias),
    }


def sums_in_numpy(c_0, c_1, c_2, bias, n_k, seen):
    answer = sums_by_hand(c_0, c_1, c_2, bias, n_k, seen)
    return {name: np.float64(value) for name, value in answer.items()}


def terms_by_head(head_outputs, out_weight, out_bias):
    batch, h, n, d_v = head_outputs.shape
    terms = [
        F.linear(head_outputs[:, i], out_weight[:, i * d_v : (i + 1) * d_v])
        for i in range(h)
    ]
    terms.append(out_bias.repeat(batch, n, 1))
    return torch.stack(terms, dim=1)


def terms_by_einsum(head_outputs, out_weight, out_bias):
    head_outputs, out_weight = head_outputs.double(), out_weight.double()
    blocks = out_weight.unflatten(1, (head_outputs.shape[1], -1))
    terms = torch.einsum("bhnv,mhv->bhnm", head_outputs, blocks)
    return F.pad(terms, (0, 0, 0, 0, 0, 1)) + F.pad(
        out_bias.expand_as(terms[:, :1]), (0, 0, 0, 0, terms.shape[1], 0)
    )


def terms_by_switching_off(head_outputs, out_weight, out_bias):
    """Send one head at a time through the whole of out_proj, the others at zero."""
    out_proj = nn.Linear(*out_weight.T.shape)
    out_proj.load_state_dict({"weight": out_weight, "bias": out_bias})
    terms = []
    for i in range(head_outputs.shape[1]):
        alone = torch.zeros_like(head_outputs)
        alone[:, i] = head_outputs[:, i]
        terms.append(out_proj(MultiHeadAttention.merge_heads(alone)) - out_bias)
    nothing = torch.zeros_like(MultiHeadAttention.merge_heads(head_outputs))
    return torch.stack([*terms, out_proj(nothing)], dim=1)


def terms_in_numpy(head_outputs, out_weight, out_bias):
    head_outputs, out_weight, out_bias = (
        t.double().numpy() for t in (head_outputs, out_weight, out_bias)
    )
    batch, h, n, d_v = head_outputs.shape
    terms = head_outputs @ out_weight.T.reshape(h, d_v, -1)
    rest = np.broadcast_to(out_bias, (batch, 1, n, len(out_bias)))
    return np.concatenate([terms, rest], axis=1)


def gate_by_einsum(head_outputs, w_o, gate):
    blocks = w_o.unflatten(0, (gate.shape[-1], -1))
    return torch.einsum("...hqv,hvm,...h->...qm", head_outputs, blocks, gate)


def gate_by_loop(head_outputs, w_o, gate):
    output = 0
    for i, block in enumerate(w_o.chunk(gate.shape[-1])):
        output = output + gate[..., i, None, None] * head_outputs[..., i, :, :] @ block
    return output


def gate_on_merged_heads(head_outputs, w_o, gate):
    """Repeat each gate for each of its head's numbers, which stand together."""
    merged = MultiHeadAttention.merge_heads(head_outputs.double())
    wide = gate.double().repeat_interleave(head_outputs.shape[-1], dim=-1)
    return (merged * wide[..., None, :]) @ w_o.double()


def gate_on_contributions(head_outputs, w_o, gate):
    terms = head_outputs @ w_o.reshape(head_outputs.shape[-3], -1, w_o.shape[1])
    return (terms.movedim(-3, -1) * gate[..., None, None, :]).sum(dim=-1)


def gate_in_numpy(head_outputs, w_o, gate):
    head_outputs, w_o, gate = (t.double().numpy() for t in (head_outputs, w_o, gate))
    gated = np.swapaxes(head_outputs * gate[..., None, None], -3, -2)
    return gated.reshape(*gated.shape[:-2], -1) @ w_o


def swaps_by_slices(n, d_model, h, d_k, d_v):
    """Exchange heads 0 and 1, with slices and by hand."""
    module = _with_biases(d_model, h, d_k, d_v).requires_grad_(False)
    before = {name: p.clone() for name, p in module.state_dict().items()}
    x = torch.randn(n, d_model)
    trace = module.trace(x)

    def swap(tensor, width, dim=0):
        first, second, *rest = tensor.split(width, dim)
        tensor.copy_(torch.cat([second, first, *rest], dim))

    for proj, width in (
        (module.q_proj, d_k),
        (module.k_proj, d_k),
        (module.v_proj, d_v),
    ):
        swap(proj.weight, width)
        swap(proj.bias, width)
    forgotten = module(x)
    swap(module.out_proj.weight, d_v, dim=1)
    after = module.trace(x)

    def rows(output):
        return sum(
            not torch.allclose(*pair, atol=1e-4)
            for pair in zip(output, trace.output, strict=True)
        )

    return {
        "outputs": rows(after.output),
        "maps": sum(
            not torch.allclose(*pair, atol=1e-4)
            for pair in zip(after.weights, trace.weights, strict=True)
        ),
        "forgotten": rows(forgotten),
        "numbers": sum(
            (p != before[name]).sum().item() for name, p in module.state_dict().items()
        ),
        "why": "Heads are added up, and a sum has no first term.",
    }


def _with_biases(d_model, h, d_k, d_v):
    module = MultiHeadAttention(d_model, h, d_k=d_k, d_v=d_v)
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return module


def swaps_by_contributions(n, d_model, h, d_k, d_v):
    """Exchange the last two heads, in float64, and count places, not numbers."""
    module = _with_biases(d_model, h, d_k, d_v).double().requires_grad_(False)
    x = torch.randn(n, d_model, dtype=torch.float64)
    trace = module.trace(x)
    order = torch.tensor([*range(h - 2), h - 1, h - 2])
    terms = heads.contributions(module, trace)
    swapped_sum = terms[order].sum(dim=0) + module.out_proj.bias
    blocks = module.out_proj.weight.unflatten(1, (h, d_v))
    forgotten = torch.einsum("hnv,mhv->nm", trace.head_outputs[order], blocks)
    forgotten = forgotten + module.out_proj.bias
    maps = (trace.weights[order] - trace.weights).abs().amax((1, 2)) > 1e-9
    one_head = (2 * d_k + d_v) * (d_model + 1) + d_v * d_model
    return {
        "outputs": ((swapped_sum - trace.output).abs().amax(1) > 1e-9).sum().item(),
        "maps": maps.sum().item(),
        "forgotten": ((forgotten - trace.output).abs().amax(1) > 1e-9).sum().item(),
        "numbers": 2 * one_head,
        "why": "两个头连同各自的 W^O 块一起交换，和不变；编号只是座位号。",
    }


def swaps_as_tensors(n, d_model, h, d_k, d_v):
    answer = swaps_by_contributions(n, d_model, h, d_k, d_v)
    return {
        name: value if name == "why" else torch.tensor(value)
        for name, value in answer.items()
    }
