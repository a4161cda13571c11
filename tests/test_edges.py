"""Where implementations break: empty rows, empty sizes, half precision, dropout."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from mha_teach import MultiHeadAttention, masks, scaled_dot_product_attention
from mha_teach._kernels import fused_attention

PATHS = {
    "forward": lambda module, *args, **kwargs: module(*args, **kwargs),
    "trace": lambda module, *args, **kwargs: module.trace(*args, **kwargs).output,
}
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
# Unequal widths take another kernel than equal ones, and groups a third road.
SIZES = {"equal": {}, "wide values": {"d_v": 13}, "one key head": {"num_kv_heads": 1}}

both_paths = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
each_size = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)


def build(dtype=torch.float32, **sizes):
    module = MultiHeadAttention(**{"d_model": 21, "num_heads": 3} | sizes)
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return module.to(dtype)


class TestNowhereToAttend:
    @each_size
    @each_dtype
    @both_paths
    def test_output_is_the_bias_and_gradients_are_zero(self, path, dtype, sizes):
        module = build(dtype, **sizes)
        x = torch.randn(2, 5, 21, dtype=dtype, requires_grad=True)
        output = path(module, x, mask=torch.zeros(5, 5, dtype=torch.bool))
        assert torch.equal(output, module.out_proj.bias.expand(2, 5, 21))
        output.sum().backward()
        assert not x.grad.any()
        for name, parameter in module.named_parameters():
            expected = 2.0 * 5 if name == "out_proj.bias" else 0.0
            assert torch.all(parameter.grad == expected), name

    @each_size
    @each_dtype
    @both_paths
    def test_other_rows_are_untouched(self, path, dtype, sizes):
        module = build(dtype, **sizes)
        query = torch.randn(2, 5, 21, dtype=dtype, requires_grad=True)
        context = torch.randn(2, 11, 21, dtype=dtype, requires_grad=True)
        mask = torch.ones(2, 1, 5, 11, dtype=torch.bool)
        mask[1, :, 3] = False
        output = path(module, query, context, mask=mask)
        without_mask = path(module, query, context)
        assert torch.equal(output[1, 3], module.out_proj.bias)
        tolerance = torch.finfo(dtype).eps
        torch.testing.assert_close(
            output[0], without_mask[0], atol=tolerance, rtol=tolerance
        )
        output.square().sum().backward()
        assert not query.grad[1, 3].any()
        assert query.grad[1, 2].any()
        for gradient in [
            query.grad,
            context.grad,
            *(p.grad for p in module.parameters()),
        ]:
            assert gradient.isfinite().all()

    @both_paths
    def test_nothing_on_the_way_back_is_nan(self, path):
        # Else anomaly detection would point here whatever a reader is looking for.
        module, x = build(), torch.randn(2, 5, 21)
        output = path(module, x, mask=masks.padding([0, 3], 5))
        with torch.autograd.set_detect_anomaly(True):
            output.square().sum().backward()

    @both_paths
    def test_one_head_only(self, path):
        module = build()
        x = torch.randn(2, 5, 21)
        mask = torch.ones(1, 3, 5, 5, dtype=torch.bool)
        mask[0, 1] = False
        gate = torch.tensor([1.0, 0.0, 1.0])
        torch.testing.assert_close(
            path(module, x, mask=mask), path(module, x, head_gate=gate)
        )

    def test_weights_and_head_outputs_are_exactly_zero(self):
        trace = build().trace(torch.randn(2, 5, 21), mask=masks.padding([0, 3], 5))
        assert not trace.weights[0].any()
        assert not trace.head_outputs[0].any()
        assert not trace.weights[1, ..., 3:].any()
        assert trace.weights[1, ..., :3].all()


@both_paths
def test_masked_tokens_change_nothing(path):
    module = build()
    x, lengths = torch.randn(2, 5, 21), [3, 5]
    before = path(module, x, mask=masks.padding(lengths, 5))
    x[0, 3:] = 1e4 * torch.randn(2, 21)
    after = path(module, x, mask=masks.padding(lengths, 5))
    assert torch.equal(before[0, :3], after[0, :3])
    assert torch.equal(before[1], after[1])
    assert not torch.allclose(before[0, 3:], after[0, 3:])


@pytest.mark.parametrize("n", [523, 1031])
def test_longer_than_a_block_of_the_fused_kernel(n):
    module = MultiHeadAttention(14, 2)
    x = torch.randn(1, n, 14, requires_grad=True)
    mask = torch.rand(1, 2, n, n) < 0.01
    mask[..., : n // 2, :512] = False
    mask[..., 7, :] = False
    for allowed in (mask, masks.causal(n), masks.window(n, 3)):
        output, trace = module(x, mask=allowed), module.trace(x, mask=allowed)
        torch.testing.assert_close(output, trace.output, atol=1e-6, rtol=0)
        grads = [torch.autograd.grad(o.sum(), x)[0] for o in (output, trace.output)]
        torch.testing.assert_close(*grads, atol=1e-5, rtol=0)


class TestEmpty:
    @each_size
    @both_paths
    @pytest.mark.parametrize(
        ("batch", "n_q", "n_k"), [(0, 5, 11), (2, 0, 11), (2, 5, 0), (0, 0, 0)]
    )
    @pytest.mark.parametrize("masked", [None, "causal", "tensor"])
    def test_forward_and_backward(self, masked, batch, n_q, n_k, path, sizes):
        module = build(**sizes)
        query = torch.randn(batch, n_q, 21, requires_grad=True)
        context = torch.randn(batch, n_k, 21, requires_grad=True)
        mask = None if masked is None else masks.causal(n_q, n_k)
        if masked == "tensor":
            mask = mask.tensor()
        output = path(module, query, context, mask=mask)
        assert torch.equal(output, module.out_proj.bias.expand(batch, n_q, 21))
        output.sum().backward()
        assert query.grad.shape == query.shape
        for name, parameter in module.named_parameters():
            expected = batch * n_q if name == "out_proj.bias" else 0
            assert torch.all(parameter.grad == expected), name

    @both_paths
    def test_self_attention(self, path):
        module = build()
        assert path(module, torch.randn(0, 5, 21)).shape == (0, 5, 21)
        assert path(module, torch.randn(2, 0, 21)).shape == (2, 0, 21)
        assert path(module, torch.randn(0, 21)).shape == (0, 21)

    def test_trace_keeps_every_axis(self):
        trace = build(num_kv_heads=1, d_v=13).trace(torch.randn(0, 5, 21))
        assert trace.k.shape == (0, 1, 5, 7)
        assert trace.scores.shape == trace.weights.shape == (0, 3, 5, 5)
        assert trace.head_outputs.shape == (0, 3, 5, 13)


@both_paths
def test_non_contiguous_input(path):
    module = build()
    x = torch.randn(5, 2, 42)[..., ::2].transpose(0, 1)
    assert not x.is_contiguous()
    torch.testing.assert_close(
        path(module, x, x.flip(1)), path(module, x.contiguous(), x.flip(1).contiguous())
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@each_size
@both_paths
def test_half_precision_follows_float64(path, sizes, dtype):
    half = MultiHeadAttention(21, 3, **sizes).to(dtype)
    exact = copy.deepcopy(half).double()
    x = torch.randn(2, 31, 21, dtype=dtype)
    for mask in (None, masks.causal(31), torch.rand(2, 3, 31, 31) < 0.5):
        found, expected = path(half, x, mask=mask), path(exact, x.double(), mask=mask)
        assert found.dtype == dtype
        # Rounding q, k, v and the heads costs about one step of the largest output.
        step = torch.finfo(dtype).eps * expected.abs().max()
        assert (found - expected).abs().max() < 1.5 * step


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_weights_are_float32_and_sum_to_one(dtype):
    trace = build(dtype).trace(torch.randn(2, 31, 21, dtype=dtype))
    assert trace.scores.dtype == trace.weights.dtype == torch.float32
    assert trace.q.dtype == trace.v.dtype == trace.head_outputs.dtype == dtype
    sums = trace.weights.sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-6, rtol=0)
    q, k, v = (torch.randn(2, 5, 7, dtype=dtype) for _ in range(3))
    output, weights = scaled_dot_product_attention(q, k, v)
    assert (output.dtype, weights.dtype) == (dtype, torch.float32)


def test_float16_products_beyond_its_range_stay_finite():
    # 7 · 300² is ten times the largest float16.
    q, k, v = (torch.randn(2, 3, 5, 7) for _ in range(3))
    q, k = 300 * q.sign(), 300 * k.sign() + k
    q, k, v = (t.half() for t in (q, k, v))
    output, weights = scaled_dot_product_attention(q, k, v)
    exact = scaled_dot_product_attention(q.double(), k.double(), v.double())
    torch.testing.assert_close(weights.double(), exact.weights, atol=1e-2, rtol=0)
    torch.testing.assert_close(output.double(), exact.output, atol=2e-2, rtol=0)
    fused = fused_attention(q, k, v, None, 0.0)
    torch.testing.assert_close(fused, output, atol=2e-2, rtol=0)


def test_where_the_fused_kernel_runs_on_a_cpu():
    # The docstrings of forward and of fused_attention say so.
    x = torch.randn(2, 5, 21)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        for sizes in ({}, {"num_kv_heads": 1}, {"d_model": 21, "d_k": 5}):
            for mask in (None, masks.causal(5), masks.padding([0, 3], 5)):
                assert build(**sizes)(x, mask=mask).isfinite().all()
        for module in (build(d_v=13), build(dropout=0.5).train()):
            with pytest.raises(RuntimeError, match="No available kernel"):
                module(x)


class TestDropout:
    def module(self):
        return build(dropout=0.5)

    @both_paths
    def test_off_in_eval(self, path):
        module = self.module().eval()
        x = torch.randn(2, 5, 21)
        module.dropout = 0.0
        expected = path(module, x)
        module.dropout = 0.5
        assert torch.equal(path(module, x), expected)

    @both_paths
    def test_on_in_training(self, path):
        module = self.module().train()
        x = torch.randn(2, 5, 21)
        first, second = path(module, x), path(module, x)
        assert not torch.allclose(first, second)

    @both_paths
    def test_average_is_the_output_without_dropout(self, path):
        module = self.module().train()
        x = torch.randn(1, 5, 21)
        many = path(module, x.expand(40_000, 5, 21)).mean(0)
        torch.testing.assert_close(many, module.eval()(x)[0], atol=0.02, rtol=0)

    def test_weights_are_those_before_dropout(self):
        trace = self.module().train().trace(torch.randn(2, 5, 21))
        torch.testing.assert_close(trace.weights.sum(-1), torch.ones(2, 3, 5))
        undropped = trace.weights @ trace.v
        assert not torch.allclose(trace.head_outputs, undropped)


class TestCopies:
    def assert_same_module(self, twin, module):
        x = torch.randn(2, 5, 21)
        assert twin is not module
        assert str(twin) == str(module)
        assert torch.equal(twin(x), module(x))
        assert twin.q_proj.weight.data_ptr() != module.q_proj.weight.data_ptr()

    def module(self):
        module = build(num_kv_heads=1, d_v=13).eval()
        module.trace(torch.randn(2, 5, 21))  # leaves nothing behind
        return module

    def test_deepcopy(self):
        module = self.module()
        self.assert_same_module(copy.deepcopy(module), module)

    def test_pickle(self):
        module = self.module()
        self.assert_same_module(pickle.loads(pickle.dumps(module)), module)

    def test_state_dict_through_a_file(self):
        module = self.module()
        file = io.BytesIO()
        torch.save(module.state_dict(), file)
        file.seek(0)
        twin = build(num_kv_heads=1, d_v=13).eval()
        twin.load_state_dict(torch.load(file, weights_only=True))
        self.assert_same_module(twin, module)

    def test_a_call_stores_nothing(self):
        module = self.module()
        before = dict(vars(module))
        module.trace(torch.randn(2, 5, 21), mask=masks.causal(5))
        module(torch.randn(2, 5, 21), mask=masks.causal(5))
        assert vars(module) == before
        assert not list(module.buffers())
