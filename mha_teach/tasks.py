"""Questions with known answers, made on the spot, to train small models on.

After this file you can say what the trained models of the book are asked, and what
each coordinate of their input means.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor
from torch.nn import functional as F

from mha_teach.costs import require_at_least
from mha_teach.masks import holds_integers, require_tensor, require_values

# At height 1 the scores start so small that the same training learns far less.
ONE_HOT_HEIGHT = 2.0


class LookupBatch(NamedTuple):
    """Questions of ``two_lookups`` and their answers.

    Attributes
    ----------
    x
        (batch, positions + 1, symbols + 3 · positions): the input of a model. The last
        token asks, the others hold one symbol each.
    answer
        (batch, 2): the symbols at the first and at the second pointer.
    tokens
        (batch, positions): the symbol at each position.
    pointers
        (batch, 2): two different positions.
    """

    x: Tensor
    answer: Tensor
    tokens: Tensor
    pointers: Tensor


def two_lookups(
    num_samples: int,
    *,
    generator: torch.Generator,
    positions: int = 16,
    symbols: int = 16,
) -> LookupBatch:
    r"""Draw sequences of symbols, each with two ordered look-ups to answer.

    $$ \mathrm{answer} = (s_a,\; s_b), \qquad a \ne b $$

    where $s$ are the symbols of the sequence and $(a, b)$ the pointers of its last
    token. Symbols and pointers are uniform.

    Parameters
    ----------
    num_samples
        Number of sequences.
    generator
        Source of all randomness: equal generators draw equal batches.
    positions
        Number of tokens that hold a symbol; one more token asks.
    symbols
        Number of different symbols.

    Raises
    ------
    TypeError
        If a size is not an int, or ``generator`` none of torch.
    ValueError
        If there is no sample, or fewer than two positions or symbols.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> batch = two_lookups(3, generator=generator, positions=5, symbols=7)
    >>> tuple(batch.x.shape), tuple(batch.answer.shape)
    ((3, 6, 22), (3, 2))
    >>> torch.equal(batch.tokens.gather(1, batch.pointers), batch.answer)
    True
    """
    require_at_least(1, num_samples=num_samples)
    require_at_least(2, positions=positions, symbols=symbols)
    require_generator(generator)
    tokens = torch.randint(symbols, (num_samples, positions), generator=generator)
    first = torch.randint(positions, (num_samples,), generator=generator)
    steps_ahead = torch.randint(1, positions, (num_samples,), generator=generator)
    pointers = torch.stack([first, (first + steps_ahead) % positions], dim=1)
    x = encode_lookups(tokens, pointers, symbols=symbols)
    return LookupBatch(x, tokens.gather(1, pointers), tokens, pointers)


def encode_lookups(
    tokens: Integer[Tensor, "batch positions"],
    pointers: Integer[Tensor, "batch 2"],
    *,
    symbols: int = 16,
) -> Float[Tensor, "batch tokens d_model"]:
    """Write sequences and their pointers as vectors, all of them one-hot codes.

    ========================  ========  =========  =========  =========
    token                     symbols   positions  positions  positions
    ========================  ========  =========  =========  =========
    position i, symbol s      one at s  one at i   0          0
    the last, pointers a, b   0         0          one at a   one at b
    ========================  ========  =========  =========  =========

    "One" is 2, so that the first scores are not all alike.

    Returns
    -------
    Tensor
        (batch, positions + 1, symbols + 3 · positions).

    Raises
    ------
    TypeError
        If ``tokens`` or ``pointers`` are no integers, or ``symbols`` is no int.
    ValueError
        If a symbol is not below ``symbols``, a pointer not below ``positions``, two
        pointers are the same, the shapes do not fit, or a tensor is on ``meta``.
    """
    require_at_least(1, symbols=symbols)
    for name, indices in {"tokens": tokens, "pointers": pointers}.items():
        require_integers(name, indices)
        require_values(name, indices)
    if tokens.dim() != 2 or pointers.shape != (len(tokens), 2):
        raise ValueError(
            f"tokens and pointers have shapes {tuple(tokens.shape)} and "
            f"{tuple(pointers.shape)}; use (batch, positions) and (batch, 2)"
        )
    num_samples, positions = tokens.shape
    # PyTorch compares no unsigned integers wider than a byte.
    tokens, pointers = tokens.long(), pointers.long()
    device = tokens.device
    _require_below("tokens", tokens, "symbols", symbols)
    _require_below("pointers", pointers, "positions", positions)
    alike = pointers[pointers[:, 0] == pointers[:, 1]]
    if len(alike):
        raise ValueError(f"pointers holds {alike[0].tolist()}; a and b must differ")
    symbol = F.one_hot(tokens, symbols)
    place = torch.eye(positions, device=device).expand(num_samples, -1, -1)
    unasked = torch.zeros(num_samples, positions, 2 * positions, device=device)
    holders = torch.cat([symbol, place, unasked], dim=-1)
    nothing = torch.zeros(num_samples, symbols + positions, device=device)
    asked = F.one_hot(pointers, positions).flatten(1)
    asker = torch.cat([nothing, asked], dim=-1)
    return ONE_HOT_HEIGHT * torch.cat([holders, asker[:, None]], dim=1)


def require_generator(generator: torch.Generator) -> None:
    """Raise a TypeError unless ``generator`` is one of torch."""
    if not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator, got {generator!r}; pass "
            "torch.Generator().manual_seed(0)"
        )


def require_integers(name: str, indices: Tensor) -> None:
    """Raise a TypeError unless ``indices`` is a tensor of integers."""
    require_tensor(name, indices)
    if not holds_integers(indices):
        raise TypeError(
            f"{name} must hold integers, got {indices.dtype}; convert with .long()"
        )


def _require_below(name: str, indices: Tensor, limit_name: str, limit: int) -> None:
    outside = indices[(indices < 0) | (indices >= limit)]
    if len(outside):
        raise ValueError(
            f"{name} holds {outside[0].item()}, but {limit_name}={limit}; "
            f"use 0 to {limit - 1}"
        )
