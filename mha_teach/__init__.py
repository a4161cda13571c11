"""Multi-head attention, written to be read.

Open ``attention.py`` for the mathematics, ``masks.py`` for who may attend to
whom, ``costs.py`` for what it all costs, ``heads.py`` for what each head adds.
"""

from mha_teach import costs, heads, masks
from mha_teach.attention import (
    AttentionResult,
    AttentionTrace,
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from mha_teach.cache import KVCache

__all__ = [
    "AttentionResult",
    "AttentionTrace",
    "KVCache",
    "MultiHeadAttention",
    "costs",
    "heads",
    "masks",
    "scaled_dot_product_attention",
]
