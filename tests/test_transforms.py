"""What PyTorch does to a module: compile, export, vmap, autocast, differentiate."""

import shutil

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call, grad, vmap

from mha_teach import MultiHeadAttention, masks, scaled_dot_product_attention

SIZES = {
    "equal": {},
    "grouped, wide values": {"num_heads": 6, "num_kv_heads": 3, "d_k": 7, "d_v": 13},
}
each_size = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)


def build(cls=MultiHeadAttention, **sizes):
    return cls(**{"d_model": 21, "num_heads": 3} | sizes)


class Causal(nn.Module):
    """What a language model does with the module: a mask as long as the input."""

    def __init__(self, package, attend, **sizes):
        super().__init__()
        self.attention = build(package.MultiHeadAttention, **sizes).eval()
        self.masks, self.attend = package.masks, attend

    def forward(self, x):
        mask = self.masks.causal(x.shape[1])
        if self.attend == "trace":
            return self.attention.trace(x, mask=mask).output
        return self.attention(x, mask=mask)


# The first forward-mode derivative has PyTorch compile its formulas with torch.jit.
compiled_formulas = pytest.mark.filterwarnings("ignore:.*torch.jit.script. is deprec")
# PyTorch runs the fused kernel once per sample and says so.
one_by_one = pytest.mark.filterwarnings("ignore:There is a performance drop")
each_path = pytest.mark.parametrize("attend", ["forward", "trace"])


@each_path
@each_size
def test_compile_is_one_graph(plain, attend, sizes):
    model = Causal(plain, attend, **sizes)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch, n in [(2, 5), (3, 11)]:
        x = torch.randn(batch, n, 21, requires_grad=True)
        found, expected = compiled(x), model(x)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
        torch.testing.assert_close(
            *(torch.autograd.grad(y.square().sum(), x)[0] for y in (found, expected))
        )


@pytest.mark.slow
@pytest.mark.skipif(
    not any(map(shutil.which, ["c++", "g++", "clang++", "cl"])),
    reason="torch.compile needs a C++ compiler",
)
@pytest.mark.filterwarnings("ignore:.*script_method.*:DeprecationWarning")
def test_compile_to_machine_code(plain):
    model = Causal(plain, "forward")
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True)
    x = torch.randn(2, 5, 21)
    torch.testing.assert_close(compiled(x), model(x), atol=1e-6, rtol=0)


@each_path
@each_size
def test_export_with_dynamic_batch_and_length(plain, attend, sizes):
    model = Causal(plain, attend, **sizes)
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length", min=2)
    program = torch.export.export(
        model, (torch.randn(2, 5, 21),), dynamic_shapes=({0: batch, 1: length},)
    )
    for shape in [(2, 5, 21), (3, 11, 21), (1, 2, 21)]:
        x = torch.randn(shape)
        torch.testing.assert_close(program.module()(x), model(x), atol=1e-6, rtol=0)


class Masked(nn.Module):
    """A model that is handed a mask and adds its own."""

    def __init__(self, package):
        super().__init__()
        self.attention = build(package.MultiHeadAttention).eval()
        self.masks = package.masks

    def forward(self, x, mask):
        both = self.masks.combine(self.masks.causal(x.shape[1]), mask)
        return self.attention(x, mask=both)


def test_a_mask_made_outside_the_model(plain):
    model, x = Masked(plain), torch.randn(2, 5, 21)
    mask = plain.masks.padding([3, 5], 5)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    exported = torch.export.export(model, (x, mask)).module()
    for found in (compiled(x, mask), exported(x, mask)):
        torch.testing.assert_close(found, model(x, mask), atol=1e-6, rtol=0)


def test_a_named_mask_is_no_input_of_an_exported_model(plain):
    module, x = build(plain.MultiHeadAttention).eval(), torch.randn(2, 5, 21)
    causal = plain.masks.causal(5)
    with pytest.raises(ValueError, match="Unsupported input type .*Causal"):
        torch.export.export(module, (x,), {"mask": causal})
    program = torch.export.export(module, (x,), {"mask": causal.tensor()})
    found = program.module()(x, mask=causal.tensor())
    torch.testing.assert_close(found, module(x, mask=causal), atol=1e-6, rtol=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_quantised_projections(plain):
    # Their weight is a method, so there is no dtype to compare with.
    module, x = build(plain.MultiHeadAttention).eval(), torch.randn(2, 5, 21)
    quantised = torch.ao.quantization.quantize_dynamic(module, {nn.Linear})
    for found in (quantised(x), quantised.trace(x).output):
        torch.testing.assert_close(found, module(x), atol=0.05, rtol=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@each_size
def test_jit_trace(plain, sizes):
    module = build(plain.MultiHeadAttention, **sizes).eval()
    traced = torch.jit.trace(module, torch.randn(2, 5, 21))
    x = torch.randn(3, 11, 21)
    torch.testing.assert_close(traced(x), module(x), atol=1e-6, rtol=0)


@one_by_one
@each_path
@each_size
def test_vmap_over_sequences(attend, sizes):
    module = build(**sizes)

    def call(x):
        if attend == "trace":
            return module.trace(x, mask=masks.causal(5)).output
        return module(x, mask=masks.causal(5))

    x = torch.randn(2, 5, 21)
    torch.testing.assert_close(vmap(call)(x), call(x), atol=1e-6, rtol=0)


@one_by_one
def test_vmap_over_gates():
    module = build()
    x, gates = torch.randn(2, 5, 21), torch.rand(7, 3)
    found = vmap(lambda gate: module(x, head_gate=gate))(gates)
    for one, gate in zip(found, gates, strict=True):
        torch.testing.assert_close(one, module(x, head_gate=gate))


@one_by_one
@each_size
def test_gradients_per_sample(sizes):
    module = build(**sizes)
    parameters = dict(module.named_parameters())

    def loss(parameters, x):
        return functional_call(module, parameters, (x,)).square().sum()

    batch = torch.randn(2, 5, 21)
    per_sample = vmap(grad(loss), in_dims=(None, 0))(parameters, batch)
    for i, x in enumerate(batch):
        alone = torch.autograd.grad(loss(parameters, x), list(parameters.values()))
        for name, expected in zip(parameters, alone, strict=True):
            found = per_sample[name][i]
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("sizes", [{}, {"num_kv_heads": 1, "d_v": 13}], ids=str)
def test_autocast(sizes):
    module = build(**sizes)
    x = torch.randn(2, 5, 21, requires_grad=True)
    exact = module.trace(x, mask=masks.causal(5))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = module(x, mask=masks.causal(5))
        trace = module.trace(x, mask=masks.causal(5))
    assert output.dtype == trace.output.dtype == torch.bfloat16
    for found in (output, trace.output):
        torch.testing.assert_close(found.float(), exact.output, atol=0.02, rtol=0)
    # Not in bfloat16, where a row would sum to one only within 0.4 %.
    assert trace.scores.dtype == trace.weights.dtype == torch.float32
    sums = trace.weights.sum(-1)
    torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-6, rtol=0)
    output.float().sum().backward()
    assert x.grad.isfinite().all()


def test_autocast_leaves_the_free_function_alone():
    q, k, v = torch.randn(2, 5, 7), torch.randn(2, 31, 7), torch.randn(2, 31, 13)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = scaled_dot_product_attention(q, k, v)
    expected = scaled_dot_product_attention(q, k, v)
    assert torch.equal(found.weights, expected.weights)
    assert torch.equal(found.output, expected.output)


def test_autocast_converts_what_the_module_is_given():
    module, x = build(), torch.randn(2, 5, 21)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = module(x.bfloat16())
    torch.testing.assert_close(found.float(), module(x), atol=0.05, rtol=0)


@pytest.mark.parametrize("sizes", [{}, {"num_kv_heads": 1, "d_v": 5}], ids=str)
@pytest.mark.parametrize("masked", ["no mask", "causal", "a row empty"])
class TestDerivatives:
    """Parameters are left out: their gradients are compared with other code."""

    @pytest.fixture
    def problem(self, sizes, masked):
        module = MultiHeadAttention(6, 2, **sizes).double()
        x = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
        holes = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 0]]) == 1
        mask = {"no mask": None, "causal": masks.causal(3), "a row empty": holes}
        return module, x, mask[masked]

    def test_of_forward(self, problem):
        module, x, mask = problem
        assert gradcheck(lambda x: module(x, mask=mask), x)

    def test_of_every_field_of_trace(self, problem):
        module, x, mask = problem
        assert gradcheck(lambda x: module.trace(x, mask=mask), x)

    @compiled_formulas
    def test_forward_mode_of_trace(self, problem):
        module, x, mask = problem
        assert gradcheck(
            lambda x: module.trace(x, mask=mask).output, x, check_forward_ad=True
        )

    def test_second_of_trace(self, problem):
        module, x, mask = problem
        assert gradgradcheck(lambda x: module.trace(x, mask=mask).output, x)


@compiled_formulas
def test_the_fused_kernel_has_a_first_derivative_in_reverse_only():
    # The docstring of forward sends whoever needs another to trace.
    module, x = build(), torch.randn(2, 5, 21, requires_grad=True)
    (first,) = torch.autograd.grad(module(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="is not implemented"):
        torch.autograd.grad(first.sum(), x)
    with pytest.raises(NotImplementedError, match="forward AD"):
        torch.func.jvp(module, (x.detach(),), (torch.ones_like(x),))


def test_deterministic_mode():
    module = build()
    x = torch.randn(2, 131, 21)
    torch.use_deterministic_algorithms(True)
    try:
        twice = []
        for _ in range(2):
            module.zero_grad()
            module(x, mask=masks.causal(131)).square().sum().backward()
            twice.append([p.grad.clone() for p in module.parameters()])
    finally:
        torch.use_deterministic_algorithms(False)
    for first, second in zip(*twice, strict=True):
        assert torch.equal(first, second)


def test_runs_on_the_meta_device():
    module = build().to("meta")
    trace = module.trace(torch.empty(2, 5, 21, device="meta"), mask=masks.causal(5))
    assert trace.weights.shape == (2, 3, 5, 5)
    assert trace.output.device.type == "meta"
