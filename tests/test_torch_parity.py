"""The same numbers as ``nn.MultiheadAttention``, copied in either direction."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from mha_teach import MultiHeadAttention, masks
from reference import assert_same_gradients, assert_same_values, gradients

BATCH, N_Q, N_K, D_MODEL, HEADS, D_CONTEXT = 2, 5, 11, 21, 3, 17


def theirs_with(dtype=torch.float32, **kwargs) -> nn.MultiheadAttention:
    module = nn.MultiheadAttention(D_MODEL, HEADS, **kwargs).to(dtype)
    return with_biases(module)


def with_biases(module):
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return module


def scattered(*shape: int) -> Tensor:
    mask = torch.rand(shape) < 0.5
    mask[..., 0] = True  # nn.MultiheadAttention gives NaN where a row is empty
    return mask


MASKS = {
    "no mask": lambda: None,
    "2-D": lambda: scattered(N_Q, N_K),
    "causal": lambda: masks.causal(N_Q, N_K),
    "per head": lambda: scattered(1, HEADS, N_Q, N_K),
    "per sequence": lambda: scattered(BATCH, 1, N_Q, N_K),
    "per both": lambda: scattered(BATCH, HEADS, N_Q, N_K),
}
BUILDS = {
    "default": {},
    "batch_first": {"batch_first": True},
    "no bias": {"bias": False},
    "kdim = vdim": {"kdim": D_CONTEXT, "vdim": D_CONTEXT, "batch_first": True},
    "kdim = vdim, no bias": {"kdim": D_CONTEXT, "vdim": D_CONTEXT, "bias": False},
}


def unpacked(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename what belongs to a parameter of ``nn.MultiheadAttention`` to ours."""
    ours = {n: t for n, t in theirs.items() if n.startswith("out_proj")}
    for kind in ("weight", "bias"):
        for name, packed in theirs.items():
            if name == f"in_proj_{kind}":
                blocks = zip("qkv", packed.chunk(3), strict=True)
                ours |= {f"{letter}_proj.{kind}": block for letter, block in blocks}
            elif name.endswith(f"_proj_{kind}"):
                ours[name.replace("_proj_", "_proj.")] = packed
    return ours


def assert_equal_modules(ours, theirs, mask, dtype=torch.float32):
    """Compare output, weights of every head, and all gradients."""
    lengths_and_widths = [(N_Q, D_MODEL), (N_K, theirs.kdim), (N_K, theirs.vdim)]
    inputs = [
        torch.randn(BATCH, n, width, dtype=dtype, requires_grad=True)
        for n, width in lengths_and_widths
    ]
    attn_mask = None
    if mask is not None:
        attn_mask = masks.to_torch_mha(mask, batch_size=BATCH, num_heads=HEADS)

    def call_theirs():
        turned = [x if theirs.batch_first else x.transpose(0, 1) for x in inputs]
        output, weights = theirs(
            *turned, attn_mask=attn_mask, average_attn_weights=False
        )
        return output if theirs.batch_first else output.transpose(0, 1), weights

    output, weights = call_theirs()
    names = [name for name, _ in theirs.named_parameters()]
    of_inputs = gradients(call_theirs()[0], inputs)
    of_parameters = gradients(output, list(theirs.parameters()))
    named = unpacked(dict(zip(names, of_parameters, strict=True)))

    trace = ours.trace(*inputs, mask)
    assert_same_values(trace.weights, weights)
    our_names = [name for name, _ in ours.named_parameters()]
    for found in (trace.output, ours(*inputs, mask)):
        assert_same_values(found, output)
        assert_same_gradients(
            gradients(found, inputs + list(ours.parameters())),
            of_inputs + [named[name] for name in our_names],
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("make_mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_from_torch(build, make_mask, dtype):
    theirs = theirs_with(dtype, **build)
    assert_equal_modules(
        MultiHeadAttention.from_torch(theirs), theirs, make_mask(), dtype
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("make_mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize(
    "build",
    [{}, {"bias": False}, {"d_context": D_CONTEXT}],
    ids=["default", "no bias", "d_context"],
)
def test_to_torch(build, make_mask, dtype):
    ours = with_biases(MultiHeadAttention(D_MODEL, HEADS, **build)).to(dtype)
    theirs = ours.to_torch()
    assert theirs.batch_first
    assert_equal_modules(ours, theirs, make_mask(), dtype)


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_there_and_back_is_bit_equal(build):
    theirs = theirs_with(**build)
    back = MultiHeadAttention.from_torch(theirs).to_torch()
    expected = theirs.state_dict()
    assert back.state_dict().keys() == expected.keys()
    for name, parameter in back.state_dict().items():
        assert torch.equal(parameter, expected[name]), name


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_copies_dtype_mode_and_dropout(dtype, training):
    theirs = theirs_with(dropout=0.3).to(dtype).train(training)
    ours = MultiHeadAttention.from_torch(theirs)
    back = ours.to_torch()
    for copy in (ours, back):
        assert copy.dropout == 0.3
        assert all(module.training == training for module in copy.modules())
        assert {p.dtype for p in copy.parameters()} == {dtype}
        assert all(p.requires_grad for p in copy.parameters())


def test_copies_the_device():
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, device="meta")
    ours = MultiHeadAttention.from_torch(theirs)
    assert {p.device.type for p in ours.parameters()} == {"meta"}
    assert {p.device.type for p in ours.to_torch().parameters()} == {"meta"}


def test_a_copy_shares_no_memory():
    theirs = theirs_with()
    ours = MultiHeadAttention.from_torch(theirs)
    before = ours.q_proj.weight.clone()
    with torch.no_grad():
        theirs.in_proj_weight.zero_()
        ours.out_proj.weight.zero_()
    assert torch.equal(ours.q_proj.weight, before)
    assert theirs.out_proj.weight.any()


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_parametrized_modules_are_copied_as_they_compute(name):
    theirs = theirs_with(batch_first=True)
    halved = Halved()
    parametrize.register_parametrization(theirs, f"in_proj_{name}", halved)
    parametrize.register_parametrization(theirs.out_proj, name, halved)
    ours = MultiHeadAttention.from_torch(theirs)
    x = torch.randn(BATCH, N_Q, D_MODEL)
    assert_same_values(ours(x), theirs(x, x, x)[0])
    for proj in (ours.q_proj, ours.out_proj):
        parametrize.register_parametrization(proj, name, halved)
    assert_same_values(ours.to_torch()(x, x, x)[0], ours(x))


class Halved(nn.Module):
    def forward(self, parameter):
        return parameter / 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_the_quantizable_subclass_is_refused():
    # It keeps q, k and v in linear layers of their own, besides an unused in_proj.
    theirs = torch.ao.nn.quantizable.MultiheadAttention(D_MODEL, HEADS)
    with pytest.raises(TypeError, match=r"quantizable.*MultiheadAttention is a sub"):
        MultiHeadAttention.from_torch(theirs)


def test_requires_grad_is_not_copied():
    frozen = theirs_with().requires_grad_(False)
    ours = MultiHeadAttention.from_torch(frozen)
    back = ours.requires_grad_(False).to_torch()
    for copy in (MultiHeadAttention.from_torch(frozen), back):
        assert all(p.requires_grad for p in copy.parameters())


def test_equals_the_native_kernel_of_eval_mode():
    theirs = theirs_with(batch_first=True).eval()
    ours = MultiHeadAttention.from_torch(theirs)
    x = torch.randn(BATCH, N_Q, D_MODEL)
    with torch.no_grad():
        expected, weights = theirs(x, x, x, average_attn_weights=False)
        assert_same_values(ours(x), expected)
        assert_same_values(ours.trace(x).weights, weights)


def test_unbatched():
    theirs = theirs_with()
    ours = MultiHeadAttention.from_torch(theirs)
    x, context = torch.randn(N_Q, D_MODEL), torch.randn(N_K, D_MODEL)
    expected, _ = theirs(x, context, context)
    assert_same_values(ours(x, context), expected)


@pytest.mark.parametrize(
    ("sizes", "names"),
    [
        ({"d_k": 30}, ["q_proj", "k_proj", "v_proj", "out_proj"]),
        ({"num_kv_heads": 1}, ["k_proj", "v_proj"]),
        ({"d_context": 120}, ["k_proj", "v_proj"]),
    ],
    ids=str,
)
def test_other_sizes_have_another_law(sizes, names):
    # A bound of their own widths: √(3 / (fan in + fan out)), and 1/√(h·d_v).
    module = MultiHeadAttention(60, 6, **sizes)
    for name in names:
        weight = getattr(module, name).weight
        bound = (3 / sum(weight.shape)) ** 0.5
        if name == "out_proj":
            bound = weight.shape[1] ** -0.5
        assert 0.97 * bound < weight.abs().max() <= bound
        equal_sizes = (1.5 if name != "out_proj" else 1) ** 0.5 * 60**-0.5
        assert abs(bound / equal_sizes - 1) > 0.05


@pytest.mark.parametrize("d_model", [60, 240])
def test_initial_weights_follow_the_same_law(d_model):
    # Uniform over ±√(6 / 4d) for q, k and v, which Xavier gives to the packed matrix;
    # ±1/√d for the output. Compared by their largest entry and their spread.
    ours = MultiHeadAttention(d_model, 6)
    theirs = nn.MultiheadAttention(d_model, 6)
    expected = unpacked(theirs.state_dict())
    for name, parameter in ours.state_dict().items():
        if name.endswith("bias"):
            assert not parameter.any()
            continue
        bound = (1.5 if name != "out_proj.weight" else 1) ** 0.5 * d_model**-0.5
        for weight in (parameter, expected[name]):
            assert 0.99 * bound < weight.abs().max() <= bound
            assert weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)
