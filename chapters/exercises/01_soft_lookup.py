# %% [markdown]
# # Exercises: soft look-up
#
# Four exercises for [chapter 01](../01_soft_lookup.ipynb), 30 minutes and an optional 20:
#
# | | exercise | what you practise | minutes | points |
# |---|---|---|---|---|
# | ● | `01-weights` | weigh three keys by hand before anything runs | 5 | 2 |
# | ●● | `01-bug` | find a bug that has the right shape | 10 | 2 |
# | ●● | `01-lookup` | write the look-up, with a softmax for scores of any size | 15 | 4 |
# | ●●● | `01-nearest` | measure how often the nearest key wins, and say why (optional) | 20 | 4 |
#
# Half of the points of an exercise go by the share of its properties that hold, the other half is earned if all of them do.
#
# Each one is a statement, a place to write, and a check. The check names what holds and what does not, and asks you a
# question. Run it as often as you like. A function that you write returns what is asked for, and leaves what it was given as it was.
#
# - `hint("01-lookup")` gives the next of a few hints.
# - `solution("01-lookup")` shows a worked solution, after your first attempt.
#   They are also [on one page](01_soft_lookup_solutions.md).
# - `progress()` lists what you have passed. It is kept on your machine and sent nowhere.

# %%
import torch
from torch.nn import functional as F

from mha_teach.exercises import check, hint, progress, solution

_ = torch.manual_seed(1)

# %% [markdown]
# ## ● Weights by hand
#
# One query asks three keys. Their dot products with it are $0$, $\ln 2$ and $\ln 7$; their values are the numbers 90, 10
# and 20. No computer is needed: the powers $e^0$, $e^{\ln 2}$ and $e^{\ln 7}$ are 1, 2 and 7.
#
# > **Predict.** Fill in numbers, or fractions such as `3 / 8`:
# >
# > - `third`: the weight of the third key at temperature 1,
# > - `output`: the output at temperature 1,
# > - `shifted`: the weight of the third key at temperature 1, after 5 has been added to all three scores,
# > - `ratio`: at temperature 1/2, how many times the weight of the first key does the third get?
# > - `cold` and `hot`: where the output goes as the temperature goes to 0, and as it grows without end,
# > - `most`: the smallest number that no output can exceed, whatever the query and the keys, with these three values.

# %%
weights = {
    "third": None,
    "output": None,
    "shifted": None,
    "ratio": None,
    "cold": None,
    "hot": None,
    "most": None,
}

# %%
check("01-weights", weights)

# %% [markdown]
# ## ●● The answer that depends on the others
#
# Someone has written softmax out: take powers, divide by their sum over the keys. Five queries ask five keys, the shape is
# right, nothing raises. But it is not what PyTorch computes. And a query gets another answer when others ask beside it than
# when it asks alone.


# %%
def answers(q, k, v, temperature):
    """Answer each query with an average of the values."""
    scores = q @ k.mT / temperature
    powers = scores.exp()
    weights = powers / powers.sum(dim=-1)
    return weights @ v


# %% [markdown]
# Here it is beside PyTorch's own, and beside itself:

# %%
q, k, v = torch.randn(5, 3), torch.randn(5, 3), torch.randn(5, 2)
output = answers(q, k, v, temperature=2)
expected = F.scaled_dot_product_attention(q, k, v, scale=1 / 2)
alone = answers(q[:1], k, v, temperature=2)       # the first query, nobody else

print("same shape:               ", output.shape == expected.shape)
print("same output:              ", torch.allclose(output, expected, atol=1e-6))
print("same output, first alone: ", torch.allclose(alone, expected[:1], atol=1e-6))

# %% [markdown]
# One line is wrong. Find it, mend it in the cell above, and run both cells again. Then check: it tries inputs that the
# cell above does not.
#
# > **Predict.** `torch.eye(5)` is a table with ones on its diagonal and zeros elsewhere. Take it as `v`, and the output *is* the
# > weights. Which of their sums should be one, and which are? Look before you change anything.

# %%
check("01-bug", answers)

# %% [markdown]
# ## ●● A look-up for scores of any size
#
# $$ s_j = \frac{q \cdot k_j}{T}, \qquad a = \operatorname{softmax}(s), \qquad \mathrm{output} = \sum_j a_j\, v_j $$
#
# Write it for many queries, and write softmax out: powers, divided by their sum. There is one difficulty. From a score of 89 on, $e^s$ is
# too large for a 32-bit number. `exp` then gives infinity, and infinity divided by infinity is nan, "not a number". From −104 down it gives
# 0, and 0/0 is nan as well. Scores may lie anywhere from −300 to 300 here, and weights and output must be right all the same. What you
# found for `shifted`, in the first exercise, shows a way. (The check looks at the numbers alone. PyTorch's `softmax` gives them, too; it
# takes the same way.)
#
# | argument | shape | what it is |
# |---|---|---|
# | `q` | `(n_q, d_k)` | the queries |
# | `k` | `(n_k, d_k)` | the keys, of any length |
# | `v` | `(n_k, d_v)` | the values |
# | `temperature` | a number above 0 | |
#
# Return two tensors: the output `(n_q, d_v)` and the weights `(n_q, n_k)`.


# %%
def soft_lookup(q, k, v, temperature):
    return None


# %%
check("01-lookup", soft_lookup)

# %% [markdown]
# ## ●●● How often does the nearest win?
#
# In the chapter a long key took the weight of the nearest. Was that a rare accident?
#
# > **Predict.** A query and 16 keys of width 8, all of them made by `torch.randn`. How often is the key with the largest dot
# > product also the nearest? And if every query were 1000 times as long?
#
# Draw 10,000 queries, and 16 new keys for each. Call the key with the largest dot product the *winner*. Measure:
#
# - `random`: the share of queries whose winner is the nearest key;
# - `unit`: the same share after every key has been brought to length 1;
# - `longer`: among the queries of `random` for which the two keys *differ*, the share for which the winner is the longer
#   of the two;
# - `far`: the share as in `random`, with every query 1000 times as long.
#
# A share lies between 0 and 1. Draws differ, so yours may be off by 0.03.
#
# Then say `why`, in a sentence or two: equation (2) of the chapter explains all four. No program can judge that sentence.
# Compare it with the worked solution.

# %%
# Measure here.

# %%
share = {
    "random": None,
    "unit": None,
    "longer": None,
    "far": None,
    "why": "",
}

# %%
check("01-nearest", share)

# %% [markdown]
# ## Where you stand
#
# Run `progress()` in a new cell. What is left is a good place to start next time.
#
# Back to [chapter 01](../01_soft_lookup.ipynb).
