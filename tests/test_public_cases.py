"""Bugs that others reported in public, each with its report, held off here."""

import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mha_teach import MultiHeadAttention, heads, masks, scaled_dot_product_attention

PATHS = {
    "forward": lambda module, *args, **kwargs: module(*args, **kwargs),
    "trace": lambda module, *args, **kwargs: module.trace(*args, **kwargs).output,
}
both_paths = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)


@both_paths
def test_the_future_is_invisible(path):
    # rasbt/LLMs-from-scratch#1061: a mask of the wrong sense, for months.
    module, x = MultiHeadAttention(21, 3), torch.randn(2, 5, 21)
    before = path(module, x, mask=masks.causal(5))
    for t in range(4):
        changed = x.clone()
        changed[:, t + 1 :] = torch.randn(2, 4 - t, 21)
        after = path(module, changed, mask=masks.causal(5))
        assert torch.equal(after[:, : t + 1], before[:, : t + 1])
        assert not torch.allclose(after[:, t + 1 :], before[:, t + 1 :])


@both_paths
def test_an_empty_row_spoils_no_gradient(path):
    # pytorch/pytorch#41508: one such row made every gradient of the batch NaN.
    module, x = MultiHeadAttention(21, 3), torch.randn(2, 5, 21)
    left_padding = masks.padding([2, 5], 5).flip(-1)
    mask = masks.combine(masks.window(5, 2), left_padding)
    real = left_padding[:, 0, 0]
    output = path(module, x, mask=mask)
    output[real].square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad.isfinite().all(), name
    assert module.q_proj.weight.grad.any()
    assert torch.equal(output[0, 0], module.out_proj.bias)


@both_paths
def test_padding_hides_keys_and_not_queries(path):
    # hyunwoongko/transformer#40: a mask (batch, 1, n, 1) left padding in sight.
    module, x = MultiHeadAttention(21, 3), torch.randn(2, 5, 21)
    padding = masks.padding([3, 5], 5)
    changed = x.clone()
    changed[0, 3:] = torch.randn(2, 21)

    def real(x, mask):
        return path(module, x, mask=mask)[0, :3]

    assert torch.equal(real(changed, padding), real(x, padding))
    assert not torch.allclose(real(changed, padding.mT), real(x, padding.mT))
    alone = path(module, x[:1, :3])[0]
    torch.testing.assert_close(real(x, padding), alone, atol=1e-6, rtol=0)


@both_paths
def test_a_mask_of_the_batch_never_lands_on_the_heads(path):
    # With as many sentences as heads, (batch, n_q, n_k) would broadcast onto the heads.
    module, x = MultiHeadAttention(21, 3), torch.randn(3, 5, 21)
    padding = masks.padding([2, 3, 5], 5)
    mask = padding[:, 0].expand(3, 5, 5)
    way_out = re.escape("pass mask[:, None] for (batch, n_q, n_k)")
    with pytest.raises(ValueError, match=way_out):
        path(module, x, mask=mask)
    as_told = path(module, x, mask=mask[:, None])
    torch.testing.assert_close(as_told, path(module, x, mask=padding))


def test_length_zero_gives_zeros():
    # d2l-ai/d2l-en#2423: the weights were uniform over padding.
    q, k, v = torch.randn(2, 5, 7), torch.randn(2, 3, 7), torch.randn(2, 3, 13)
    mask = masks.padding([0, 3], 3)[:, 0]
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    assert not weights[0].any()
    assert not output[0].any()
    assert output[1].any()


@both_paths
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_masking_in_half_precision(path, dtype):
    # NVIDIA/apex#1052, #1105: a fill of -1e9 overflows.
    module = MultiHeadAttention(21, 3).to(dtype)
    x = torch.randn(2, 5, 21, dtype=dtype)
    before = path(module, x, mask=masks.causal(5))
    x[:, -1] *= 100
    after = path(module, x, mask=masks.causal(5))
    assert after.isfinite().all()
    assert torch.equal(after[:, :-1], before[:, :-1])
    assert not module.trace(x, mask=masks.causal(5)).weights.triu(1).any()


@both_paths
def test_heads_are_merged_token_by_token(path):
    # jsbaan/transformer-from-scratch#4: a merge without the transpose, and training
    # still reached 100 %. Sizes as reported.
    module, x = MultiHeadAttention(16, 4), torch.randn(1, 6, 16)
    # If each query attends to itself alone, tokens must not mix at all.
    own_value = module.out_proj(module.v_proj(x))
    found = path(module, x, mask=torch.eye(6, dtype=torch.bool))
    torch.testing.assert_close(found, own_value, atol=1e-6, rtol=0)


def test_a_token_is_one_key():
    # reczoo/FuxiCTR#30: view(batch * heads, -1, d_k) cuts tokens into pieces.
    module, x = MultiHeadAttention(21, 3), torch.randn(2, 5, 21)
    before = module.trace(x).scores
    x[:, 3] += 1
    changed = (module.trace(x).scores != before).any(dim=(0, 1))
    row_or_column = torch.zeros(5, 5, dtype=torch.bool)
    row_or_column[3] = row_or_column[:, 3] = True
    assert torch.equal(changed, row_or_column)


@both_paths
def test_a_sentence_hears_no_other(path):
    # jadore801120/attention-is-all-you-need-pytorch#7, and the mask in lsdefine/
    # attention-is-all-you-need-keras#36: heads stacked in front of the sentences,
    # read back sentences first.
    module, x = MultiHeadAttention(21, 3), torch.randn(2, 5, 21)
    padding = masks.padding([3, 5], 5)
    together = path(module, x, mask=padding)
    for i in range(2):
        alone = path(module, x[i : i + 1], mask=padding[i : i + 1])
        torch.testing.assert_close(together[i : i + 1], alone, atol=1e-6, rtol=0)


def test_tokens_are_never_recut():
    # view(batch, -1, 12, 512 // 12) takes 63 tokens of width 512 for 64 of width 504.
    q = torch.randn(1, 63, 512)
    assert q.view(1, -1, 12, 512 // 12).shape == (1, 64, 12, 42)
    with pytest.raises(ValueError, match="does not split into num_heads=12"):
        MultiHeadAttention.split_heads(q, 12)


@both_paths
def test_inner_width_differs_from_the_input(path):
    # phlippe/uvadlc_notebooks#51: input 13, inner width 19 · 17 = 323.
    module = MultiHeadAttention(13, 19, d_k=17)
    assert module.q_proj.weight.shape == (323, 13)
    assert path(module, torch.randn(2, 5, 13)).shape == (2, 5, 13)


@pytest.mark.parametrize("d_v", [4, 5])
def test_output_projection_takes_h_times_d_v(d_v):
    # elith-co-jp/book-llm-from-scratch#28: the book says h · d_model.
    assert MultiHeadAttention(16, 4, d_v=d_v).out_proj.in_features == 4 * d_v


@both_paths
def test_values_wider_than_keys(path):
    # jadore801120/attention-is-all-you-need-pytorch#153: d_k = 8, d_v = 64 crashes.
    module = MultiHeadAttention(512, 8, d_k=8, d_v=64)
    assert path(module, torch.randn(2, 5, 512)).shape == (2, 5, 512)


def test_scores_are_scaled_by_the_head_not_the_model():
    # karpathy/ng-video-lecture#6, #28, #55: 1/√channels instead of 1/√d_k.
    module = MultiHeadAttention(64, 4, bias=False)
    with torch.no_grad():
        for proj in (module.q_proj, module.k_proj):
            nn.init.orthogonal_(proj.weight)
    scores = module.trace(torch.randn(1, 1009, 64)).scores
    assert scores.var().item() == pytest.approx(1, rel=0.1)


def test_1600_in_48_heads_is_explained():
    # rasbt/LLMs-from-scratch#444: hours lost on GPT-2 XL's sizes.
    message = "d_model=1600 is not divisible by num_heads=48; pass d_k=… or use one of"
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        MultiHeadAttention(1600, 48)
    assert "40, 50" in str(caught.value)


@both_paths
def test_dropout_is_off_in_eval(path):
    # pytorch/pytorch#124464: the function does not know of eval().
    module = MultiHeadAttention(21, 3, dropout=0.5).eval()
    x = torch.randn(2, 5, 21)
    assert torch.equal(path(module, x), path(module, x))


def test_survivors_of_dropout_grow_by_the_share_kept():
    # rasbt/LLMs-from-scratch#431: by 1/(1 - p), not 1/p.
    module = MultiHeadAttention(1, 1, dropout=0.1, bias=False).train()
    nn.init.ones_(module.v_proj.weight)
    # One key of value 1: each head output is 0 or the factor.
    found = module.trace(torch.ones(1000, 1, 1)).head_outputs.unique()
    torch.testing.assert_close(found, torch.tensor([0.0, 1 / 0.9]))


@both_paths
def test_a_float_mask_is_refused(path):
    # pytorch/pytorch#92554: a float padding mask was ignored.
    module, x = MultiHeadAttention(21, 3), torch.randn(2, 5, 21)
    additive = torch.zeros(5, 5).masked_fill(~masks.causal(5).tensor(), -torch.inf)
    with pytest.raises(TypeError, match="additive mask becomes bool by mask == 0"):
        path(module, x, mask=additive)
    as_told = path(module, x, mask=additive == 0)
    torch.testing.assert_close(as_told, path(module, x, mask=masks.causal(5)))


def test_every_head_shows_its_own_map():
    # pytorch/pytorch#34537, #47583: averaged over heads.
    weights = MultiHeadAttention(20, 4).trace(torch.randn(2, 5, 20)).weights
    assert weights.shape == (2, 4, 5, 5)
    for head in range(1, 4):
        assert not torch.allclose(weights[:, 0], weights[:, head])


def test_batch_first_either_way():
    # meta-pytorch/opacus#825: heads were merged into time, 0.96 off.
    first = nn.MultiheadAttention(21, 3, batch_first=True)
    second = nn.MultiheadAttention(21, 3)
    second.load_state_dict(first.state_dict())
    x = torch.randn(2, 5, 21)
    expected, _ = first(x, x, x)
    for module in (first, second):
        found = MultiHeadAttention.from_torch(module)(x)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_every_head_reads_the_whole_input():
    # aladdinpersson/Machine-Learning-Collection#3: the input was sliced by head.
    module, x = MultiHeadAttention(21, 3), torch.randn(2, 5, 21)
    assert sum(p.numel() for p in module.parameters()) == 4 * 21**2 + 4 * 21
    before = module.trace(x)
    x[..., 9] += 1  # inside slice 1
    after = module.trace(x)
    for head in range(3):
        assert not torch.allclose(before.q[:, head], after.q[:, head])
        assert not torch.allclose(before.v[:, head], after.v[:, head])


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 1e-2)], ids=str
)
def test_both_paths_agree_at_every_length(dtype, tolerance):
    # karpathy/nanoGPT#331, build-nanogpt#50.
    module = MultiHeadAttention(21, 3).to(dtype)
    for n in range(1, 18):
        x = torch.randn(2, n, 21, dtype=dtype)
        for mask in (None, masks.causal(n)):
            found, trace = module(x, mask=mask), module.trace(x, mask=mask)
            torch.testing.assert_close(found, trace.output, atol=tolerance, rtol=0)


def test_masks_are_obeyed_end_to_end():
    # harvard-edge/cs249r_book#1785: two modules with opposite senses; shapes passed.
    module, x = MultiHeadAttention(21, 3), torch.randn(2, 5, 21)
    mask = masks.combine(masks.causal(5), masks.padding([3, 5], 5))
    weights = module.trace(x, mask=mask).weights
    allowed = mask.expand_as(weights)
    assert torch.all(weights[~allowed] == 0)
    assert torch.all(weights[allowed] > 0)
    last_row = weights[1, :, -1]
    assert last_row.std(dim=-1).min() > 0, "a uniform map obeys any mask"


def test_rows_are_queries():
    # poloclub/transformer-explainer#19, facebookresearch/detr#162.
    q, k = torch.zeros(3, 7), torch.eye(5, 7)
    q[2, 0] = 50  # query 2 asks for key 0
    weights = scaled_dot_product_attention(q, k, torch.randn(5, 13)).weights
    assert weights.shape == (3, 5)
    assert weights[2, 0] > 0.99
    torch.testing.assert_close(weights.sum(-1), torch.ones(3))
    torch.testing.assert_close(weights[:2], torch.full((2, 5), 0.2))


@both_paths
def test_a_gate_of_zero_removes_the_head(path):
    # huggingface/transformers#35786, #9853: the fused path ignored the head mask.
    module, x = MultiHeadAttention(21, 3), torch.randn(2, 5, 21)
    gated = path(module, x, head_gate=torch.tensor([1.0, 0.0, 1.0]))
    cut = MultiHeadAttention(21, 3)
    cut.load_state_dict(module.state_dict())
    with torch.no_grad():
        cut.out_proj.weight[:, 7:14] = 0
    torch.testing.assert_close(gated, path(cut, x), atol=1e-6, rtol=0)
    without = path(module, x) - heads.contributions(module, module.trace(x))[:, 1]
    torch.testing.assert_close(gated, without, atol=1e-6, rtol=0)


def test_is_causal_never_meets_a_cached_query():
    # F.scaled_dot_product_attention aligns top-left: one query would see key 0 alone.
    module, x = MultiHeadAttention(21, 3), torch.randn(2, 11, 21)
    found = module(x[:, -1:], x, mask=masks.causal(1, 11))
    torch.testing.assert_close(found, module(x)[:, -1:], atol=1e-6, rtol=0)
    q, k = module.trace(x).q[:, :, -1:], module.trace(x).k
    blind = F.scaled_dot_product_attention(q, k, k, is_causal=True)
    torch.testing.assert_close(blind, k[:, :, :1])


def test_heads_lie_side_by_side_in_the_weights():
    # An interleaved split hides until weights are loaded from elsewhere.
    theirs = nn.MultiheadAttention(21, 3, batch_first=True)
    module, x = MultiHeadAttention.from_torch(theirs), torch.randn(2, 5, 21)
    _, expected = theirs(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(module.trace(x).weights, expected, atol=1e-6, rtol=0)
