"""What Mask demands of its mask: square, bool, and small enough to paint."""

import numpy as np

MIN_TOKENS, MAX_TOKENS = 2, 10

Rows = tuple[tuple[bool, ...], ...]


def mask_rows(name: str, value: object) -> Rows:
    """Return a square mask of any library as rows of bools.

    Raises
    ------
    TypeError
        If ``value`` is not bool.
    ValueError
        If it is not square, or too small or too large to show.
    """
    if hasattr(value, "tensor"):  # masks.causal(n)
        value = value.tensor()
    try:
        array = np.array(value.tolist() if hasattr(value, "tolist") else value)
    except ValueError:
        raise ValueError(
            f"{name} has rows of different lengths; pass n rows of n bools"
        ) from None
    if array.size and array.dtype != bool:
        got = getattr(value, "dtype", array.dtype)
        raise TypeError(
            f"{name} must be bool (True = may attend), got {got}; "
            f"{_way_to_bool(array.dtype, hasattr(value, 'dtype'))}"
        )
    _check_shape(name, array.shape)
    return tuple(map(tuple, array.tolist()))


def _way_to_bool(dtype: np.dtype, is_array: bool) -> str:
    mask = "mask" if is_array else "np.array(mask)"
    if np.issubdtype(dtype, np.floating):
        return f"an additive mask becomes bool by {mask} == 0"
    if np.issubdtype(dtype, np.integer):
        return f"a mask of 1 and 0 becomes bool by {mask} == 1"
    return "pass n rows of n bools"


def _check_shape(name: str, shape: tuple[int, ...]) -> None:
    if len(shape) > 2:
        first = ", ".join("0" * (len(shape) - 2))
        raise ValueError(
            f"{name} has shape {shape}, expected (n, n); "
            f"pass one mask of the batch, such as mask[{first}]"
        )
    if len(shape) < 2 or shape[0] != shape[1]:
        raise ValueError(
            f"{name} has shape {shape}, expected (n, n), a row for each token that "
            "asks and a column for each that is looked at; "
            "one row for all becomes square by mask.expand(n, n)"
        )
    n = shape[0]
    if n < MIN_TOKENS:
        raise ValueError(
            f"{name} is {n} by {n}, smaller than {MIN_TOKENS} by {MIN_TOKENS}; "
            f"pass a mask for {MIN_TOKENS} to {MAX_TOKENS} tokens"
        )
    if n > MAX_TOKENS:
        raise ValueError(
            f"{name} is {n} by {n}, larger than {MAX_TOKENS} by {MAX_TOKENS}; "
            f"pass mask[:{MAX_TOKENS}, :{MAX_TOKENS}]"
        )
