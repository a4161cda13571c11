# %% [markdown]
# # How do you look up something that is not there?
#
# **You will build** `soft_lookup`: three lines that answer a question with a weighted average. They are the core of attention.
#
# **You will be able to**
#
# - compute by hand what one query gets: scores, weights, output,
# - say what the temperature does, and where no output can lie,
# - explain why the nearest key need not win, and when it must,
# - predict the shapes for many queries, and along which axis softmax runs.
#
# **Before you start.** You need Python, a little linear algebra, and of PyTorch tensors, shapes and `@`. Nothing about attention.
# Symbols are in the [notation](notation.md). Reading and running takes 40 minutes; the
# [exercises](exercises/01_soft_lookup.ipynb) take 30, and an optional 20.

# %%
import torch
from torch.nn import functional as F

from mha_teach import models, plots, scaled_dot_product_attention
from mha_teach.widgets import OneQuery

_ = torch.manual_seed(0)

# %% [markdown]
# ## What does a baguette cost?
#
# A café has a menu. In Python that is a dictionary: it holds *keys*, what you can order, and for each key a *value*, the price.
#
# > **Predict.** What does it answer when you ask for a baguette? What would you answer?

# %%
menu = {"coffee": 3, "tea": 2, "juice": 4, "soup": 6, "bread": 1, "cake": 5}
try:
    print(menu["baguette"])
except KeyError as error:
    print("KeyError:", error)

# %% [markdown]
# A dictionary looks for an equal key. Either there is one, or there is no answer.
#
# You would say: about 1, as a baguette is a kind of bread. You compared the *query*, what was asked for, with every key, and the best
# fit decided. Can a program do that?
#
# ## How well do two words fit?
#
# A program compares numbers. A pretrained *encoder* has read much text, and turns a word into a list of 384 numbers, a *vector*.
# Words of similar use get vectors of similar direction; each has length 1.
#
# To compare two vectors, multiply them entry by entry and add up. This is their *dot product*:
#
# $$ q \cdot k = q_1 k_1 + q_2 k_2 + \cdots + q_{d_k} k_{d_k} $$
#
# where $d_k$ is their width, here 384. For vectors of length 1 it is 1 if they point the same way, 0 at a right angle, and negative beyond.
# `keys @ query` computes it for all $n_k = 6$ keys at once.
#
# > **Predict.** Which key fits *baguette* best, and which comes second? Is any fit zero?

# %%
encoder = models.load_minilm_or_stand_in()
keys = encoder.embed(list(menu))                  # (n_k, d_k), a row for each key
query = encoder.embed(["baguette"])[0]            # (d_k,)
scores = keys @ query                             # (n_k,)
assert keys.shape == (6, 384) and query.shape == (384,) and scores.shape == (6,)
for i, name in enumerate(menu):
    print(f"{name:7} {scores[i]:.2f}")

# %% tags=["guard"]
coffee, tea, juice, soup, bread, cake = range(6)
assert torch.allclose(torch.linalg.vector_norm(keys, dim=-1), torch.ones(6))
if encoder.pretrained:
    assert scores.argsort(descending=True)[:2].tolist() == [bread, cake]
    assert scores.min() > 0.1

# %% [markdown]
# *bread* fits best, *cake* comes second, and no fit is zero. Such a number is a *score*. (Where the encoder is not installed, one with
# random parameters gives other numbers.)
#
# ## How does a score become a share?
#
# We want an average of the six prices in which a key that fits counts for more. So each key needs a positive share, and the shares
# must sum to one. A score may be negative, but $e^s$ is positive, and grows with $s$. Divide by the sum of all. The two steps
# together are *softmax*, the shares *weights*:
#
# $$ a_j = \frac{e^{s_j}}{e^{s_1} + e^{s_2} + \cdots + e^{s_{n_k}}} $$
#
# > **Predict.** *bread* scores 0.52, *juice* 0.13. Will *bread* get nearly everything, about half, or about a fifth?

# %%
powers = scores.exp()
weights = powers / powers.sum()
for i, name in enumerate(menu):
    print(f"{name:7} {weights[i]:.2f}")

assert torch.allclose(weights, scores.softmax(dim=0))    # along the only axis
assert (weights > 0).all() and torch.allclose(weights.sum(), torch.tensor(1.0))

# %% [markdown]
# A fifth, hardly more than an even share, 0.17. Softmax turns a *difference* of scores into a *ratio* of weights: *bread* and
# *juice* differ by 0.39, so *bread* gets $e^{0.39} \approx 1.5$ times as much.
#
# Larger ratios need larger differences. So divide all scores by a small number first, the *temperature* $T$: with $T = 0.1$ the two
# differ by 3.9, and $e^{3.9}$ is about 50.

# %%
prices = torch.tensor(list(menu.values()), dtype=torch.float)
bread = list(menu).index("bread")
print(f"plain mean of the prices: {prices.mean():.1f}")
for temperature in (1, 0.1):
    scores = keys @ query / temperature
    weights = scores.softmax(dim=0)
    price = weights @ prices                      # a dot product again
    print(f"T = {temperature:3}   bread gets {weights[bread]:.2f}   answer {price:.1f}")

# %% tags=["guard"]
ratio = weights[bread] / weights[juice]
assert torch.allclose((scores[bread] - scores[juice]).exp(), ratio)
if encoder.pretrained:
    gap = (keys @ query)[bread] - (keys @ query)[juice]
    assert 0.385 < gap < 0.395 and 45 < (10 * gap).exp() < 55
    assert 0.7 < weights[bread] < 0.74 and 1.8 < price < 2.0
    extra = weights * (prices - 1)
    assert extra.argsort(descending=True)[:2].tolist() == [cake, soup]
    assert weights.argsort(descending=True)[:2].tolist() == [bread, cake]

# %% [markdown]
# At $T = 1$ the answer is close to the plain mean. At 0.1 *bread* gets almost three quarters, and the answer drops to 1.9, not to
# 1: small shares of *cake* and *soup*, the dearest, still count.
#
# ## Three steps
#
# That was attention: scores, weights made of them, and with these an average of the values, the *output*:
#
# $$ s_j = \frac{q \cdot k_j}{T}, \qquad a = \operatorname{softmax}(s), \qquad \mathrm{output} = \sum_{j=1}^{n_k} a_j\, v_j
# \tag{1} $$
#
# From here on the division by $T$ belongs to the score. And a value may be a vector: the price and the minutes you wait, so its width
# is $d_v = 2$.
#
# > **Predict.** Which of the three steps changes with the new values? Soup takes longest, 8 minutes. Can any query get 9?

# %%
minutes = torch.tensor([4.0, 3.0, 1.0, 8.0, 0.0, 2.0])
values = torch.stack([prices, minutes], dim=1)    # two columns: (n_k, d_v)

scores = keys @ query / 0.1                       # (n_k,)
weights = scores.softmax(dim=0)                   # (n_k,)
output = weights @ values                         # (d_v,)
assert values.shape == (6, 2) and output.shape == (2,)
print(f"price {output[0]:.1f}, minutes {output[1]:.1f}")

# %% tags=["guard"]
assert (values.amin(dim=0) <= output).all() and (output <= values.amax(dim=0)).all()

# %% [markdown]
# Only the third: scores and weights come from query and keys. And no query gets 9 minutes: in each column an average lies between
# the smallest value and the largest.
#
# ## What does the temperature do?
#
# Here are the weights for *baguette*, from a cold look-up, small $T$, to a hot one, in the order of the menu.

# %%
temperatures = (0.01, 0.05, 0.1, 0.2, 1, 10)
sweep = torch.stack([(keys @ query / t).softmax(dim=0) for t in temperatures])
plots.show(
    plots.shares(sweep, list(menu), [f"T = {t}" for t in temperatures]),
    alt="Six bars of length one, each cut into the weights of six keys. At temperature "
    "0.01 bread fills the bar; at 0.1 it has almost three quarters; from 1 on all six "
    "pieces are nearly equal.",
)

# %% tags=["guard"]
if encoder.pretrained:
    assert sweep[0, bread] > 0.99 and (sweep[4:] - 1 / 6).abs().max() < 0.05
assert (sweep[5] - 1 / 6).abs().max() < 0.01
assert all(torch.equal(row.argsort(), sweep[2].argsort()) for row in sweep[1:])
cold = (torch.cat([keys, query[None]]) @ keys.mT / 0.0001).softmax(dim=-1)
assert torch.allclose(cold[:-1] @ prices, prices)
assert not encoder.pretrained or torch.allclose(cold[-1] @ prices, prices[bread])

# %% [markdown]
# The hot look-up gives all nearly the same, the cold one nearly everything to the best key. Which key is best does not depend on
# $T$.
#
# Colder still, the dictionary is back: each word on the menu gets its own price, as among vectors of length 1 each fits itself best.
# And *baguette* is answered too, with the price of *bread*.
#
# ## Which key wins, the nearest or the longest?
#
# The encoder's vectors have length 1. Other keys may have any length. Here are four in a plane, as arrows; each value is the tip of its
# arrow. B points the same way as A, and is 2.5 times as long.
#
# > **Predict.** Will A or B get more weight if the query lies exactly on A? Drag it there, to (1, 0.5), or press the arrow keys. Is
# > there a place where A alone gets the most?

# %%
plane = torch.tensor([[1.0, 0.5], [2.5, 1.25], [-0.4, 2.4], [-0.6, -2.2]])
OneQuery(plane, x=-1.0, y=1.5)

# %% tags=["guard"]
seen = OneQuery(plane, x=1.0, y=0.5).look()
assert seen.distances[0] == 0 and 6 < seen.weights[1] / seen.weights[0] < 7
assert torch.equal(plane[1], 2.5 * plane[0])
corners = torch.cat([plane[1:].mT, torch.ones(1, 3)])    # A = αB + βC + γD
assert (torch.linalg.solve(corners, torch.tensor([1.0, 0.5, 1.0])) > 0.1).all()
assert not ((torch.randn(1000, 2) @ plane.mT).argmax(dim=-1) == 0).any()

# %% [markdown]
# With the query on A, B gets over six times as much, although the query *is* A. A dot product is no distance. It is the length of
# the query times that of the key times the cosine of the angle between them. B reaches further in the query's direction.
#
# Nowhere does A alone get the most. It lies inside the triangle of the others, and so is an average of them, say
# $A = \alpha B + \beta C + \gamma D$. Multiply by $q$: its score is the same average of their scores, and no average exceeds the
# largest of its parts. The output, the diamond, is an average too. It never leaves the grey triangle, the *convex hull* of the
# values.
#
# When does the nearest key win? Write $|q|$ for the length of $q$, so $|q|^2 = q \cdot q$, and multiply the squared distance out:
#
# $$ |q - k|^2 = (q - k) \cdot (q - k) = |q|^2 + |k|^2 - 2\, q \cdot k \tag{2} $$
#
# $|q|^2$ is the same for all keys. If the keys have one length, $|k|^2$ is the same, too, and a smaller distance *is* a larger dot
# product.

# %% tags=["guard"]
q, k = torch.randn(1000, 3), F.normalize(torch.randn(7, 3), dim=-1)
assert torch.equal((q @ k.mT).argmax(dim=-1), torch.cdist(q, k).argmin(dim=-1))

# %% [markdown]
# ## Many questions at once
#
# Five guests ask, so there are five queries, stacked as rows.
#
# > **Predict.** Which shapes have scores, weights and output, with six keys and values of width two? Which sums of weights are one:
# > those of the rows, of the columns, or both?

# %%
def soft_lookup(q, k, v, temperature=1.0):
    scores = q @ k.mT / temperature               # .mT swaps the axes of k
    weights = scores.softmax(dim=-1)
    return weights @ v, weights

questions = ["espresso", "lemonade", "baguette", "stew", "Tuesday"]
q, k, v = encoder.embed(questions), keys, values
output, weights = soft_lookup(q, k, v, temperature=0.1)
print("weights", tuple(weights.shape), "  output", tuple(output.shape))

# %% tags=["guard"]
assert weights.shape == (5, 6) and output.shape == (5, 2)
assert torch.allclose(weights.sum(dim=-1), torch.ones(5))
assert not torch.allclose(weights.sum(dim=0), torch.ones(6), atol=0.1)

# %% [markdown]
# Scores and weights are $(n_q, n_k)$, the output is $(n_q, d_v)$: a row for each query. `dim=-1` lets softmax run along the last axis,
# the keys, so the rows sum to one. A column need not: every guest might want coffee, or none.

# %%
plots.show(
    plots.shares(weights, list(menu), questions),
    alt="Five bars of length one. Espresso gives most of its weight to coffee, "
    "lemonade to juice, baguette to bread, stew almost half to soup; Tuesday spreads "
    "its weight over all six keys.",
)

# %% tags=["guard"]
if encoder.pretrained:
    assert weights.argmax(dim=-1)[:4].tolist() == [coffee, juice, bread, soup]
    assert (weights[:3].amax(dim=-1) > 0.6).all() and 0.45 < weights[3, soup] < 0.5
    assert weights[4].max() < 0.25 and weights[4].min() > 0.1
    assert (output[4, 0] - prices.mean()).abs() < 0.3

# %% [markdown]
# Even *soup*, the best key for *stew*, gets less than half of its weight: attention mixes, it does not pick. And nothing on the
# menu is like *Tuesday*, but there is no `KeyError`: the price comes out near the plain mean. A soft look-up cannot say "not
# there".
#
# ## Equal to the library
#
# PyTorch's `F.scaled_dot_product_attention` returns the output, this book's function of that name the weights as well. Both
# multiply by `scale` where we divide by $T$: it is $1/T$.

# %%
theirs = F.scaled_dot_product_attention(q, k, v, scale=1 / 0.1)
ours = scaled_dot_product_attention(q, k, v, scale=1 / 0.1)
assert torch.allclose(output, theirs, atol=1e-5)
assert torch.allclose(output, ours.output, atol=1e-5)
assert torch.allclose(weights, ours.weights, atol=1e-6)
print("own lines, PyTorch and package agree")

# %% [markdown]
# We chose 0.1 by looking at the scores. Leave `scale` out, and both take a temperature that depends on the width $d_k$ alone:
# [chapter 2](02_scaling.ipynb).
#
# ## Why not take the best key and be done?
#
# A *hard* look-up takes the value of the best key, and nothing else.
#
# > **Predict.** Move the query *baguette* a tiny step towards *cake*. Which price moves, the soft one or the hard one?

# %%
def soft(query):
    return (keys @ query / 0.1).softmax(dim=0) @ prices

def hard(query):
    return prices[(keys @ query).argmax()]

query = encoder.embed(["baguette"])[0]
step = 0.001 * keys[-1]                           # cake is the last key
for lookup in (soft, hard):
    change = lookup(query + step) - lookup(query)
    print(f"{lookup.__name__} moves: {change.abs() > 1e-4}")

# %% tags=["guard"]
slow = query.clone().requires_grad_()
soft(slow).backward()
moved = soft(query + step) - soft(query)
assert torch.allclose(slow.grad @ step, moved, rtol=0.05)
paid = prices.clone().requires_grad_()
paid[(keys @ query).argmax()].backward()                  # hard: to one value alone
assert paid.grad.count_nonzero() == 1 and not hard(slow).requires_grad

# %% [markdown]
# Only the soft one. The hard one stays where it is until another key wins, and then jumps.
#
# Why does that matter? How fast the price changes with each entry of the query is its *gradient*. Training takes the gradient of an
# error, and moves each number of a model a small step against it.
#
# A soft look-up passes a gradient to query, keys and values, so all can be learnt. A hard one passes it to the one value that it
# picked: for query and keys it is zero between the jumps.
#
# ## Common slips
#
# > **Predict.** No cake today: five queries, five keys. `wrong` runs softmax along the other axis. Do its rows sum to one?

# %%
scores = encoder.embed(questions) @ keys[:5].mT / 0.1    # (5, 5)
right, wrong = scores.softmax(dim=-1), scores.softmax(dim=0)
assert right.shape == wrong.shape
for name, table in (("right", right), ("wrong", wrong)):
    is_one = torch.allclose(table.sum(dim=-1), torch.ones(5))
    print(f"{name}: rows sum to one: {is_one}")

# %% [markdown]
# **Softmax along the wrong axis.** The columns of `wrong` sum to one, and what a query gets is no average. With as many queries as
# keys no shape shows it; the sums of the rows do.
#
# ## Exercises
#
# The [exercise notebook](exercises/01_soft_lookup.ipynb) has four: predict weights (●), find a bug (●●), write the look-up (●●),
# and measure how often the nearest key wins (●●●).
#
# ## Summary
#
# | symbol | code | shape |
# |---|---|---|
# | $q$ | `q` | (d_k,), (n_q, d_k) |
# | $k_j$, $v_j$ | `k`, `v` | (n_k, d_k), (n_k, d_v) |
# | $T$ | `temperature`, `1 / scale` | a number |
# | $s_j = q \cdot k_j / T$ | `scores` | (n_k,), (n_q, n_k) |
# | $a = \operatorname{softmax}(s)$ | `weights` | (n_k,), (n_q, n_k) |
# | $\sum_j a_j v_j$ | `output` | (d_v,), (n_q, d_v) |
#
# ## Further reading
#
# - [Nadaraya and Watson (1964)](references.md#nadaraya-watson-1964) average known values, weighted by how near they are.
# - [Graves et al. (2014)](references.md#graves-2014) read a memory by softmax over cosines, times a factor that the network
#   emits at each reading.
# - [Bahdanau et al. (2015)](references.md#bahdanau-2015) let a translator look up its source sentence, with scores from a small
#   network.
# - [Miller et al. (2016)](references.md#miller-2016) keep keys and values apart: one vector to be found by, another to be read.
