# %% [markdown]
# # Exercises: heads add up
#
# Four exercises for [chapter 08](../08_heads_add_up.ipynb), 30 minutes and an optional 20:
#
# | | exercise | what you practise | minutes | points |
# |---|---|---|---|---|
# | ● | `08-predict` | predict what gates, biases and a score weight do | 5 | 2 |
# | ●● | `08-bug` | find a bug in code that takes an output apart | 10 | 2 |
# | ●● | `08-gate` | write a gate for each head, for any number of batch axes | 15 | 4 |
# | ●●● | `08-permute` | let two heads change places, measure what changes, and say why (optional) | 20 | 4 |
#
# Half of the points of an exercise go by the share of its properties that hold, the other half is earned if all of them do.
#
# Each one is a statement, a place to write, and a check. The check names what holds and what does not, and asks you a
# question. Run it as often as you like. A function that you write returns what is asked for, and leaves what it was given as it was.
#
# - `hint("08-gate")` gives the next of a few hints.
# - `solution("08-gate")` shows a worked solution, after your first attempt.
#   They are also [on one page](08_heads_add_up_solutions.md).
# - `progress()` lists what you have passed. It is kept on your machine and sent nowhere.

# %%
import torch
from torch import nn

from mha_teach import MultiHeadAttention
from mha_teach.exercises import check, hint, progress, solution

_ = torch.manual_seed(8)

# %% [markdown]
# ## ● One number, three heads
#
# A layer has three heads. Look at one number of its output. Head 0 contributes 7 to it, head 1 contributes −2, head 2 contributes 10. The
# bias of `out_proj` is 3 there.
#
# > **Predict.** Fill in numbers, without running anything: the `output`; the output `without` head 1; the output with all heads `off`;
# > the output under a gate of 1/3 for each head (`shares`); and in how many `orders` the three heads can sit, with all that is
# > theirs, so that the layer computes the same.
# >
# > Then one about scores. A query may see 13 of 16 keys; the scores of the others are -1e9. All its scores are multiplied by 0 before
# > the softmax. How many `keys` have weight?

# %%
sums = {
    "output": None,
    "without": None,
    "off": None,
    "shares": None,
    "orders": None,
    "keys": None,
}

# %%
check("08-predict", sums)

# %% [markdown]
# ## ●● Terms that do not add up
#
# Someone takes an output apart: one term for each head, and the bias as the last. `out_weight` and `out_bias` are those of an `nn.Linear`.
# Every shape is right, and a test in which $W^O$ was the identity has passed.


# %%
def terms(head_outputs, out_weight, out_bias):
    """Return one term per head and, last, the bias: they add up to the output."""
    h, d_v = head_outputs.shape[1], head_outputs.shape[3]
    blocks = out_weight.unflatten(0, (h, d_v))  # (head, d_v, d_model)
    contributions = head_outputs @ blocks
    rest = out_bias.expand_as(contributions[:, :1])
    return torch.cat([contributions, rest], dim=1)


# %% [markdown]
# Here is the test, and then the same with a matrix as training might leave it. Do the terms add up to the output?

# %%
head_outputs, out_proj = torch.randn(2, 3, 7, 5), nn.Linear(15, 15)
merged = MultiHeadAttention.merge_heads(head_outputs)       # (batch, n, 15)
as_trained = out_proj.weight.detach().clone()

for name, weight in {"identity": torch.eye(15), "as trained": as_trained}.items():
    with torch.no_grad():
        out_proj.weight.copy_(weight)
        added_up = terms(head_outputs, out_proj.weight, out_proj.bias).sum(dim=1)
        output = out_proj(merged)
    print(f"{name}, same shape: ", added_up.shape == output.shape)
    print(f"{name}, same output:", torch.allclose(added_up, output, atol=1e-5))

# %% [markdown]
# One line is wrong. Find it, mend it in the cell above, and run both cells again. Then check: it tries inputs that the
# cell above does not.
#
# > **Predict.** Before you change anything: why could the test with the identity not see it? Which other matrices would hide it as well?

# %%
check("08-bug", terms)

# %% [markdown]
# ## ●● A gate for each head
#
# $$ \mathrm{output} = \sum_{i=1}^{h} g_i\, \mathrm{head}_i\, W_i^O $$
#
# Write it. There is no bias.
#
# | argument | shape | what it is |
# |---|---|---|
# | `head_outputs` | `(…, h, n, d_v)` | what the heads bring, before they are merged |
# | `w_o` | `(h·d_v, d_model)` | $W^O$; the first head meets the first $d_v$ rows, the next one the next |
# | `gate` | `(h,)` or `(…, h)` | $g$: the same for all, or one for each sequence: `(batch, h)`, `(more, batch, h)` |
#
# Return a tensor `(…, n, d_model)`. The dots stand for the same axes in all of them: none, a batch, or more. A gate may be any number. A
# loop over heads is a good first answer. Can you do without it?


# %%
def gated(head_outputs, w_o, gate):
    return None


# %%
check("08-gate", gated)

# %% [markdown]
# ## ●●● Two heads change places
#
# Take a module with `n=5, d_model=11, h=7, d_k=13, d_v=3`: `n` random tokens, and
# `MultiHeadAttention(d_model, h, d_k=d_k, d_v=d_v)`. Its biases start at zero; draw all four at random (`nn.init.normal_`). Make a copy
# (`copy.deepcopy`), and in the copy let heads 0 and 2 change places, so that it computes the same as before. A copy's numbers are
# overwritten under `torch.no_grad()`. A slice such as `weight[:13]` is a view of the same memory: what is written there changes the
# slice as well. Copy with `.clone()` what you move.
#
# > **Predict.** What has to move? The module has four weights and four biases. And what will you see of it in a trace?
#
# Measure, on the same tokens (a row or a map differs if a number in it is off by more than 0.0001):
#
# - `outputs`: how many of the `n` rows of the output differ from those of the original, when all has moved;
# - `maps`: for how many of the `h` heads `trace.weights` differs from what stood at the same number before;
# - `forgotten`: how many rows of the output differ if `out_proj` stays as it was;
# - `numbers`: how many of the module's numbers are not what they were, when all has moved.
#
# Then say `why`, in a sentence or two: why may heads change places, and what does that mean for a sentence such as "head 3 looks at
# positions"? No program can judge that. Compare it with the worked solution.

# %%
# Measure here.

# %%
swapped = {
    "outputs": None,
    "maps": None,
    "forgotten": None,
    "numbers": None,
    "why": "",
}

# %%
check("08-permute", swapped)

# %% [markdown]
# ## Where you stand
#
# Run `progress()` in a new cell. What is left is a good place to start next time.
#
# Back to [chapter 08](../08_heads_add_up.ipynb).
