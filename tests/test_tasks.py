"""Questions have the answers they claim, and their vectors say what they should."""

import importlib

import pytest
import torch

from mha_teach.tasks import encode_lookups, two_lookups

POSITIONS, SYMBOLS = 5, 7


def drawn(num_samples, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return two_lookups(
        num_samples, generator=generator, positions=POSITIONS, symbols=SYMBOLS
    )


def test_the_answer_is_what_the_pointers_point_at_in_their_order():
    batch = drawn(13)
    for tokens, (first, second), answer in zip(
        batch.tokens.tolist(),
        batch.pointers.tolist(),
        batch.answer.tolist(),
        strict=True,
    ):
        assert answer == [tokens[first], tokens[second]]


def test_pointers_differ_and_every_ordered_pair_is_about_as_frequent():
    first, second = drawn(20_011).pointers.T
    counts = torch.bincount(first * POSITIONS + second, minlength=POSITIONS**2)
    counts = counts.view(POSITIONS, POSITIONS)
    assert torch.equal(counts.diag(), torch.zeros_like(counts.diag()))
    of_pairs = counts[~torch.eye(POSITIONS, dtype=torch.bool)].float()
    expected = 20_011 / (POSITIONS * (POSITIONS - 1))
    assert (of_pairs / expected - 1).abs().max() < 0.15


def test_every_symbol_is_about_as_frequent_at_every_position():
    tokens = drawn(20_011).tokens
    for column in tokens.T:
        shares = torch.bincount(column, minlength=SYMBOLS) / len(column)
        assert (shares * SYMBOLS - 1).abs().max() < 0.1


def test_the_input_can_be_read_back():
    batch = drawn(13)
    holders, asker = batch.x[:, :-1], batch.x[:, -1]
    symbol, place, *unasked = holders.split([SYMBOLS] + 3 * [POSITIONS], dim=-1)
    assert torch.equal(symbol.argmax(dim=-1), batch.tokens)
    assert torch.equal(place.argmax(dim=-1), torch.arange(5).expand(13, 5))
    assert all(not part.any() for part in unasked)
    nothing, first, second = asker.split([SYMBOLS + POSITIONS, POSITIONS, POSITIONS], 1)
    assert not nothing.any()
    pointers = torch.stack([first.argmax(dim=-1), second.argmax(dim=-1)], dim=1)
    assert torch.equal(pointers, batch.pointers)


def test_every_token_has_two_ones_of_equal_height():
    x = drawn(13).x
    assert torch.equal(x.count_nonzero(dim=-1), torch.full((13, POSITIONS + 1), 2))
    assert x.unique().tolist() == [0.0, 2.0]


def test_encoding_by_hand():
    tokens, pointers = torch.tensor([[2, 0]]), torch.tensor([[1, 0]])
    expected = [
        # symbols    position    first       second pointer
        [0, 0, 2] + [2, 0] + [0, 0] + [0, 0],
        [2, 0, 0] + [0, 2] + [0, 0] + [0, 0],
        [0, 0, 0] + [0, 0] + [0, 2] + [2, 0],
    ]
    x = encode_lookups(tokens, pointers, symbols=3)
    assert torch.equal(x, torch.tensor([expected], dtype=torch.float32))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.uint8, torch.uint16])
def test_any_integers_are_encoded(dtype):
    tokens, pointers = torch.tensor([[2, 0, 1]]), torch.tensor([[1, 0]])
    expected = encode_lookups(tokens, pointers, symbols=3)
    found = encode_lookups(tokens.to(dtype), pointers.to(dtype), symbols=3)
    assert torch.equal(found, expected)
    assert found.dtype == torch.float32


def test_an_encoding_stays_on_the_device_of_its_tokens():
    tokens, pointers = torch.tensor([[2, 0, 1]]), torch.tensor([[1, 0]])
    with torch.device("meta"):  # where tensors are made that name no device
        x = encode_lookups(tokens, pointers, symbols=3)
    assert x.device.type == "cpu"


def test_the_default_input_is_64_wide():
    batch = two_lookups(3, generator=torch.Generator().manual_seed(0))
    assert batch.x.shape == (3, 17, 64)


def test_the_generator_alone_decides():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    batch = drawn(13, seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    for field, again in zip(batch, drawn(13, seed=3), strict=True):
        assert torch.equal(field, again)
    assert not torch.equal(batch.tokens, drawn(13, seed=4).tokens)


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"num_samples": 0}, ValueError, "num_samples=0 must be at least 1"),
        ({"positions": 1}, ValueError, "positions=1 must be at least 2"),
        ({"symbols": 1}, ValueError, "symbols=1 must be at least 2"),
        ({"num_samples": 3.0}, TypeError, "num_samples must be an int, got 3.0"),
        ({"symbols": True}, TypeError, "symbols must be an int, got True"),
        ({"generator": None}, TypeError, "generator must be .*, got None; pass torch"),
    ],
)
def test_wrong_arguments_are_named(plain, wrong, kind, message):
    tasks = importlib.import_module("mha_teach.tasks")
    with pytest.raises(kind, match=message):
        tasks.two_lookups(**{"num_samples": 3, "generator": torch.Generator()} | wrong)


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"tokens": [[0, 1]]}, TypeError, "tokens must be a torch.Tensor, got list"),
        (
            {"pointers": torch.tensor([[0.9, 1.2]])},
            TypeError,
            "pointers must hold integers, got torch.float32; convert with .long()",
        ),
        (
            {"tokens": torch.tensor([[0, 1j, 2]])},
            TypeError,
            "tokens must hold integers, got torch.complex64; convert with .long()",
        ),
        (
            {"pointers": torch.tensor([[0, 1]], device="meta")},
            ValueError,
            "pointers is on meta; pass a tensor that holds data",
        ),
        (
            {"pointers": torch.tensor([[1, 1]])},
            ValueError,
            r"pointers holds \[1, 1\]; a and b must differ",
        ),
        (
            {"pointers": torch.tensor([0, 1])},
            ValueError,
            r"have shapes \(1, 3\) and \(2,\); use \(batch, positions\) and",
        ),
        ({"symbols": 7.5}, TypeError, "symbols must be an int, got 7.5"),
    ],
)
def test_what_cannot_be_encoded_is_named(plain, wrong, kind, message):
    tasks = importlib.import_module("mha_teach.tasks")
    tokens, pointers = torch.tensor([[0, 6, 2]]), torch.tensor([[0, 1]])
    right = {"tokens": tokens, "pointers": pointers, "symbols": 7}
    assert tasks.encode_lookups(**right).shape == (1, 4, 16)
    with pytest.raises(kind, match=message):
        tasks.encode_lookups(**right | wrong)


def test_symbols_and_pointers_that_do_not_exist_are_named():
    tokens, pointers = torch.tensor([[0, 6, 2]]), torch.tensor([[0, 1]])
    with pytest.raises(ValueError, match="tokens holds 6, but symbols=5; use 0 to 4"):
        encode_lookups(tokens, pointers, symbols=5)
    message = "pointers holds 3, but positions=3; use 0 to 2"
    with pytest.raises(ValueError, match=message):
        encode_lookups(tokens, torch.tensor([[0, 3]]), symbols=7)
    with pytest.raises(ValueError, match="pointers holds -1"):
        encode_lookups(tokens, torch.tensor([[-1, 1]]), symbols=7)
