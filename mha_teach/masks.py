"""Who may attend to whom.

Every mask here is boolean and True means "may attend", as in
``torch.nn.functional.scaled_dot_product_attention``. ``nn.MultiheadAttention`` says
the opposite; ``to_torch_mha`` is the one place that inverts.
"""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from jaxtyping import Bool, Integer
from torch import Tensor


@dataclass(frozen=True)
class Causal:
    """A causal mask by name: query i may attend to keys up to its own place.

    The last query is aligned with the last key, so ``n_q`` new tokens behind a cache
    see all that came before them. Where n_q = n_k the name lets the fast path skip the
    upper half of the work; ``tensor`` spells the mask out.

    ``torch.export`` does not take it as an input of a model: make it inside the model,
    or pass ``causal(n_q, n_k).tensor()``.
    """

    n_q: int
    n_k: int

    def __post_init__(self):
        require_size("n_q", self.n_q)
        require_size("n_k", self.n_k)

    def tensor(self, device: torch.device | str | None = None) -> Bool[Tensor, "q k"]:
        """Return the mask as a bool tensor (n_q, n_k)."""
        full = torch.ones(self.n_q, self.n_k, dtype=torch.bool, device=device)
        return full.tril(diagonal=self.n_k - self.n_q)


Mask = Tensor | Causal


def causal(n_q: int, n_k: int | None = None) -> Causal:
    """Let query i attend to key j when j <= i + n_k - n_q.

    Parameters
    ----------
    n_q, n_k
        Number of queries and of keys; ``n_k`` defaults to ``n_q``.

    Raises
    ------
    TypeError, ValueError
        If a size is not an int of 0 or more.

    Examples
    --------
    >>> causal(2, 3).tensor().int()
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    return Causal(n_q, n_q if n_k is None else n_k)


def padding(
    lengths: Sequence[int] | Integer[Tensor, " batch"], n_k: int
) -> Bool[Tensor, "batch 1 1 n_k"]:
    """Let every query attend to the first ``lengths[b]`` keys of sequence b.

    Padding hides keys, never queries: rows of padded queries stay as they are. Padded
    tokens must be finite, their keys as well as their values: neither ∞ - ∞ nor 0 · ∞
    is a number.

    The lengths are read, to check them. So build the mask outside a model that is
    compiled, exported or vmapped, and pass it in.

    Raises
    ------
    TypeError
        If ``lengths`` is not one integer per sequence, or ``n_k`` is not an int.
    ValueError
        If a length is negative or larger than ``n_k``, ``n_k`` is negative, or the
        lengths are on ``meta``.

    Examples
    --------
    >>> padding([1, 3], 3)[:, 0, 0].int()
    tensor([[1, 0, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    require_size("n_k", n_k)
    lengths = _read(lengths)
    if lengths.shape == (0,):  # torch reads [] as floats
        lengths = lengths.long()
    if lengths.dim() != 1 or not holds_integers(lengths):
        raise TypeError(
            f"lengths must be one integer per sequence, got {lengths.dtype} of shape "
            f"{tuple(lengths.shape)}; pass e.g. padding([3, 5], n_k=5)"
        )
    require_values("lengths", lengths)
    for length in lengths.tolist():
        if not 0 <= length <= n_k:
            raise ValueError(
                f"lengths contains {length}, but there are n_k={n_k} keys; "
                "each length must lie between 0 and n_k"
            )
    positions = torch.arange(n_k, device=lengths.device)
    # PyTorch compares no unsigned integers wider than a byte.
    return (positions < lengths.long()[:, None])[:, None, None, :]


def _read(lengths: Sequence[int] | Tensor) -> Tensor:
    # PyTorch refuses arrays that are reversed or big-endian, warns of read-only ones.
    is_array = hasattr(lengths, "tolist") and not isinstance(lengths, Tensor)
    try:
        return torch.as_tensor(lengths.tolist() if is_array else lengths)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"lengths must be one integer per sequence, got {reprlib.repr(lengths)}; "
            "pass e.g. padding([3, 5], n_k=5)"
        ) from None


def window(n: int, width: int) -> Bool[Tensor, "n n"]:
    """Let query i attend to itself and the ``width - 1`` tokens before it.

    Raises
    ------
    TypeError, ValueError
        If ``n`` is not an int of 0 or more, or ``width`` not one of 1 or more.

    Examples
    --------
    >>> window(3, 2).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=torch.int32)
    """
    require_size("n", n)
    require_size("width", width)
    if width == 0:
        raise ValueError("width=0 leaves no key; use width=1 or more")
    full = torch.ones(n, n, dtype=torch.bool)
    return full.tril() & full.triu(1 - width)


def combine(*masks: Mask) -> Bool[Tensor, "..."]:
    """Let a query attend to a key only where every mask says so.

    Masks are 2-D (n_q, n_k) or 4-D, broadcastable to (batch, head, n_q, n_k).

    Raises
    ------
    TypeError
        If a mask is not bool.
    ValueError
        If there is no mask, the shapes do not broadcast, or the devices differ.
    """
    if not masks:
        raise ValueError("combine() needs at least one mask, got none")
    for mask in masks:
        require_bool(mask)
    device = _common_device(masks)
    tensors = [as_tensor(mask, device) for mask in masks]
    for mask in tensors:
        if mask.dim() not in (2, 4):
            raise ValueError(
                f"mask of shape {tuple(mask.shape)} is neither (n_q, n_k) nor "
                "(batch, head, n_q, n_k); for (batch, n_q, n_k) pass mask[:, None]"
            )
    try:
        torch.broadcast_shapes(*(mask.shape for mask in tensors))
    except RuntimeError:
        shapes = ", ".join(str(tuple(mask.shape)) for mask in tensors)
        raise ValueError(
            f"masks of shapes {shapes} do not broadcast together; "
            "each axis must agree or be 1"
        ) from None
    return reduce(torch.logical_and, tensors)


def _common_device(masks: Sequence[Mask]) -> torch.device | None:
    """Return the device of the tensors among the masks; None if there is no tensor."""
    devices = [mask.device for mask in masks if isinstance(mask, Tensor)]
    for device in devices:
        if device != devices[0]:
            raise ValueError(
                f"masks are on {devices[0]} and {device}; move them to one device"
            )
    return devices[0] if devices else None


def to_torch_mha(
    mask: Mask, *, batch_size: int | None = None, num_heads: int | None = None
) -> Bool[Tensor, "..."]:
    """Turn a mask into the ``attn_mask`` of ``nn.MultiheadAttention``.

    There True means "may not attend", and a mask per sequence and head has shape
    (batch * num_heads, n_q, n_k). A 2-D mask stays 2-D. The query axis is not
    repeated: expand a padding mask first (``mask.expand(-1, -1, n_q, -1)``) or pass
    ``~mask[:, 0, 0]`` as ``key_padding_mask``.

    Parameters
    ----------
    mask
        (n_q, n_k), or 4-D, broadcastable to (batch, num_heads, n_q, n_k).
    batch_size, num_heads
        Sizes of the first two axes, needed where the mask has 1 there.

    Raises
    ------
    TypeError
        If the mask is not bool, or a size is not an int.
    ValueError
        If it has neither 2 nor 4 axes, or a needed size is missing or contradicts it.
    """
    require_bool(mask)
    mask = as_tensor(mask)
    if mask.dim() == 2:
        return ~mask
    if mask.dim() != 4:
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} is neither (n_q, n_k) nor "
            "(batch, head, n_q, n_k); for (batch, n_q, n_k) pass mask[:, None]"
        )
    batch_size = _axis_size("batch_size", batch_size, mask.shape[0])
    num_heads = _axis_size("num_heads", num_heads, mask.shape[1])
    return ~mask.expand(batch_size, num_heads, -1, -1).flatten(0, 1)


def as_tensor(mask: Mask, device: torch.device | str | None = None) -> Tensor:
    """Spell out a named mask; return a tensor as it is."""
    return mask.tensor(device) if isinstance(mask, Causal) else mask


def require_bool(mask: Mask) -> None:
    """Raise a TypeError unless the mask is named or a bool tensor."""
    if isinstance(mask, Causal):
        return
    if not isinstance(mask, Tensor):
        raise TypeError(
            "mask must be a bool tensor (True = may attend) or masks.causal(…), "
            f"got {type(mask).__name__}; pass torch.tensor(mask, dtype=torch.bool)"
        )
    if mask.dtype != torch.bool:
        way_out = (
            "an additive mask becomes bool by mask == 0"
            if mask.is_floating_point()
            else "a mask of 1 and 0 becomes bool by mask == 1"
        )
        raise TypeError(
            f"mask must be bool (True = may attend), got {mask.dtype}; {way_out}"
        )


def _axis_size(name: str, given: int | None, in_mask: int) -> int:
    if given is None:
        if in_mask == 1:
            raise ValueError(f"mask has size 1 in place of {name}; pass {name}=…")
        return in_mask
    require_size(name, given)
    if in_mask not in (1, given):
        raise ValueError(f"{name}={given} contradicts the mask, which has {in_mask}")
    return given


def require_size(name: str, size: int) -> None:
    """Raise unless ``size`` is an int of 0 or more."""
    # torch.export traces dynamic sizes as SymInt.
    if isinstance(size, bool) or not isinstance(size, int | torch.SymInt):
        raise TypeError(f"{name} must be an int, got {type(size).__name__} ({size!r})")
    if size < 0:
        raise ValueError(f"{name}={size} is negative; a size is 0 or more")


def require_tensor(name: str, tensor: Tensor) -> None:
    """Raise a TypeError unless ``tensor`` is one of torch."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(tensor).__name__}")


def require_floating(name: str, tensor: Tensor, way_out: str) -> None:
    """Raise a TypeError unless ``tensor`` is one of floating-point numbers."""
    require_tensor(name, tensor)
    if not tensor.is_floating_point():
        raise TypeError(f"{name} must be floating point, got {tensor.dtype}; {way_out}")


def require_values(name: str, tensor: Tensor) -> None:
    """Raise a ValueError where a tensor has a shape alone."""
    if tensor.is_meta:
        raise ValueError(f"{name} is on meta; pass a tensor that holds data")


def holds_integers(tensor: Tensor) -> bool:
    """Return whether ``tensor`` is one of integers; bools are none."""
    is_fraction = tensor.is_floating_point() or tensor.is_complex()
    return not is_fraction and tensor.dtype != torch.bool
