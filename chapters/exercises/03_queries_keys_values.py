# %% [markdown]
# # Exercises: queries, keys and values
#
# Four exercises for [chapter 03](../03_queries_keys_values.ipynb), 30 minutes and an optional 20:
#
# | | exercise | what you practise | minutes | points |
# |---|---|---|---|---|
# | ● | `03-shapes` | predict every shape when one sentence asks another | 5 | 2 |
# | ●● | `03-bug` | find a bug that has the right shape, and passes a test | 10 | 2 |
# | ●● | `03-attention` | write attention yourself, for any number of axes | 15 | 4 |
# | ●●● | `03-symmetry` | measure how symmetric a head is, and say why (optional) | 20 | 4 |
#
# Half of the points of an exercise go by the share of its properties that hold, the other half is earned if all of them do.
#
# Each one is a statement, a place to write, and a check. The check names what holds and what does not, and asks you a
# question. Run it as often as you like. A function that you write returns what is asked for, and leaves what it was given as it was.
#
# - `hint("03-attention")` gives the next of a few hints.
# - `solution("03-attention")` shows a worked solution, after your first attempt.
#   They are also [on one page](03_queries_keys_values_solutions.md).
# - `progress()` lists what you have passed. It is kept on your machine and sent nowhere.

# %%
import torch

from mha_teach import models, scaled_dot_product_attention
from mha_teach.exercises import check, hint, progress, solution

_ = torch.manual_seed(3)

# %% [markdown]
# ## ● Two sentences, seven sizes
#
# Thirteen pairs of sentences, stacked on the first axis: `@`, `.mT` and softmax act on the last axes and treat those in front as a stack.
# In each pair, 7 tokens of width 20 ask 3 tokens of width 12. Queries are 2 wide, values 11. There is one head and no $W^O$:
#
# ```python
# x, context = torch.randn(13, 7, 20), torch.randn(13, 3, 12)
# q, k, v = x @ w_q, context @ w_k, context @ w_v
# weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
# output = weights @ v
# ```
#
# > **Predict.** Fill in, without running it: the shapes of `w_k`, `v`, `weights` and `output` as tuples; and the `total` that you get
# > when you add up all numbers in `weights`.

# %%
shapes = {
    "w_k": None,
    "v": None,
    "weights": None,
    "output": None,
    "total": None,
}

# %%
check("03-shapes", shapes)

# %% [markdown]
# ## ●● The wrong sentence asks
#
# Someone had self-attention and wanted cross-attention: the tokens of `x` ask, those of `context` are asked. The new function was
# tested by letting a sentence ask itself, and it agreed with the library to the last digit. Then it was used.


# %%
def cross(x, context, w_q, w_k, w_v):
    """Let the tokens of x ask the tokens of context, with one head."""
    q, k, v = context @ w_q, x @ w_k, context @ w_v
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return weights @ v


# %% [markdown]
# Here is the test, and then two different sentences that happen to be equally long:

# %%
x, context = torch.randn(2, 4, 5, 8)              # (batch, n, d_model) each
w_q, w_k, w_v = torch.randn(3, 8, 6)

for name, other in {"a sentence and itself": x, "two sentences": context}.items():
    expected = scaled_dot_product_attention(x @ w_q, other @ w_k, other @ w_v).output
    output = cross(x, other, w_q, w_k, w_v)
    print(name)
    print("same shape: ", output.shape == expected.shape)
    print("same output:", torch.allclose(output, expected, atol=1e-5))

# %% [markdown]
# One line is wrong. Find it, mend it in the cell above, and run both cells again. Then check: it tries inputs that the
# cell above does not.
#
# > **Predict.** Before you change anything: what would you change in the *test*, so that it could not have passed?

# %%
check("03-bug", cross)

# %% [markdown]
# ## ●● Attention in your own words
#
# $$ \operatorname{Attention}(Q, K, V) = \operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right) V $$
#
# Write it. It is the function you will meet in every later chapter.
#
# | argument | shape | what it is |
# |---|---|---|
# | `q` | `(…, n_q, d_k)` | the queries |
# | `k` | `(…, n_k, d_k)` | the keys |
# | `v` | `(…, n_k, d_v)` | the values |
#
# Return two tensors, the output `(…, n_q, d_v)` first and the weights `(…, n_q, n_k)` second. The dots stand for the same axes in all
# three: none, a batch, or more. Do not count on $n_q = n_k$, nor on $d_v = d_k$. There is no mask.


# %%
def attention(q, k, v):
    return None


# %%
check("03-attention", attention)

# %% [markdown]
# ## ●●● How symmetric is a head?
#
# With $W^K = W^Q$ a table of scores is symmetric; with two matrices it need not be. How far from symmetric is it? Split the table in a
# part that is mirrored at the diagonal and a part that changes its sign there, and take the mirrored part's share of the squares:
#
# $$ \text{symmetry} = \frac{\sum_{ij} \big( (s_{ij} + s_{ji}) / 2 \big)^2}{\sum_{ij} s_{ij}^2} $$
#
# It is 1 if $s_{ij} = s_{ji}$ for every pair, and 0 if $s_{ij} = -s_{ji}$ for every pair.
#
# > **Predict.** What is it for $W^K = W^Q$, for $W^K = -W^Q$, and for two matrices that know nothing of each other?
#
# Take 48 random tokens of width 64, $d_k = 4$, and a few hundred heads with random matrices (`torch.randn(200, 64, 4)` holds 200 at
# once). Measure the scores, before softmax:
#
# - `tied`: with $W^K = W^Q$;
# - `opposite`: with $W^K = -W^Q$;
# - `turned`: with keys that are queries turned by a quarter, so that $q = (a, b, c, d)$ goes with $k = (c, d, -a, -b)$;
# - `random`: with $W^K$ drawn apart from $W^Q$; the mean over all heads, to one decimal.
#
# Then say `why`, in a sentence or two: what can a head with two matrices do that a head with one cannot? No program can judge that
# sentence. Compare it with the worked solution.

# %%
# Measure here.

# %%
symmetry = {
    "tied": None,
    "opposite": None,
    "turned": None,
    "random": None,
    "why": "",
}

# %%
check("03-symmetry", symmetry)

# %% [markdown]
# Would you like to know it of trained heads? Here are the scores of all 72 heads of an encoder, on a sentence of yours. Are they more
# symmetric than random heads on the same tokens, less, or neither? Compare a few sentences before you decide. The worked solution says
# what we found.

# %%
encoder = models.load_minilm_or_stand_in()
reading = encoder.encode(["The woman found a ring for her brother."])
scores = torch.stack([trace.scores[0] for trace in reading.traces])
print("layer, head, query, key:", tuple(scores.shape))

# %% tags=["guard"]
def _check_what_the_solution_says(sentence):
    def symmetry(scores):
        mirrored = (scores + scores.mT) / 2
        return mirrored.square().sum((-2, -1)) / scores.square().sum((-2, -1))

    reading = encoder.encode([sentence])
    trained = symmetry(torch.stack([trace.scores[0] for trace in reading.traces]))
    x = torch.stack(reading.hidden[:6])           # what enters each layer
    w_q, w_k = torch.randn(2, 6, 200, 384, 32)
    by_chance = symmetry((x @ w_q) @ (x @ w_k).mT)
    assert trained.min() > 0.2 and trained.max() < 0.95
    assert abs(trained.mean() - by_chance.mean()) < 0.03

if encoder.pretrained:
    _check_what_the_solution_says("The woman found a ring for her brother.")
    _check_what_the_solution_says("The dog bit the man.")

# %% [markdown]
# ## Where you stand
#
# Run `progress()` in a new cell. What is left is a good place to start next time.
#
# Back to [chapter 03](../03_queries_keys_values.ipynb).
