# %% [markdown]
# # Exercises: split and merge
#
# Five exercises for [chapter 06](../06_split_and_merge.ipynb), 30 minutes and an optional 20:
#
# | | exercise | what you practise | minutes | points |
# |---|---|---|---|---|
# | ● | `06-predict` | say where one number goes, and what a transpose does in memory | 5 | 2 |
# | ●● | `06-bug` | find a bug that one sentence does not show | 10 | 2 |
# | ●● | `06-split` | write `split` | 10 | 3 |
# | ●● | `06-merge` | write `merge` | 5 | 2 |
# | ●●● | `06-slice` | measure what a head loses when the input is cut, and say why (optional) | 20 | 4 |
#
# Half of the points of an exercise go by the share of its properties that hold, the other half is earned if all of them do.
#
# Each one is a statement, a place to write, and a check. The check names what holds and what does not, and asks you a
# question. Run it as often as you like. A function that you write returns what is asked for, and leaves what it was given as it was.
#
# - `hint("06-split")` gives the next of a few hints.
# - `solution("06-split")` shows a worked solution, after your first attempt.
#   They are also [on one page](06_split_and_merge_solutions.md).
# - `progress()` lists what you have passed. It is kept on your machine and sent nowhere.

# %%
import torch

from mha_teach.exercises import check, hint, progress, solution

_ = torch.manual_seed(6)

# %% [markdown]
# ## ● Follow one number
#
# 10 sentences of 6 tokens have been projected for 4 heads. Queries are 7 wide, values 9:
#
# ```python
# projected = x @ w_q                   # (10, 6, 28), as a product writes it
# q = projected.unflatten(-1, (4, 7)).transpose(1, 2)
# ```
#
# Everything is counted from 0. Take the number at `[8, 5, 15]` of `projected`: sentence 8, token 5, column 15.
#
# - `split`: the shape of `q`, as a tuple;
# - `index`: where in `q` the number stands, as a tuple of four;
# - `strides`: what `q.stride()` says (from the section that a first evening may skip);
# - `merged`: the shape of the merged heads, just before $W^O$;
# - `reshaped`: where the number stands in `projected.reshape(10, 4, 6, 7)`, which has the shape of `q`.
#
# > **Predict.** Fill in, without running it.

# %%
places = {
    "split": None,
    "index": None,
    "strides": None,
    "merged": None,
    "reshaped": None,
}

# %%
check("06-predict", places)

# %% [markdown]
# ## ●● Right for one sentence
#
# Instead of a fourth axis, one can let heads and sentences share the first one: three axes are enough for attention. This is how
# someone wrote it. It was tested against a loop over heads, with one sentence, and the two agreed.


# %%
def several(x, w_q, w_k, w_v, w_o, h):
    """Attend in h heads, all on one axis with the sentences."""

    def stack(t):  # (batch, n, h * width) to (h * batch, n, width)
        return torch.cat(t.chunk(h, dim=-1))

    q, k, v = stack(x @ w_q), stack(x @ w_k), stack(x @ w_v)
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    heads = (weights @ v).unflatten(0, (len(x), h)).unbind(1)
    return torch.cat(heads, dim=-1) @ w_o


# %% [markdown]
# Here is the test again, and then two sentences: each should get what it gets alone.

# %%
x = torch.randn(2, 5, 8)                          # (batch, n, d_model)
w_q, w_k, w_v, w_o = torch.randn(4, 8, 12)
matrices = w_q, w_k, w_v, w_o.T                   # 3 heads, 4 wide

looped = [
    (x @ a @ (x @ b).mT / 2).softmax(dim=-1) @ (x @ c)
    for a, b, c in zip(*(w.chunk(3, dim=1) for w in (w_q, w_k, w_v)), strict=True)
]
expected = torch.cat(looped, dim=-1) @ w_o.T
for name, some in {"one sentence": x[:1], "two sentences": x}.items():
    output = several(some, *matrices, h=3)
    print(f"{name}, same shape: ", output.shape == some.shape)
    same = torch.allclose(output, expected[: len(some)], atol=1e-3)
    print(f"{name}, same output:", same)

# %% [markdown]
# One line is wrong. Find it, mend it in the cell above, and run both cells again. Then check: it tries inputs that the
# cell above does not.
#
# > **Predict.** Before you change anything: with two sentences and three heads, whose is each of the six entries of the first axis?

# %%
check("06-bug", several)

# %% [markdown]
# ## ●● Split
#
# $$ [\,b,\; t,\; i \cdot \text{width} + j\,] \;\longrightarrow\; [\,b,\; i,\; t,\; j\,] $$
#
# Write it: `x` is `(batch, n, h·width)`, and the result `(batch, h, n, width)`. It should also work for a batch of no sentences. If `h`
# does not divide the last axis, it must raise an error, whichever you like. (Raise it: who only prints or returns it, goes on with a wrong
# result.)


# %%
def split(x, h):
    return None


# %%
check("06-split", split)

# %% [markdown]
# ## ●● Merge
#
# $$ [\,b,\; i,\; t,\; j\,] \;\longrightarrow\; [\,b,\; t,\; i \cdot \text{width} + j\,] $$
#
# Now the way back: `x` is `(batch, h, n, width)`, and the result `(batch, n, h·width)`. A batch of no sentences may come here, too.


# %%
def merge(x):
    return None


# %%
check("06-merge", merge)

# %% [markdown]
# ## ●●● What a slice costs
#
# A layer has $d_\text{model} = 35$ and $h = 5$ heads, 7 wide, and no biases. Build it twice, with random matrices, each divided by
# $\sqrt{d_\text{model}}$ (else scores may be so large that a softmax no longer moves):
#
# - the *projection* is cut, as it should be: $W^Q$, $W^K$ and $W^V$ are full;
# - the *input* is cut: head $i$ gets numbers $7i$ to $7i + 6$ of each token, and has three matrices of its own, 7 by 7. $W^O$ is full.
#
# > **Predict.** Add 1 to number 0 of every token. How many heads notice, in each of the two? And how much of the output?
#
# Take 7 random tokens in float64, and call moved what moves by more than $10^{-9}$.
#
# - `projected`: how many heads have a map of weights that moves, when the projection is cut;
# - `sliced`: the same when the input is cut;
# - `output`: how many of the 35 columns of the output move, when the input is cut;
# - `parameters`: how many the layer has when the projection is cut;
# - `fewer`: how many it has when the input is cut.
#
# Then say `why`, in a sentence or two, someone who wants to save parameters should not cut the input, although $W^O$ mixes all heads in the
# end. No program can judge that sentence. Compare it with the worked solution.

# %%
# Measure here.

# %%
slices = {
    "projected": None,
    "sliced": None,
    "output": None,
    "parameters": None,
    "fewer": None,
    "why": "",
}

# %%
check("06-slice", slices)

# %% [markdown]
# ## Where you stand
#
# Run `progress()` in a new cell. What is left is a good place to start next time.
#
# Back to [chapter 06](../06_split_and_merge.ipynb).
