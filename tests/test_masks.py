"""Who may attend to whom, and how ``nn.MultiheadAttention`` says it."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from mha_teach import masks

size = st.integers(0, 7)


@given(size, size)
def test_causal_is_aligned_bottom_right(n_q, n_k):
    mask = masks.causal(n_q, n_k)
    assert (mask.n_q, mask.n_k) == (n_q, n_k)
    tensor = mask.tensor()
    assert tensor.dtype == torch.bool
    assert tensor.tolist() == [
        [n_k - 1 - j >= n_q - 1 - i for j in range(n_k)] for i in range(n_q)
    ]


def test_causal_by_hand():
    assert masks.causal(2, 5).tensor().int().tolist() == [
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1],
    ]
    assert masks.causal(3, 2).tensor().int().tolist() == [[0, 0], [1, 0], [1, 1]]
    assert masks.causal(5) == masks.causal(5, 5) != masks.causal(5, 7)


def test_one_query_sees_every_key():
    assert masks.causal(1, 5).tensor().all()


def test_causal_is_frozen():
    with pytest.raises(AttributeError):
        masks.causal(5).n_q = 7


def unsigned(lengths):
    return torch.tensor(lengths, dtype=torch.uint16)


@pytest.mark.parametrize("as_type", [list, tuple, torch.tensor, unsigned])
def test_padding_by_hand(as_type):
    mask = masks.padding(as_type([2, 0, 3]), 3)
    assert mask.dtype == torch.bool
    assert mask.shape == (3, 1, 1, 3)
    assert mask[:, 0, 0].int().tolist() == [[1, 1, 0], [0, 0, 0], [1, 1, 1]]


ARRAYS = {
    "reversed": np.array([3, 0, 2])[::-1],
    "big-endian": np.array([2, 0, 3], dtype=">i8"),
    "read-only": np.frombuffer(np.array([2, 0, 3]).tobytes(), dtype=np.int64),
    "unsigned": np.array([2, 0, 3], dtype=np.uint16),
    "objects": np.array([2, 0, 3], dtype=object),
}


@pytest.mark.parametrize("lengths", ARRAYS.values(), ids=ARRAYS)
def test_padding_by_an_array(plain, lengths):
    expected = masks.padding([2, 0, 3], 3)
    assert torch.equal(plain.masks.padding(lengths, 3), expected)


@pytest.mark.parametrize("lengths", [[], (), torch.tensor([], dtype=torch.long)])
def test_padding_of_no_sequence(lengths):
    assert masks.padding(lengths, 5).shape == (0, 1, 1, 5)


@given(size, st.integers(1, 9))
def test_window_is_causal_with_exactly_width_keys(n, width):
    mask = masks.window(n, width)
    assert torch.equal(mask, mask & masks.causal(n).tensor())
    assert mask.sum(-1).tolist() == [min(i + 1, width) for i in range(n)]
    assert torch.all(mask.diagonal())


def test_window_by_hand():
    assert masks.window(5, 3).int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 1, 1, 1, 0],
        [0, 0, 1, 1, 1],
    ]


def test_combine_is_and():
    causal, padding = masks.causal(5), masks.padding([2, 5, 3], 5)
    both = masks.combine(causal, padding)
    assert both.shape == (3, 1, 5, 5)
    assert torch.equal(both, causal.tensor() & padding)
    assert torch.equal(both, masks.combine(padding, causal))
    per_head = torch.rand(1, 7, 5, 5) < 0.5
    all_three = masks.combine(causal, padding, per_head)
    assert all_three.shape == (3, 7, 5, 5)
    for b, head, i, j in [(0, 0, 0, 0), (1, 6, 4, 2), (2, 3, 3, 4)]:
        separate = j <= i, padding[b, 0, 0, j], per_head[0, head, i, j]
        assert all_three[b, head, i, j] == all(separate)


def test_combine_stays_on_the_device_of_its_tensors():
    padding = torch.ones(2, 1, 1, 5, dtype=torch.bool, device="meta")
    both = masks.combine(masks.causal(5), padding, masks.causal(5))
    assert both.device.type == "meta"
    assert both.shape == (2, 1, 5, 5)


def test_combine_spells_out_a_single_mask():
    assert torch.equal(masks.combine(masks.causal(3, 5)), masks.causal(3, 5).tensor())


def test_to_torch_mha_inverts_two_axes():
    mask = masks.window(5, 2)
    assert torch.equal(masks.to_torch_mha(mask), ~mask)
    named = masks.to_torch_mha(masks.causal(5))
    assert torch.equal(named, ~masks.causal(5).tensor())


def test_to_torch_mha_flattens_batch_before_head():
    mask = torch.rand(2, 3, 5, 7) < 0.5
    flat = masks.to_torch_mha(mask)
    assert flat.shape == (6, 5, 7)
    for b in range(2):
        for head in range(3):
            assert torch.equal(flat[3 * b + head], ~mask[b, head])


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([1, 2]), st.sampled_from([1, 3]), st.integers(0, 2**32))
def test_to_torch_mha_means_the_same_to_torch(in_batch, in_head, seed):
    torch.manual_seed(seed)
    mha = nn.MultiheadAttention(21, 3, batch_first=True)
    mask = torch.rand(in_batch, in_head, 5, 7) < 0.5
    mask[..., 0] = True  # nn.MultiheadAttention gives NaN where a row is empty
    x, context = torch.randn(2, 5, 21), torch.randn(2, 7, 21)
    attn_mask = masks.to_torch_mha(mask, batch_size=2, num_heads=3)
    _, weights = mha(
        x, context, context, attn_mask=attn_mask, average_attn_weights=False
    )
    allowed = mask.expand(2, 3, 5, 7)
    assert torch.equal(weights > 0, allowed)


def test_padding_is_a_key_padding_mask_inverted():
    mha = nn.MultiheadAttention(21, 3, batch_first=True)
    x, padding = torch.randn(2, 5, 21), masks.padding([3, 5], 5)
    _, by_flag = mha(x, x, x, key_padding_mask=~padding[:, 0, 0])
    attn_mask = masks.to_torch_mha(padding.expand(-1, -1, 5, -1), num_heads=3)
    _, by_mask = mha(x, x, x, attn_mask=attn_mask)
    torch.testing.assert_close(by_flag, by_mask)
    assert torch.all(by_flag[0, :, 3:] == 0)
