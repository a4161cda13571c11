"""Other right answers to the exercises of chapter 06: the checks must accept them."""

import numpy as np
import torch
from torch.nn import functional as F

from mha_teach import MultiHeadAttention, costs, scaled_dot_product_attention


def places_by_running(batch, n, h, d_k, d_v, sentence, token, column):
    x = torch.arange(batch * n * h * d_k).view(batch, n, h * d_k)
    number = x[sentence, token, column]
    q = MultiHeadAttention.split_heads(x.float(), h)
    found = MultiHeadAttention.merge_heads(torch.zeros(batch, h, n, d_v))
    return {
        "split": q.shape,
        "index": (q == number).nonzero()[0],
        "strides": q.stride(),
        "merged": found.shape,
        "reshaped": (x.reshape(q.shape) == number).nonzero()[0].tolist(),
    }


def places_as_lists(batch, n, h, d_k, d_v, sentence, token, column):
    head, number = divmod(column, d_k)
    piece = token * h + head  # of d_k numbers, within the sentence
    return {
        "reshaped": [sentence, *divmod(piece, n), number],
        "merged": [batch, n, d_v * h],
        "strides": [h * d_k * n, d_k, d_k * h, 1],
        "index": [sentence, head, token, number],
        "split": [batch, h, n, d_k],
    }


def places_as_tensors(*sizes):
    answer = places_as_lists(*sizes)
    return {name: torch.tensor(value) for name, value in answer.items()}


def several_heads_first(x, w_q, w_k, w_v, w_o, h):
    q, k, v = (torch.cat((x @ w).chunk(h, dim=-1)) for w in (w_q, w_k, w_v))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    heads = (weights @ v).unflatten(0, (h, len(x))).unbind(0)
    return torch.cat(heads, dim=-1) @ w_o


def several_sentences_first(x, w_q, w_k, w_v, w_o, h):
    def stack(t):
        return t.unflatten(-1, (h, -1)).transpose(1, 2).flatten(0, 1)

    q, k, v = stack(x @ w_q), stack(x @ w_k), stack(x @ w_v)
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    heads = (weights @ v).unflatten(0, (len(x), h)).unbind(1)
    return torch.cat(heads, dim=-1) @ w_o


def several_by_loop(x, w_q, w_k, w_v, w_o, h):
    output = 0
    for i in range(h):
        w_q_i, w_k_i, w_v_i = (w.chunk(h, dim=1)[i] for w in (w_q, w_k, w_v))
        found = scaled_dot_product_attention(x @ w_q_i, x @ w_k_i, x @ w_v_i).output
        output = output + found @ w_o.chunk(h)[i]
    return output


def several_fused(x, w_q, w_k, w_v, w_o, h):
    q, k, v = (
        torch.einsum("bnm,mhd->bhnd", x, w.unflatten(1, (h, -1)))
        for w in (w_q, w_k, w_v)
    )
    found = F.scaled_dot_product_attention(q, k, v)
    return torch.einsum("bhnd,hdm->bnm", found, w_o.unflatten(0, (h, -1)))


def several_in_numpy(x, w_q, w_k, w_v, w_o, h):
    tensors = (t.double() for t in (x, w_q, w_k, w_v, w_o))
    return several_by_loop(*tensors, h).numpy()


def split_by_view(x, h):
    batch, n, columns = x.shape
    assert columns % h == 0, f"{columns} columns in {h} heads"
    return x.view(batch, n, h, columns // h).permute(0, 2, 1, 3)


def split_by_pieces(x, h):
    return torch.stack(x.tensor_split(h, dim=-1), dim=1)


def split_by_index(x, h):
    if x.shape[-1] % h:
        raise ValueError(f"{x.shape[-1]} is not divisible by {h}")
    width = x.shape[-1] // h
    heads = x.new_empty(len(x), h, x.shape[1], width)
    for i in range(h):
        heads[:, i] = x[..., i * width : (i + 1) * width]
    return heads


def split_by_package(x, h):
    return MultiHeadAttention.split_heads(x.double(), h)


def split_in_numpy(x, h):
    return np.stack(np.split(x.numpy(), h, axis=-1), axis=1)


def merge_by_reshape(x):
    batch, h, n, width = x.shape
    return x.permute(0, 2, 1, 3).contiguous().view(batch, n, h * width)


def merge_by_cat(x):
    return torch.cat(x.unbind(1), dim=-1)


def merge_by_index(x):
    batch, h, n, width = x.shape
    merged = x.new_empty(batch, n, h * width)
    for column in range(h * width):
        merged[..., column] = x[:, column // width, :, column % width]
    return merged


def merge_by_package(x):
    return MultiHeadAttention.merge_heads(x.double())


def merge_in_numpy(x):
    return np.concatenate(list(np.moveaxis(x.numpy(), 1, 0)), axis=-1)


def noticed_by_module(d_model, h):
    """Ask the module itself, once with the blocks outside each slice set to zero."""
    module, d_k = MultiHeadAttention(d_model, h, bias=False).double(), d_model // h
    x = torch.randn(1, 11, d_model, dtype=torch.float64)
    x_new = x.clone()
    x_new[..., 0] -= 1

    def moved():
        before, after = module.trace(x), module.trace(x_new)
        maps = (after.weights != before.weights).any(-1).any(-1).sum().item()
        return maps, (after.output != before.output).any(1).sum().item()

    projected, _ = moved()
    blocks = torch.block_diag(*torch.ones(h, d_k, d_k))
    for proj in (module.q_proj, module.k_proj, module.v_proj):
        proj.weight.data *= blocks
    sliced, output = moved()
    kept = [p.weight.count_nonzero().item() for p in module.children()]
    return {
        "projected": projected,
        "sliced": sliced,
        "output": output,
        "parameters": costs.parameters(d_model, h, bias=False),
        "fewer": sum(kept),
        "why": "每个头只能根据自己那一段输入决定看谁，W^O 混合得太晚。",
    }


def noticed_by_thinking(d_model, h):
    why = "The weights are made of the slice alone; W^O comes too late for them."
    parameters = 4 * d_model**2
    return {
        "why": why,
        "fewer": d_model**2 + 3 * d_model**2 / h,
        "parameters": parameters,
        "output": d_model,
        "sliced": 1,
        "projected": h,
    }


def noticed_as_tensors(d_model, h):
    answer = noticed_by_thinking(d_model, h)
    return {
        name: value if name == "why" else torch.tensor(value)
        for name, value in answer.items()
    }
