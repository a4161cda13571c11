"""What Mask demands of its mask: square, bool, and small enough to paint."""

import math

from mha_teach.widgets._inputs import as_array, as_code

MIN_TOKENS, MAX_TOKENS = 2, 10

Rows = tuple[tuple[bool, ...], ...]


def mask_rows(name: str, value: object) -> Rows:
    """Return a square mask of any library as rows of bools.

    Raises
    ------
    TypeError
        If ``value`` is not bool, or holds no data.
    ValueError
        If it is not square, or too small or too large to show.
    """
    array = as_array(name, value, "n rows of n bools (True = may attend)")
    code = as_code(name, value)
    if array.size and array.dtype != bool:
        got = getattr(value, "dtype", array.dtype)
        kinds = {"f": ("an additive mask", 0)}
        kind, allowed = kinds.get(array.dtype.kind, ("a mask of 1 and 0", 1))
        raise TypeError(
            f"{name} must be bool (True = may attend), got {got}; "
            f"{kind} becomes bool by {code} == {allowed}"
        )
    _check_shape(name, array.shape, code)
    return tuple(map(tuple, array.tolist()))


def _check_shape(name: str, shape: tuple[int, ...], code: str) -> None:
    if len(shape) > 2:
        first = ", ".join("0" * (len(shape) - 2))
        raise ValueError(
            f"{name} has shape {shape}, expected (n, n); "
            f"pass one mask of the batch, such as {code}[{first}]"
        )
    if len(shape) < 2 or shape[0] != shape[1]:
        way_out = "pass n rows of n bools"
        if shape and shape[-1] == math.prod(shape) > 0:
            way_out = f"a row for all becomes square by [{code}.ravel()] * {shape[-1]}"
        raise ValueError(
            f"{name} has shape {shape}, expected (n, n), a row for each token that "
            f"asks and a column for each that is looked at; {way_out}"
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
            f"pass {code}[:{MAX_TOKENS}, :{MAX_TOKENS}]"
        )
