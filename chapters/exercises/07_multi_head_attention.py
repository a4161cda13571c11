# %% [markdown]
# # Exercises: multi-head attention
#
# Four exercises for [chapter 07](../07_multi_head_attention.ipynb), 30 minutes and an optional 20:
#
# | | exercise | what you practise | minutes | points |
# |---|---|---|---|---|
# | ● | `07-shapes` | predict shapes and parameters before anything runs | 5 | 2 |
# | ●● | `07-bug` | find a bug that has the right shape | 10 | 2 |
# | ●● | `07-mha` | write multi-head attention yourself | 15 | 4 |
# | ●●● | `07-rank` | measure what a small $d_k$ takes away, and say why (optional) | 20 | 4 |
#
# Half of the points of an exercise go by the share of its properties that hold, the other half is earned if all of them do.
#
# Each one is a statement, a place to write, and a check. The check names what holds and what does not, and asks you a
# question. Run it as often as you like. A function that you write returns what is asked for, and leaves what it was given as it was.
#
# - `hint("07-mha")` gives the next of a few hints.
# - `solution("07-mha")` shows a worked solution, after your first attempt.
#   They are also [on one page](07_multi_head_attention_solutions.md).
# - `progress()` lists what you have passed. It is kept on your machine and sent nowhere.

# %%
import torch
from torch import nn

from mha_teach import MultiHeadAttention
from mha_teach.exercises import check, hint, progress, solution

_ = torch.manual_seed(7)

# %% [markdown]
# ## ● Shapes before you run
#
# A module has $d_\text{model} = 56$ and $h = 7$ heads, but $d_k = d_v = 6$:
#
# ```python
# mha = MultiHeadAttention(d_model=56, num_heads=7, d_k=6, bias=False)
# trace = mha.trace(x)                  # x has the shape (3, 5, 56)
# ```
#
# > **Predict.** Fill in, without running it: the shapes of `trace.q`, `trace.weights` and `trace.output` as tuples; the
# > number of parameters of `mha`; and how many parameters *more* a module has with twice the heads, each half as wide
# > (`num_heads=14, d_k=3`).

# %%
shapes = {
    "q": None,
    "weights": None,
    "output": None,
    "parameters": None,
    "more": None,
}

# %%
check("07-shapes", shapes)

# %% [markdown]
# ## ●● The weights that almost fit
#
# `nn.MultiheadAttention` keeps all its weights in four tensors. `in_proj_weight` holds $W^Q$, $W^K$ and $W^V$, one below
# the other. Someone has rebuilt its output from these four. Every shape is right, nothing raises, and a model made of it
# would even learn. But it is not what PyTorch computes.


# %%
def rebuilt(x, in_proj_weight, in_proj_bias, out_weight, out_bias, h):
    """Compute what nn.MultiheadAttention computes, from its own four tensors."""
    w_q, w_k, w_v = in_proj_weight.chunk(3)
    b_q, b_k, b_v = in_proj_bias.chunk(3)
    q, k, v = x @ w_q + b_q, x @ w_k + b_k, x @ w_v + b_v
    q, k, v = (y.unflatten(-1, (h, -1)).transpose(1, 2) for y in (q, k, v))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    head_outputs = (weights @ v).transpose(1, 2).flatten(2)
    return head_outputs @ out_weight.T + out_bias


# %% [markdown]
# Here it is beside the original:

# %%
theirs = nn.MultiheadAttention(embed_dim=15, num_heads=3, batch_first=True)
x = torch.randn(2, 7, 15)
with torch.no_grad():
    output = rebuilt(
        x,
        theirs.in_proj_weight,
        theirs.in_proj_bias,
        theirs.out_proj.weight,
        theirs.out_proj.bias,
        h=3,
    )
    expected, _ = theirs(x, x, x)

print("same shape: ", output.shape == expected.shape)
print("same output:", torch.allclose(output, expected, atol=1e-6))

# %% [markdown]
# One line is wrong. Find it, mend it in the cell above, and run both cells again. Then check: it tries inputs that the
# cell above does not.
#
# > **Predict.** Before you change anything: which inputs would tell you *where* it goes wrong? Think of $x = 0$, or of
# > weights that make all scores equal.

# %%
check("07-bug", rebuilt)

# %% [markdown]
# ## ●● Multi-head attention from four matrices
#
# $$ \begin{aligned}
# &\operatorname{MultiHead}(x) = \\
# &\quad \operatorname{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)\, W^O
# \end{aligned} $$
#
# $$ \mathrm{head}_i = \operatorname{softmax}\!\left(\frac{q_i k_i^\top}{\sqrt{d_k}}\right) v_i $$
#
# with $q_i = x W_i^Q$, $k_i = x W_i^K$ and $v_i = x W_i^V$.
#
# Write it. The heads' matrices stand side by side, so that one product makes the queries of all heads:
#
# | argument | shape | what it is |
# |---|---|---|
# | `x` | `(batch, n, d_model)` | the tokens |
# | `w_q`, `w_k` | `(d_model, h·d_k)` | head $i$ owns columns $i\,d_k$ to $(i+1)\,d_k$, counted from 0 |
# | `w_v` | `(d_model, h·d_v)` | likewise, with $d_v$ |
# | `w_o` | `(h·d_v, d_model)` | |
# | `h` | a number | how many heads |
#
# Return a tensor `(batch, n, d_model)`. There is no mask and no bias. Do not count on $h \cdot d_k = d_\text{model}$, nor on
# $d_v = d_k$. A loop over heads is a good first answer. Can you do without it?


# %%
def mha(x, w_q, w_k, w_v, w_o, h):
    return None


# %%
check("07-mha", mha)

# %% [markdown]
# ## ●●● What a small $d_k$ takes away
#
# Twice the heads, each half as wide: the same parameters, the same matrix products. Is it free? Look at the table of
# scores of one head, `(n, n)`. Its *rank* counts the independent rows, those that are no mixture of the others.
#
# > **Predict.** Thirteen random tokens make thirteen rows of scores. How many of them are independent, if $d_k = 4$? And
# > how many rows of weights, after softmax?
#
# Make a module with `d_model=20, num_heads=3, d_k=4`, and 13 random tokens, both in float64 (call `.double()`: in float32
# rounding blurs the rank). Measure with `torch.linalg.matrix_rank`:
#
# - `scores`: the rank of `trace.scores` of one head;
# - `weights`: the rank of `trace.weights` of that head;
# - `half`: the rank of the scores of one head when there are twice the heads, each half as wide.
#
# Then say `why`, in a sentence or two: what does a head lose when $d_k$ shrinks, and what can softmax not give back? No
# program can judge that sentence. Compare it with the worked solution.

# %%
# Measure here.

# %%
rank = {
    "scores": None,
    "weights": None,
    "half": None,
    "why": "",
}

# %%
check("07-rank", rank)

# %% [markdown]
# ## Where you stand
#
# Run `progress()` in a new cell. What is left is a good place to start next time.
#
# Back to [chapter 07](../07_multi_head_attention.ipynb).
