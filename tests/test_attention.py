"""The free function, and the four small steps it is made of."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from mha_teach import masks, scaled_dot_product_attention
from mha_teach.attention import masked_softmax, scaled_scores
from reference import assert_same_gradients, assert_same_values, attend, gradients


def qkv(dtype=torch.float32, *, lead=(2, 3), n_q=5, n_k=11, d_k=7, d_v=13):
    return [
        torch.randn(*lead, n, width, dtype=dtype, requires_grad=True)
        for n, width in [(n_q, d_k), (n_k, d_k), (n_k, d_v)]
    ]


def some_rows_empty(*shape):
    mask = torch.rand(shape) < 0.5
    mask[..., 1, :] = False
    return mask


MASKS = {
    "no mask": lambda: None,
    "2-D": lambda: some_rows_empty(5, 11),
    "causal": lambda: masks.causal(5, 11),
    "padding": lambda: masks.padding([0, 4], 11),
    "per head": lambda: some_rows_empty(1, 3, 5, 11),
    "per sequence": lambda: some_rows_empty(2, 1, 5, 11),
    "per both": lambda: some_rows_empty(2, 3, 5, 11),
}


def test_two_queries_three_keys_by_hand():
    # Both scores of 1/√4 · 4 ln 2 = 2 ln 2 count four times as much as a score of 0.
    ln2 = torch.tensor(2.0).log()
    q = torch.stack([torch.tensor([4.0, 0, 0, 0]), torch.tensor([0.0, 4, 0, 0])]) * ln2
    k = torch.tensor([[1.0, 0, 9, 0], [0, 0, 0, 9], [0, 1, 0, 0]])
    v = torch.tensor([[6.0], [12.0], [30.0]])
    output, weights = scaled_dot_product_attention(q, k, v)
    sixths = torch.tensor([[4.0, 1, 1], [1, 1, 4]]) / 6
    torch.testing.assert_close(weights, sixths)
    torch.testing.assert_close(output, torch.tensor([[11.0], [23.0]]))

    mask = torch.tensor([[True, True, False], [False, False, False]])
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    torch.testing.assert_close(weights, torch.tensor([[0.8, 0.2, 0], [0, 0, 0]]))
    torch.testing.assert_close(output, torch.tensor([[7.2], [0.0]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("make_mask", MASKS.values(), ids=MASKS)
def test_equals_torch(make_mask, dtype):
    q, k, v = qkv(dtype)
    mask = make_mask()
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    attn_mask = None if mask is None else masks.as_tensor(mask)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask)
    assert_same_values(output, expected)
    assert_same_gradients(gradients(output, [q, k, v]), gradients(expected, [q, k, v]))
    assert_same_values(weights @ v, expected)


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (1, 2, 3)])
def test_any_number_of_leading_axes(lead):
    q, k, v = qkv(lead=lead)
    output, weights = scaled_dot_product_attention(q, k, v, masks.causal(5, 11))
    assert output.shape == (*lead, 5, 13)
    assert weights.shape == (*lead, 5, 11)
    allowed = masks.causal(5, 11).tensor()
    last = [t.reshape(-1, *t.shape[-2:])[-1] for t in (q, k, v)]
    expected = attend(*last, allowed, scale=7**-0.5)
    assert_same_values(output.reshape(-1, 5, 13)[-1], expected)


def test_scale_replaces_the_default():
    q, k, v = qkv()
    found = scaled_dot_product_attention(q, k, v, scale=0.3).output
    assert_same_values(found, F.scaled_dot_product_attention(q, k, v, scale=0.3))
    plain_average = scaled_dot_product_attention(q, k, v, scale=0.0).output
    assert_same_values(plain_average, v.mean(-2, keepdim=True).expand_as(found))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 5), st.integers(0, 5), st.floats(0, 1), st.integers(0, 2**32))
def test_weights_average_over_what_is_allowed(n_q, n_k, density, seed):
    torch.manual_seed(seed)
    q, k, v = qkv(torch.float64, n_q=n_q, n_k=n_k)
    mask = torch.rand(2, 1, n_q, n_k) < density
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    allowed = mask.expand_as(weights)
    assert torch.all(weights[~allowed] == 0)
    assert torch.all(weights >= 0)
    expected_sums = allowed.any(-1).double()
    torch.testing.assert_close(weights.sum(-1), expected_sums, atol=1e-12, rtol=0)
    assert torch.all(output[~allowed.any(-1)] == 0)
    # A query sees a set: in another order the keys give the same answer.
    order = torch.randperm(n_k)
    moved = scaled_dot_product_attention(
        q, k[..., order, :], v[..., order, :], mask[..., order]
    )
    torch.testing.assert_close(moved.output, output)
    torch.testing.assert_close(moved.weights, weights[..., order])


def test_what_the_mask_hides_changes_nothing():
    q, k, v = qkv()
    mask = torch.rand(5, 11) < 0.5
    mask[:, 6] = False
    before = scaled_dot_product_attention(q, k, v, mask)
    with torch.no_grad():
        k[..., 6, :], v[..., 6, :] = 1e30, -1e30
    after = scaled_dot_product_attention(q, k, v, mask)
    assert torch.equal(before.output, after.output)
    assert torch.equal(before.weights, after.weights)


def test_a_hidden_key_must_be_finite():
    # The fused kernel adds -∞ to its score. The readable path overwrites the score.
    q, k, v = qkv()
    mask = masks.padding([4, 11], 11)
    with torch.no_grad():
        k[0, :, 10] = float("inf")
    fused = F.scaled_dot_product_attention(q, k, v, mask)
    assert fused[0].isnan().any()
    assert fused[1].isfinite().all()
    assert scaled_dot_product_attention(q, k, v, mask).output.isfinite().all()


def test_a_hidden_value_must_be_finite():
    # 0 · ∞ is not a number, here as in the fused kernel: padding says so.
    q, k, v = qkv()
    mask = masks.padding([4, 11], 11)
    with torch.no_grad():
        v[0, :, 10] = float("inf")
    ours = scaled_dot_product_attention(q, k, v, mask).output
    fused = F.scaled_dot_product_attention(q, k, v, mask)
    assert torch.equal(ours.isnan(), fused.isnan())
    assert ours[0].isnan().all()
    assert ours[1].isfinite().all()


def test_scores_are_scaled_by_the_width_of_the_keys():
    q, k = torch.randn(1000, 64), torch.randn(1000, 64)
    assert scaled_scores(q, k).std().item() == pytest.approx(1, abs=0.05)


def test_softmax_runs_over_keys():
    weights = masked_softmax(torch.zeros(3, 5), None)
    torch.testing.assert_close(weights, torch.full((3, 5), 1 / 5))


def test_huge_scores_stay_finite():
    q, k, v = qkv()
    output, weights = scaled_dot_product_attention(q * 1e4, k * 1e4, v)
    assert output.isfinite().all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5))


def test_hidden_keys_lose_to_any_score():
    # A fill of -1e9 instead of -∞ would win against these.
    q, k, v = -1e6 * torch.ones(5, 7), 1e6 * torch.ones(11, 7), torch.randn(11, 13)
    k[4] = 0
    mask = torch.ones(5, 11, dtype=torch.bool)
    mask[:, 4] = False
    weights = scaled_dot_product_attention(q, k, v, mask).weights
    expected = mask.float() / 10
    torch.testing.assert_close(weights, expected, atol=1e-6, rtol=0)
