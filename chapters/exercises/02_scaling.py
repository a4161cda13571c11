# %% [markdown]
# # Exercises: the size of a score
#
# Four exercises for [chapter 02](../02_scaling.ipynb), 30 minutes and an optional 20:
#
# | | exercise | what you practise | minutes | points |
# |---|---|---|---|---|
# | ● | `02-predict` | predict how far dot products spread | 5 | 2 |
# | ●● | `02-bug` | find a scale that has the right shape and the wrong size | 10 | 2 |
# | ●● | `02-entropy` | write the entropy of a head | 15 | 4 |
# | ●●● | `02-spread` | measure how a fresh layer starts, and say why that will do (optional) | 20 | 4 |
#
# Half of the points of an exercise go by the share of its properties that hold, the other half is earned if all of them do.
#
# Each one is a statement, a place to write, and a check. The check names what holds and what does not, and asks you a
# question. Run it as often as you like. A function that you write returns what is asked for, and leaves what it was given as it was.
#
# - `hint("02-entropy")` gives the next of a few hints.
# - `solution("02-entropy")` shows a worked solution, after your first attempt.
#   They are also [on one page](02_scaling_solutions.md).
# - `progress()` lists what you have passed. It is kept on your machine and sent nowhere.

# %%
import torch
from torch import nn
from torch.nn import functional as F

from mha_teach.exercises import check, hint, progress, solution

_ = torch.manual_seed(2)

# %% [markdown]
# ## ● Spreads before you run
#
# A token of a model is $d_\text{model} = 288$ numbers wide, a query and a key in one head are $d_k = 36$ wide. All entries are
# independent and have mean 0. Those of $q$ have variance 4, those of $k$ have variance 16.
#
# > **Predict.** Fill in numbers, without running anything: the `spread` of the dot products (their standard deviation); by
# > which factor that spread grows if $d_k$ is `quadrupled`; the `divisor` of scaled dot-product attention; the spread that is
# > `left` after the division; and, with eight keys and no division, the `limit`: where the typical (median) top weight goes
# > as $d_k$ grows without end.

# %%
spreads = {
    "spread": None,
    "quadrupled": None,
    "divisor": None,
    "left": None,
    "limit": None,
}

# %%
check("02-predict", spreads)

# %% [markdown]
# ## ●● A scale that is right by luck
#
# Someone has written what `F.scaled_dot_product_attention` computes. Every shape is right, every row of weights sums to one,
# and the test has passed.


# %%
def attention(q, k, v):
    """Compute what F.scaled_dot_product_attention computes."""
    k = k.mT
    scores = q @ k / k.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)
    return weights @ v


# %% [markdown]
# Here is the test. It takes seven keys of width 7. Then we run it once more, with five keys:

# %%
for n_k in (7, 5):
    q, k, v = torch.randn(2, 3, 7), torch.randn(2, n_k, 7), torch.randn(2, n_k, 4)
    output, expected = attention(q, k, v), F.scaled_dot_product_attention(q, k, v)
    print(n_k, "keys, same shape: ", output.shape == expected.shape)
    print(n_k, "keys, same output:", torch.allclose(output, expected, atol=1e-6))

# %% [markdown]
# One line is wrong. Find it, mend it in the cell above, and run both cells again. Then check: it tries inputs that the cell
# above does not.
#
# > **Predict.** Before you change anything: give every key, and its value, twice. What should become of the output? What
# > will become of it here?

# %%
check("02-bug", attention)

# %% [markdown]
# ## ●● How undecided is a head?
#
# $$ H(a) = \sum_j a_j \ln \frac{1}{a_j} $$
#
# is the entropy of one row of weights. Write it for several heads at once: `weights` has the shape (head, query, key), and
# every row sums to one. Return a tensor (head,): for each head the mean entropy of its rows, in nats.
#
# Some weights are 0, as softmax rounds to 0 what is too small. A key without weight adds nothing to the entropy.


# %%
def entropy(weights):
    return None


# %%
check("02-entropy", entropy)

# %% [markdown]
# ## ●●● How a fresh layer starts
#
# In a model, $q$ and $k$ come out of linear layers. `nn.Linear(d_in, d_out)` holds a matrix, `weight`, and a vector, `bias`. It
# multiplies each token by the matrix and adds the vector. Both start at random. What comes out need not have variance 1. How
# far do the scores of a fresh layer spread?
#
# > **Predict.** Tokens with entries of variance 1 go through an `nn.Linear` as PyTorch makes it. Do the entries that come
# > out vary more, less or as much?
#
# Take `d_model=160, d_k=49`, a thousand tokens `x = torch.randn(1000, d_model)`, and two layers
# `nn.Linear(d_model, d_k)`, one for $q$ and one for $k$. Measure:
#
# - `variance`: that of the entries of $q$;
# - `spread`: that of all scores, the dot products divided by $\sqrt{d_k}$;
# - `divisor`: the number that you would divide the dot products by instead, for a spread of 1;
# - `doubled`: the factor by which the spread grows if the matrix and the bias of both layers become twice as large. (What does
#   the division by $\sqrt{d_k}$ do about it?)
#
# The check allows for chance: 10 % more or less will do. Then say `why`, in a sentence or two: the division makes the
# spread not 1 here, and training can change it at will. Why divide at all? No program can judge that sentence. Compare it with the
# worked solution.

# %%
# Measure here.

# %%
start = {
    "variance": None,
    "spread": None,
    "divisor": None,
    "doubled": None,
    "why": "",
}

# %%
check("02-spread", start)

# %% [markdown]
# ## Where you stand
#
# Run `progress()` in a new cell. What is left is a good place to start next time.
#
# Back to [chapter 02](../02_scaling.ipynb).
