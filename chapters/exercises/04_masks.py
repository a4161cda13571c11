# %% [markdown]
# # Exercises: masks
#
# Six exercises for [chapter 04](../04_masks.ipynb), 50 minutes and an optional 20:
#
# | | exercise | what you practise | minutes | points |
# |---|---|---|---|---|
# | ● | `04-polarity` | say what yes is in four dialects, and the shape of a mask | 5 | 2 |
# | ●● | `04-bug` | find a mask that is wrong and has a shape that fits | 10 | 2 |
# | ●● | `04-causal` | write a causal mask, also for a few new queries | 10 | 3 |
# | ●● | `04-padding` | write a padding mask | 10 | 3 |
# | ●● | `04-attention` | write attention for queries that may look at nobody, too | 15 | 4 |
# | ●●● | `04-leak` | write the test that catches a wrong mask of the right shape (optional) | 20 | 4 |
#
# Half of the points of an exercise go by the share of its properties that hold, the other half is earned if all of them do.
#
# Each one is a statement, a place to write, and a check. The check names what holds and what does not, and asks you a
# question. Run it as often as you like. A function that you write returns what is asked for, and leaves what it was given as it was.
#
# - `hint("04-attention")` gives the next of a few hints.
# - `solution("04-attention")` shows a worked solution, after your first attempt.
#   They are also [on one page](04_masks_solutions.md).
# - `progress()` lists what you have passed. It is kept on your machine and sent nowhere.

# %%
import torch

from mha_teach import masks, scaled_dot_product_attention
from mha_teach.exercises import check, hint, progress, solution

_ = torch.manual_seed(4)

# %% [markdown]
# ## ● Yes in four dialects
#
# A look is *allowed*. What stands for it in the mask?
#
# - `function`: in the boolean `attn_mask` of `F.scaled_dot_product_attention`;
# - `module`: in the boolean `attn_mask` of `nn.MultiheadAttention`;
# - `added`: in a mask that is added to the scores;
# - `filled`: in a mask of ones and zeros, used as `scores.masked_fill(mask == 0, float("-inf"))`.
#
# And two masks for a batch of 11 sentences, in which the 3 newest tokens ask 5 keys, their own included:
#
# - `padding`: the shape of `masks.padding(lengths, n_k=5)`, as a tuple;
# - `causal`: how many of the 3 · 5 looks `masks.causal(n_q=3, n_k=5)` allows.
#
# > **Predict.** Fill in, without running anything.

# %%
looks = {
    "function": None,
    "module": None,
    "added": None,
    "filled": None,
    "padding": None,
    "causal": None,
}

# %%
check("04-polarity", looks)

# %% [markdown]
# ## ●● A mask that is one axis off
#
# Sentences of different lengths, filled up with padding at the end. Scores may be as low as −200. Every token, padding too, may look at all
# real tokens of its sentence, and none at padding. (What padding gets is read by nobody. But a query that may look at nobody gets nan, so
# padding asks like any other token.) This is how someone wrote it. It runs, and all weights sum to one.


# %%
def read(q, k, v, lengths):
    """Let each token look at the real tokens of its own sentence."""
    place = torch.arange(k.shape[1], device=lengths.device)
    is_padding = place >= lengths[:, None]
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(is_padding[:, :, None], -1e9)
    return scores.softmax(dim=-1) @ v


# %% [markdown]
# Here two sentences of 3 and 5 tokens are read twice. The second time there is other padding behind the first one:

# %%
q, k, v = torch.randn(3, 2, 5, 4)                 # (batch, n, width) each
lengths = torch.tensor([3, 5])
output = read(q, k, v, lengths)

k_new, v_new = k.clone(), v.clone()
k_new[0, 3:], v_new[0, 3:] = torch.randn(2, 2, 4)
output_new = read(q, k_new, v_new, lengths)

print("same shape: ", output.shape == v.shape)
print("same output:", torch.allclose(output_new[0, :3], output[0, :3]))

# %% [markdown]
# One line is wrong. Find it, mend it in the cell above, and run both cells again. Then check: it tries inputs that the
# cell above does not.
#
# > **Predict.** Before you change anything: with `float("-inf")` in place of `-1e9`, what would the output have shown?

# %%
check("04-bug", read)

# %% [markdown]
# ## ●● The past and nothing else
#
# Write the causal mask: a bool tensor `(n_q, n_k)`, True where a query may look at a key. The `n_q` queries are the newest of `n_k`
# tokens ($n_q \le n_k$), and each may look at itself and at all that came before it.


# %%
def causal(n_q, n_k):
    return None


# %%
check("04-causal", causal)

# %% [markdown]
# ## ●● Nobody looks at padding
#
# Write the padding mask. `lengths` is a list of whole numbers: sentence $b$ has `lengths[b]` real tokens, and what follows, up to `n_k`,
# is padding. Return a bool tensor with the four axes of the scores, (batch, head, query, key), 1 long where an axis makes no
# difference.


# %%
def padding(lengths, n_k):
    return None


# %%
check("04-padding", padding)

# %% [markdown]
# ## ●● Attention under a mask
#
# $$ \operatorname{Attention}(Q, K, V) = \operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}} + M\right) V, \qquad
# M_{ij} = 0 \text{ or } -\infty $$
#
# Write it, for every mask: a query that may look at nobody has zero weights and a zero output, and spoils no gradient. That is to say:
# the gradients of what the other queries get reach `q`, `k` and `v`, and all are finite. And a forbidden key gets no weight even if all
# scores are as low as −200.
#
# | argument | shape | what it is |
# |---|---|---|
# | `q` | `(batch, n_q, d_k)` | the queries |
# | `k` | `(batch, n_k, d_k)` | the keys |
# | `v` | `(batch, n_k, d_v)` | the values |
# | `mask` | `(batch, n_q, n_k)` or `(n_q, n_k)` | bool, True = may look |
#
# Return two tensors, the output `(batch, n_q, d_v)` first and the weights `(batch, n_q, n_k)` second. In
# float16 both should be as in float32, up to rounding; which dtype they have is left to you.


# %%
def attention(q, k, v, mask):
    return None


# %%
check("04-attention", attention)

# %% [markdown]
# ## ●●● Too much or too little?
#
# Somebody gives you a function `attend`. It takes tokens `(n, 8)` and returns an output for each, `(n, 8)`. You cannot see inside. The
# output of a token should depend on that token and on every token before it, and on no later one. Does it?
#
# Write `is_causal(attend, n)`: True if so, False if not. It will be tried on two heads that are right, one of which moves only one
# of its eight numbers, on some that leak in a single cell of the table or faintly, in the fourth digit, and on some that see too
# little, if only by one cell. An output that is nan is wrong. Give `attend` tokens of ordinary size, such as those of
# `torch.randn`: numbers beyond all measure make nan of any head. Points are for telling heads apart: a yes or a no to all of them
# earns next to none. Here are three to try it on yourself:

# %%
def past(x):
    return scaled_dot_product_attention(x, x, x, masks.causal(len(x))).output


def everyone(x):
    return scaled_dot_product_attention(x, x, x).output


def itself(x):
    return scaled_dot_product_attention(x, x, x, masks.window(len(x), 1)).output


# %% [markdown]
# > **Predict.** How many times must you call `attend`, for 7 tokens, to know every cell of the table?


# %%
def is_causal(attend, n):
    return None


# %%
check("04-leak", is_causal)

# %% [markdown]
# Then say, for yourself: which fault would your test miss? The worked solution has some answers.
#
# ## Where you stand
#
# Run `progress()` in a new cell. What is left is a good place to start next time.
#
# Back to [chapter 04](../04_masks.ipynb).
