"""The keys and values of the past, kept for the tokens to come."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(eq=False)
class KVCache:
    """Preallocated keys and values of one attention layer.

    Made by ``MultiHeadAttention.new_cache``, filled by ``MultiHeadAttention.decode``.

    Attributes
    ----------
    k, v
        (batch, num_kv_heads, max_length, d_k) and (…, d_v), in the module's dtype.
        Only the first ``length`` positions hold anything.
    length
        Number of tokens stored so far.
    """

    k: Float[Tensor, "batch kv_head max_length d_k"]
    v: Float[Tensor, "batch kv_head max_length d_v"]
    length: int = 0

    @property
    def max_length(self) -> int:
        """Number of tokens that fit."""
        return self.k.shape[2]

    def require_room(self, n_new: int) -> None:
        """Raise a ValueError unless ``n_new`` more tokens fit."""
        if self.length + n_new > self.max_length:
            raise ValueError(
                f"cache is full: length={self.length} plus {n_new} new exceeds "
                f"max_length={self.max_length}; call new_cache with max_length="
                f"{self.length + n_new} or more"
            )

    def append(
        self,
        k_new: Float[Tensor, "batch kv_head n_new d_k"],
        v_new: Float[Tensor, "batch kv_head n_new d_v"],
    ) -> tuple[
        Float[Tensor, "batch kv_head n_k d_k"], Float[Tensor, "batch kv_head n_k d_v"]
    ]:
        """Store new keys and values; return views of everything stored.

        Raises
        ------
        ValueError
            If they do not fit; then nothing is stored.
        """
        n_new = k_new.shape[-2]
        _require_shape("k_new", k_new, self.k, n_new)
        _require_shape("v_new", v_new, self.v, n_new)
        self.require_room(n_new)
        end = self.length + n_new
        self.k[:, :, self.length : end] = k_new
        self.v[:, :, self.length : end] = v_new
        self.length = end
        return self.k[:, :, :end], self.v[:, :, :end]


def _require_shape(name: str, new: Tensor, stored: Tensor, n_new: int) -> None:
    expected = (*stored.shape[:2], n_new, stored.shape[3])
    if new.shape != expected:
        raise ValueError(
            f"{name} has shape {tuple(new.shape)}, but this cache needs {expected}"
        )
