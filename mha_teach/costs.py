r"""What attention costs, as exact integers.

Symbols: d = d_model, h = num_heads, g = num_kv_heads, k = d_k, v = d_v, n = n_q
queries, m = n_k keys, B = batch. Nothing here needs more than the standard library.

Every function raises a TypeError for a size that is no int, and a ValueError for one
that is too small or does not divide what it must divide.
"""

from dataclasses import dataclass
from types import MappingProxyType


def parameters(
    d_model: int,
    num_heads: int,
    *,
    d_k: int | None = None,
    d_v: int | None = None,
    num_kv_heads: int | None = None,
    d_context: int | None = None,
    bias: bool = True,
) -> int:
    """Count the parameters of one module: d·hk + c·g(k + v) + hv·d, and biases.

    Here c is ``d_context``. With the defaults this is 4d², and 4d more with biases,
    whatever the number of heads.

    Examples
    --------
    >>> parameters(512, 8), parameters(512, 16)
    (1050624, 1050624)
    """
    d_k, d_v, num_kv_heads = _widths(d_model, num_heads, d_k, d_v, num_kv_heads)
    d_context = d_model if d_context is None else d_context
    require_at_least(1, d_context=d_context)
    require_flag("bias", bias)
    columns_q = num_heads * d_k
    columns_kv = num_kv_heads * (d_k + d_v)
    weights = d_model * columns_q + d_context * columns_kv + num_heads * d_v * d_model
    return weights + (columns_q + columns_kv + d_model) * bias


def forward_flops(
    d_model: int,
    num_heads: int,
    n_q: int,
    n_k: int | None = None,
    *,
    batch: int = 1,
    d_k: int | None = None,
    d_v: int | None = None,
    num_kv_heads: int | None = None,
) -> int:
    """Count the FLOPs of the matrix products of one forward pass, 2 per multiply-add.

    Projections 2B[n·d·hk + m·d·g(k + v) + n·hv·d], attention 2B·h·n·m(k + v). With
    the defaults 8Bnd² + 4Bn²d, whatever the number of heads. Softmax and biases are
    not counted. ``n_k`` defaults to ``n_q``.

    Examples
    --------
    >>> forward_flops(512, 8, 128) == 8 * 128 * 512**2 + 4 * 128**2 * 512
    True
    """
    d_k, d_v, num_kv_heads = _widths(d_model, num_heads, d_k, d_v, num_kv_heads)
    n_k = n_q if n_k is None else n_k
    require_at_least(0, n_q=n_q, n_k=n_k, batch=batch)
    per_query = num_heads * (d_k + d_v)
    per_key = num_kv_heads * (d_k + d_v)
    projections = d_model * (n_q * per_query + n_k * per_key)
    return 2 * batch * (projections + n_q * n_k * per_query)


def score_bytes(
    num_heads: int,
    n_q: int,
    n_k: int | None = None,
    *,
    batch: int = 1,
    itemsize: int = 4,
) -> int:
    """Count the bytes of one tensor of scores (or weights): B·h·n·m·itemsize.

    Examples
    --------
    >>> score_bytes(8, 4096) // 2**20
    512
    """
    n_k = n_q if n_k is None else n_k
    require_at_least(1, num_heads=num_heads, itemsize=itemsize)
    require_at_least(0, n_q=n_q, n_k=n_k, batch=batch)
    return batch * num_heads * n_q * n_k * itemsize


def kv_cache_bytes(
    n: int,
    *,
    num_kv_heads: int,
    d_k: int,
    d_v: int | None = None,
    num_layers: int = 1,
    batch: int = 1,
    itemsize: int = 2,
) -> int:
    """Count the bytes of the keys and values of n tokens: L·B·n·g(k + v)·itemsize.

    Examples
    --------
    >>> kv_cache_bytes(4096, num_kv_heads=8, d_k=128, num_layers=80) / 2**30
    1.25
    """
    d_v = d_k if d_v is None else d_v
    require_at_least(1, num_kv_heads=num_kv_heads, d_k=d_k, d_v=d_v, itemsize=itemsize)
    require_at_least(0, n=n, num_layers=num_layers, batch=batch)
    return num_layers * batch * n * num_kv_heads * (d_k + d_v) * itemsize


@dataclass(frozen=True)
class Published:
    """The attention of a published model; ``num_layers`` counts attention modules."""

    d_model: int
    num_heads: int
    num_kv_heads: int
    d_k: int
    num_layers: int
    source: str


def _published() -> MappingProxyType[str, Published]:
    bert, t5 = "Devlin et al. (2019)", "Raffel et al. (2020)"
    gpt2, gpt3 = "Radford et al. (2019)", "Brown et al. (2020)"
    llama2, llama3 = "Touvron et al. (2023)", "Grattafiori et al. (2024)"
    gemma, falcon = "Gemma Team (2024)", "Almazrouei et al. (2023)"
    rows = {
        "Transformer base": (512, 8, 8, 64, 18, "Vaswani et al. (2017)"),
        "BERT-base": (768, 12, 12, 64, 12, bert),
        "BERT-large": (1024, 16, 16, 64, 24, bert),
        "GPT-2 small": (768, 12, 12, 64, 12, gpt2),
        "GPT-2 XL": (1600, 25, 25, 64, 48, gpt2),
        "GPT-3 175B": (12288, 96, 96, 128, 96, gpt3),
        "T5-base": (768, 12, 12, 64, 36, t5),
        "T5-3B": (1024, 32, 32, 128, 72, t5),
        "T5-11B": (1024, 128, 128, 128, 72, t5),
        "Llama 2 7B": (4096, 32, 32, 128, 32, llama2),
        "Llama 2 70B": (8192, 64, 8, 128, 80, llama2),
        "Llama 3 8B": (4096, 32, 8, 128, 32, llama3),
        "Llama 3 70B": (8192, 64, 8, 128, 80, llama3),
        "Mistral 7B": (4096, 32, 8, 128, 32, "Jiang et al. (2023)"),
        "Gemma 2B": (2048, 8, 1, 256, 18, gemma),
        "Gemma 7B": (3072, 16, 16, 256, 28, gemma),
        "Falcon 7B": (4544, 71, 1, 64, 32, falcon),
    }
    return MappingProxyType({name: Published(*row) for name, row in rows.items()})


published = _published()


def _widths(
    d_model: int,
    num_heads: int,
    d_k: int | None,
    d_v: int | None,
    num_kv_heads: int | None,
) -> tuple[int, int, int]:
    require_at_least(1, d_model=d_model, num_heads=num_heads)
    if d_k is None:
        if d_model % num_heads:
            raise ValueError(
                f"d_model={d_model} is not divisible by num_heads={num_heads}; "
                "pass d_k=…"
            )
        d_k = d_model // num_heads
    d_v = d_k if d_v is None else d_v
    num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    require_at_least(1, d_k=d_k, d_v=d_v, num_kv_heads=num_kv_heads)
    if num_heads % num_kv_heads:
        raise ValueError(
            f"num_kv_heads={num_kv_heads} does not divide num_heads={num_heads}; "
            "each key head serves a group of query heads of equal size"
        )
    return d_k, d_v, num_kv_heads


def require_at_least(least: int, **sizes: int) -> None:
    """Raise unless each size is an int of ``least`` or more."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int):
            raise TypeError(f"{name} must be an int, got {size!r}")
        if size < least:
            raise ValueError(f"{name}={size} must be at least {least}")


def require_flag(name: str, value: bool) -> None:
    """Raise a TypeError unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
