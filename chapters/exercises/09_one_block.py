# %% [markdown]
# # Exercises: one block
#
# Four exercises for [chapter 09](../09_one_block.ipynb), 30 minutes and an optional 20:
#
# | | exercise | what you practise | minutes | points |
# |---|---|---|---|---|
# | ● | `09-predict` | predict shapes, parameters and who moves | 5 | 2 |
# | ●● | `09-bug` | find a bug in the second half of a block | 10 | 2 |
# | ●● | `09-block` | write a block yourself | 15 | 4 |
# | ●●● | `09-depth` | measure what depth does to tokens, and say why (optional) | 20 | 4 |
#
# Half of the points of an exercise go by the share of its properties that hold, the other half is earned if all of them do.
#
# Each one is a statement, a place to write, and a check. The check names what holds and what does not, and asks you a
# question. Run it as often as you like. A function that you write returns what is asked for, and leaves what it was given as it was.
#
# - `hint("09-block")` gives the next of a few hints.
# - `solution("09-block")` shows a worked solution, after your first attempt.
#   They are also [on one page](09_one_block_solutions.md).
# - `progress()` lists what you have passed. It is kept on your machine and sent nowhere.

# %%
import torch
from torch.nn import functional as F

from mha_teach import MultiHeadAttention, scaled_dot_product_attention
from mha_teach.exercises import check, hint, progress, solution
from mha_teach.models import EncoderLayer

_ = torch.manual_seed(9)

# %% [markdown]
# ## ● What is in a block?
#
# A block as in the chapter, `Block(d_model=56, h=7, d_mlp=100)`, reads tokens of shape `(3, 16, 56)`. All its linear maps have biases.
#
# > **Predict.** Fill in, without running anything: the shape of its `output`; the shape `inside` the network, between its two linear
# > maps; the number of parameters of the network (`mlp`) and of both layer norms together (`norms`).
# >
# > Token 6, counted from 0, is replaced in one sentence. How many outputs of that sentence move if everyone may look at everyone (`free`),
# > under a `causal` mask, and under a mask by which each token sees only itself (`apart`)?

# %%
sizes = {
    "output": None,
    "inside": None,
    "mlp": None,
    "norms": None,
    "free": None,
    "causal": None,
    "apart": None,
}

# %%
check("09-predict", sizes)

# %% [markdown]
# ## ●● The wrong stream
#
# Someone has written the second half of a block: what happens once attention has brought its part. Every shape is right,
# nothing raises.


# %%
def finish(x, attended, w_in, b_in, w_out, b_out):
    """Take what attention brings through the rest of a block."""
    y = F.layer_norm(x + attended, x.shape[-1:])
    added = F.gelu(y @ w_in + b_in) @ w_out + b_out
    return F.layer_norm(x + added, x.shape[-1:])


# %% [markdown]
# Here it is beside the encoder's own, with the same weights:

# %%
layer = EncoderLayer(d_model=12, num_heads=3, d_mlp=20)
x, attended = torch.randn(2, 3, 7, 12)
first, second = layer.mlp[0], layer.mlp[2]
with torch.no_grad():
    output = finish(
        x, attended, first.weight.T, first.bias, second.weight.T, second.bias
    )
    expected = layer.finish(x, attended)

print("same shape: ", output.shape == expected.shape)
print("same output:", torch.allclose(output, expected, atol=1e-5))

# %% [markdown]
# One line is wrong. Find it, mend it in the cell above, and run both cells again. Then check: it tries inputs that the
# cell above does not.
#
# > **Predict.** Before you change anything: let the network add nothing, `w_out` and `b_out` zero. What should be left of `x` and
# > `attended`?

# %%
check("09-bug", finish)

# %% [markdown]
# ## ●● A block from six matrices
#
# $$ \begin{aligned}
# y &= \operatorname{norm}\big(x + \operatorname{attention}(x)\, W^O\big) \\
# \mathrm{output} &= \operatorname{norm}\big(y + \operatorname{relu}(y\, W_\text{in})\, W_\text{out}\big)
# \end{aligned} $$
#
# Write it, with one head and without biases.
#
# | argument | shape | what it is |
# |---|---|---|
# | `x` | `(batch, n, d_model)` | the tokens |
# | `mask` | `(n, n)`, bool | rows are queries; True may look; each token may look at itself |
# | `w_q`, `w_k` | `(d_model, d_k)` | make queries and keys |
# | `w_v` | `(d_model, d_v)` | makes values |
# | `w_o` | `(d_v, d_model)` | leads back to the width of the stream |
# | `w_in`, `w_out` | `(d_model, d_mlp)`, `(d_mlp, d_model)` | the network |
#
# Return a tensor `(batch, n, d_model)`. The norm has no factor and no shift: `F.layer_norm(t, t.shape[-1:])`. For attention you may use
# `scaled_dot_product_attention(q, k, v, mask)`, which returns output and weights, PyTorch's function, or your own of chapter 4.


# %%
def block(x, mask, w_q, w_k, w_v, w_o, w_in, w_out):
    return None


# %%
check("09-block", block)

# %% [markdown]
# ## ●●● What is left of the tokens?
#
# Take 11 random tokens of width 40, and 8 modules `MultiHeadAttention(40, 5)`, fresh as they are. Send the tokens through
# them one after the other, with `F.layer_norm(…, (40,))` after each, in two ways: `attention(x)` alone, or `x + attention(x)`. There is no
# network.
#
# > **Predict.** How different will the tokens be at the end, in each of the two ways?
#
# Two rows differ if a number in them is off by more than 0.001. Measure:
#
# - `once`: how many rows differ from row 0 after *one* attention alone, and its norm;
# - `alone`: how many differ from row 0 after all of them, without additions;
# - `added`: the same with additions;
# - `words`: with additions, and the tokens in reverse (`x.flip(0)`): how many tokens do *not* get the output that they had before;
# - `places`: the same, when 11 random vectors, one for each position, are added to the tokens first. Positions stay where they are.
#
# Then say `why`, in a sentence or two: what does a token lose without the addition, and why does depth not bring order? No program can
# judge that. Compare it with the worked solution.

# %%
# Measure here.

# %%
stacks = {
    "once": None,
    "alone": None,
    "added": None,
    "words": None,
    "places": None,
    "why": "",
}

# %%
check("09-depth", stacks)

# %% [markdown]
# ## Where you stand
#
# Run `progress()` in a new cell. What is left is a good place to start next time.
#
# Back to [chapter 09](../09_one_block.ipynb).
