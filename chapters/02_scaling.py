# %% [markdown]
# # Why divide by a square root?
#
# **You will build** the one division of scaled dot-product attention, and measure what it does to scores, weights and gradients.
#
# **You will be able to**
#
# - predict the spread of a dot product from $d_k$, and say when the prediction fails,
# - read an entropy: how undecided is a row of weights?
# - say what large scores do to the gradient, and at which queries,
# - find a scale that is wrong: of another width, or applied twice.
#
# **Before you start.** You know the dot product and softmax from [chapter 1](01_soft_lookup.ipynb) or [chapter
# 0](00_in_one_sitting.ipynb). You need the mean and the variance of independent numbers, and derivatives in one section that you
# may skip. Reading and running takes 35 minutes; the [exercises](exercises/02_scaling.ipynb) take 30, and an optional 20.

# %%
import math

import torch
from torch.nn import functional as F

from mha_teach import heads, models, plots, scaled_dot_product_attention

_ = torch.manual_seed(0)

# %% [markdown]
# ## One head, three divisors
#
# A pretrained encoder reads a sentence, cut into *tokens*; `[CLS]` and `[SEP]` mark its ends. It works in *layers*, one after the
# other, and in each several *heads* look at the sentence side by side. We take one head, whose queries and keys are $d_k = 32$
# numbers wide, and change one thing: the divisor of their dot products.
#
# > **Predict.** Divide all dot products by one number, and in each row the highest stays the highest. What does change?

# %%
encoder = models.load_minilm_or_stand_in()
reading = encoder.encode(["The cat sat on the mat because it was tired."])
tokens = reading.tokens[0]
trace = reading.traces[3]                         # what layer 3, from 0, computed
q, k = trace.q[0, 1], trace.k[0, 1]               # sentence 0, head 1: (n tokens, 32)
maps = [(q @ k.mT / divisor).softmax(dim=-1) for divisor in (1, 32**0.5, 32)]
titles = ["as they are", r"divided by $\sqrt{32}$", "divided by 32"]

# %% tags=["figure"]
plots.show(
    plots.attention_maps(maps, tokens, titles),
    alt="Three maps of the same head. With the products as they are, most rows are one "
    "dark cell; divided by the square root of 32, weight is shared among a few "
    "keys; divided by 32, every row is nearly even.",
)

# %% tags=["guard"]
if encoder.pretrained:
    cat, it = tokens.index("cat"), tokens.index("it")
    assert all(torch.equal(m.argmax(-1), maps[1].argmax(-1)) for m in maps)
    undivided, divided, flat = (m.amax(-1) for m in maps)
    assert (undivided > 0.9).sum() > len(tokens) / 2 and flat.max() < 0.3
    assert maps[0][it, cat] > 0.9 and 0.4 < maps[1][it, cat] < 0.6
    assert torch.allclose(maps[1], trace.weights[0, 1], atol=1e-5)

# %% [markdown]
# Each row keeps its order, and the shares change. Undivided, *it* gives *cat* nearly everything. Divided by 32, it hardly prefers
# anything. In between lies the map that the encoder was trained with: *it* gives *cat* about half. (The dark column is `[CLS]`:
# [chapter 3](03_queries_keys_values.ipynb) shows that it hands over next to nothing.)
#
# The divisor in the middle comes from a width. What has the width of a query to do with the size of a dot product?
#
# ## How far do dot products spread?
#
# We draw queries and keys at random, and measure the *spread* of their dot products: the standard deviation, the root of the
# *variance*.
#
# > **Predict.** The entries of $q$ and $k$ are independent, with mean 0 and variance 1. From $d_k = 4$ to $d_k = 64$, the spread
# > grows by a factor of 2, 4 or 16.

# %%
for d_k in (4, 16, 64, 256):
    q, k = torch.randn(2, 10_000, d_k)            # 10,000 pairs of a query and a key
    spread = (q * k).sum(dim=-1).std()            # one dot product per pair
    print(f"d_k = {d_k:3}   spread {spread:.0f}")

# %% tags=["guard"]
for d_k in (4, 16, 64, 256):
    q, k = torch.randn(2, 10_000, d_k)
    assert abs((q * k).sum(dim=-1).std() / d_k**0.5 - 1) < 0.05

# %% [markdown]
# Four: from 2 to 8. Why? If $x$ has mean 0, its variance $\operatorname{Var}(x)$ is the mean of $x^2$, written $E[x^2]$. Among
# independent numbers, the mean of a product is the product of the means. So $q_j k_j$ has mean 0, and
# $\operatorname{Var}(q_j k_j) = E[q_j^2 k_j^2] = E[q_j^2]\,E[k_j^2] = 1$. In the square of the sum, products of two different terms have
# mean 0. The squares remain:
#
# $$ \operatorname{Var}(q \cdot k) = \sum_{j=1}^{d_k} \operatorname{Var}(q_j k_j) = d_k \tag{1} $$
#
# The spread is the root of that. So the *score* $q \cdot k / \sqrt{d_k}$ has spread 1, whatever the width.
#
# ## Does a large spread hurt?
#
# Softmax turns differences into ratios: scores that differ by 8 give weights in the ratio $e^8$, about 3000 to 1. A spread of 8 makes
# such differences common.
#
# How undecided is a row of weights? Call $\ln(1/a_j)$ the surprise at key $j$. The *entropy* is the mean surprise, each key counted
# by its weight:
#
# $$ H(a) = \sum_j a_j \ln \frac{1}{a_j} \tag{2} $$
#
# It is 0 if one key has everything, and $\ln n$, the most, if $n$ keys share evenly. The unit is the *nat*. $e^H$ is easier to
# read: a row with $H = \ln 5$ is as undecided as an even choice among five keys.

# %%
q, k = torch.randn(1000, 1, 64), torch.randn(1000, 8, 64)    # q is repeated
scores = (q * k).sum(dim=-1) / 64**0.5            # 1000 queries, 8 keys for each
weights = scores.softmax(dim=-1)
by_hand = (weights * (1 / weights).log()).sum(dim=-1).mean()

assert torch.allclose(by_hand, heads.entropy(weights))
assert 0 < by_hand < math.log(8)
print(f"as undecided as an even choice among {by_hand.exp():.1f} of 8 keys")

# %% [markdown]
# > **Predict.** Eight keys, nothing trained. At $d_k = 4$, 64 and 256: how much does the top key typically get without the
# > division? How much with it?


# %%
def top_weight(scores):                           # the median query's largest weight
    return scores.softmax(dim=-1).amax(dim=-1).median()

for d_k in (4, 64, 256):
    q, k = torch.randn(1000, 1, d_k), torch.randn(1000, 8, d_k)
    dots = (q * k).sum(dim=-1)                    # (query, key)
    for name, s in (("undivided", dots), ("divided  ", dots / d_k**0.5)):
        entropy = heads.entropy(s.softmax(dim=-1))
        print(f"d_k = {d_k:3}   {name}  top {top_weight(s):.2f}  entropy {entropy:.1f}")

# %% tags=["guard"]
assert top_weight(dots) > 0.99
for d_k in (4, 64, 256):
    q, k = torch.randn(1000, 1, d_k), torch.randn(1000, 8, d_k)
    dots = (q * k).sum(dim=-1)
    assert 0.25 < top_weight(dots / d_k**0.5) < 0.40

# %% [markdown]
# Undivided, the top key gets half of the weight at $d_k = 4$ and all of it at 256. (The entropy, a mean over queries, stays above
# 0: at a few two keys score nearly alike.) Divided, it gets a third, whatever $d_k$ is.
#
# ## What becomes of the gradient?
#
# (You may skip this section, and with it the third goal.) Could training not make $q$ and $k$ smaller? It moves $q$ against the
# gradient of a *loss* $L$, one number that says how bad the result is. That gradient comes through weights and scores. First, how
# fast does a weight $a_i$ change with a score? By softmax, $\ln a_i = s_i - \ln(e^{s_1} + \cdots + e^{s_n})$. As $s_j$ grows, the
# last logarithm grows $e^{s_j}/\sum_i e^{s_i}=a_j$ times as fast. And $a_i$ changes $a_i$ times as fast as $\ln a_i$:
#
# $$ \frac{\partial a_i}{\partial s_i} = a_i\,(1-a_i), \qquad \frac{\partial a_i}{\partial s_j} = -a_i\,a_j \text{ if } j\ne i
# \tag{3} $$
#
# With two weights of 0.5 the first rate is 0.25; with 0.999 and 0.001 it is 0.001. Where one weight is 1 and the others 0, all of
# (3) is 0.

# %%
def rates(a):                                     # (3): i counts rows, j columns
    return a.diag() - a[:, None] * a[None, :]     # a as a column, times a as a row

for a in (torch.tensor([0.5, 0.5]), torch.tensor([0.999, 0.001])):
    scores = a.log()                              # scores that have these weights
    derivatives = torch.autograd.functional.jacobian(lambda s: s.softmax(0), scores)
    assert torch.allclose(rates(a), derivatives, atol=1e-6)
    print(f"{rates(a)[0, 0]:.3f}")

# %% [markdown]
# Then from scores to $q$. Write $s_j = c\; q \cdot k_j$, with $c = 1$ or, divided, $c = 1/\sqrt{d_k}$. A step of $q$ moves every
# score, and the effects add up:
#
# $$ \frac{\partial L}{\partial q} = c \sum_j \frac{\partial L}{\partial s_j}\, k_j \tag{4} $$
#
# $L$ sees the scores through the weights alone, so each $\partial L/\partial s_j$ is a sum with factors from (3). Without the division the
# factor $c$ is $\sqrt{d_k}$ times as large, but (3) is often near 0. Which wins?
#
# > **Predict.** Take $d_k = 256$. Without the division, is the gradient at the typical (median) query larger or smaller? And the mean
# > over all queries?


# %%
def gradient_sizes(q, k, c, cost):                # (query,): one length per query
    q = q.detach().clone().requires_grad_()
    weights = ((q * k).sum(dim=-1) * c).softmax(dim=-1)
    loss = (weights * cost).sum()                 # weight on a key costs something
    loss.backward()                               # puts the gradient into q.grad
    return torch.linalg.vector_norm(q.grad, dim=-1).flatten()

q, k = torch.randn(1000, 1, 256), torch.randn(1000, 8, 256)
cost = torch.randn(1000, 8)                       # at random, the same for both
undivided, divided = (gradient_sizes(q, k, c, cost) for c in (1, 256**-0.5))
print(f"median   undivided {undivided.median():.2f}   divided {divided.median():.2f}")
print(f"mean     undivided {undivided.mean():.1f}    divided {divided.mean():.1f}")

# %% tags=["S1-6", "guard"]
assert undivided.median() < 0.1 * divided.median()
assert undivided.mean() > divided.mean()
tops = (q * k).sum(dim=-1).softmax(dim=-1).amax(dim=-1)
large = undivided > undivided.quantile(0.9)
assert tops[large].median() < 0.9 and tops[~large].median() > 0.99
assert undivided[large].sum() > 0.5 * undivided.sum()

# %% [markdown]
# Without the division the median gradient is more than ten times smaller, and the mean is *larger*. At most queries one weight is
# nearly 1, and (3) leaves next to nothing. At a few the best keys score nearly alike: a tenth of the queries has more than half of
# the total.
#
# Here are top weight and gradient from width 4 to 1024.

# %%
def measured(d_k, c, cost):                       # top weight, two gradients
    q, k = torch.randn(1000, 1, d_k), torch.randn(1000, 8, d_k)
    sizes = gradient_sizes(q, k, c, cost)
    return torch.stack([top_weight((q * k).sum(-1) * c), sizes.median(), sizes.mean()])

widths = [2**i for i in range(2, 11)]
undivided = torch.stack([measured(d_k, 1, cost) for d_k in widths], dim=1)
divided = torch.stack([measured(d_k, d_k**-0.5, cost) for d_k in widths], dim=1)
assert undivided.shape == divided.shape == (3, len(widths))

# %%
medians = {"undivided, median": undivided, "divided, median": divided}
tops, sizes = ({name: m[i] for name, m in medians.items()} for i in (0, 1))
sizes["undivided, mean"] = undivided[2]
panels = [
    plots.Panel("weight of the top key of 8", tops),
    plots.Panel("size of the gradient at q", sizes, log=True),
]
alt = """Two panels over d_k from 4 to 1024. Undivided, the median top weight rises from
a half to one, and the median gradient falls from a half to below a thousandth while its
mean stays near one. Divided, both medians are level."""
plots.show(plots.curves(widths, panels, "$d_k$"), alt)

# %% tags=["guard"]
assert (undivided[1, :3] > 1.3 * divided[1, :3]).all() and widths[2] == 16
assert (undivided[1, 4:] < 0.9 * divided[1, 4:]).all() and widths[4] == 64
assert undivided[1, -1] < 1e-3 < 0.2 < divided[1, -1]
assert (undivided[2] > divided[2]).all() and (undivided[2] > 0.4).all()
assert (divided[1].max() / divided[1].min() < 1.5) and (undivided[2] < 1.5).all()
assert 0.4 < undivided[0, 0] < 0.6 and undivided[0, -1] > 0.99

# %% [markdown]
# You will often read that the division prevents vanishing gradients. The right panel is more exact. Up to $d_k = 16$ the median
# gradient is *larger* without the division. From 64 on it is smaller, at 1024 below 0.001. The mean vanishes nowhere. What the
# division buys, at least here, before training, is a median gradient of nearly one size at every width.
#
# ## What the division does not promise
#
# Equation (1) needs mean 0, variance 1 and independence. Training owes us none of them. Before it, in a *fresh* layer of this book,
# the entries of $q$ and $k$ have variance ½: its weights are drawn so that tokens of variance 1 give that. So $q \cdot k$ has
# variance $32 \cdot \frac12 \cdot \frac12 = 8$, and the scores spread $\sqrt{8/32}=\frac12$.
#
# > **Predict.** The encoder has 72 trained heads, 6 layers of 12. Do the scores of most still spread about ½, or less, or more than 1?

# %%
text = """The cat sat on the mat because it was tired. The dog, which had slept all day,
wanted to play, so it pushed the cat with its nose until she woke. Then both ran into
the garden, where the children were eating bread and cheese under the old apple tree."""

def queries_and_keys(encoder):                    # (72 heads, n tokens, 32) each
    traces = encoder.encode([text]).traces
    return torch.cat([t.q[0] for t in traces]), torch.cat([t.k[0] for t in traces])

def size_and_spread(q, k):
    size = (q.square().mean((1, 2)) * k.square().mean((1, 2))).sqrt()
    return size, (q @ k.mT / 32**0.5).flatten(1).std(dim=-1)

# %%
trained = size_and_spread(*queries_and_keys(encoder))
fresh = size_and_spread(*queries_and_keys(models.MiniLM()))  # parameters at random

# %% tags=["figure"]
figure = plots.points(
    {"trained": trained, "fresh": fresh}, "size of the entries", "spread of the scores"
)
figure.axes[0].text(2.6, 2.2, "spread = size", color=plots.QUIET)
plots.show(
    figure,
    alt="72 heads, twice: spread of the scores over size of the entries. Fresh heads "
    "lie in one heap near 0.5, on the diagonal. Trained heads lie above the diagonal, "
    "most of them between 0.7 and 5, and one, far from all others, at 13.",
)

# %% tags=["S1-6", "guard"]
assert (fresh[1] > 0.4).all() and (fresh[1] < 0.6).all()
assert ((fresh[0] - 0.5).abs() < 0.1).all()
assert ((fresh[1] / fresh[0] - 1).abs() < 0.1).all()
if encoder.pretrained:
    q, k = queries_and_keys(encoder)
    size, spread = trained
    assert (spread > size).sum() >= 67 and (size > 0.5).sum() >= 65
    assert (spread > 1).sum() == 63 and (spread > 0.6).sum() == 70
    assert spread.argmax() == 2 and 12 < spread.max() < 14 and (spread > 5).sum() == 1
    previous = encoder.encode([text]).traces[0].weights[0, 2].diagonal(-1)
    assert previous.min() > 0.99

# %% tags=["guard"]
if encoder.pretrained:
    # Height: tr(M_q M_k), second moments that are large in the same directions …
    m_q, m_k = q.mT @ q / q.shape[1], k.mT @ k / k.shape[1]
    height = ((m_q * m_k).sum((1, 2)) / 32).sqrt()
    assert torch.allclose((q @ k.mT).square().mean((1, 2)).div(32).sqrt(), height)
    # … and not in the same entries: their variances alone explain next to nothing.
    entries = (m_q.diagonal(dim1=1, dim2=2) * m_k.diagonal(dim1=1, dim2=2)).sum(-1)
    assert 1 < ((entries / 32).sqrt() / size).median() < 1.05
    assert 1.2 < (spread / size).median() < 1.35
    by_chance = k.gather(-1, torch.rand_like(k).argsort(dim=-1))
    shuffled = size_and_spread(q, by_chance)
    assert ((shuffled[1] / shuffled[0] - 1).abs() < 0.2).all()

# %% [markdown]
# More: 63 of the 72 lie above the level dashed line, at 1. The *size* is the root mean square of the entries of $q$, times that of $k$. By
# (1), spread equals size, the diagonal, if entries are independent with mean 0, and vary alike. Most heads lie above it: their $q$
# and $k$ are large in the same directions.
#
# In the lone head at 13, every token but the first gives more than 99 % of its weight to the token before. The division sets the
# start. How sharp a head becomes is learnt.
#
# ## Common slips
#
# **The other width.** A model with several heads has two: $d_\text{model}$, that of a token, and $d_k$, that of a query in one head,
# mostly $d_\text{model}/h$ for $h$ heads. A dot product adds up $d_k$ products.
#
# > **Predict.** Someone divides by $\sqrt{d_\text{model}}$. Entries have variance 1. How far do the scores spread with 1, 4 and 12
# > heads?

# %%
d_model = 384
for h in (1, 4, 12):
    q, k = torch.randn(2, 10_000, d_model // h)
    spread = ((q * k).sum(dim=-1) / d_model**0.5).std()
    print(f"h = {h:2}   spread {spread:.1f}")

# %% tags=["guard"]
for h in (1, 4, 12):
    q, k = torch.randn(2, 10_000, d_model // h)
    spread = ((q * k).sum(dim=-1) / d_model**0.5).std()
    assert abs(spread * h**0.5 - 1) < 0.05

# %% [markdown]
# It shrinks as $1/\sqrt{h}$. No shape is wrong, nothing fails, and with one head, as in a small test, it is even right.
#
# **"It is for numerical stability."** You will often read this, too. Undivided dot products at $d_k = 1024$ go beyond 100, and
# $e^{100}$ is larger than any float32. But softmax subtracts the largest score of a row first: no weight is off by 0.00001. With the
# 16 bits of *bfloat16* there is some truth in it: some weights are off by 0.02, and divided none by 0.005.

# %% tags=["guard"]
q, k = torch.randn(1000, 1, 1024), torch.randn(1000, 8, 1024)
dots = (q * k).sum(dim=-1)
exact = (q.double() * k.double()).sum(dim=-1)     # in float64
assert dots.max() > 100 and dots.exp().isinf().any()
assert torch.allclose(dots.softmax(-1).double(), exact.softmax(-1), rtol=0, atol=1e-5)

def rounding_error(scores):                       # of the weights, scores in bfloat16
    return (scores.bfloat16().float().softmax(-1) - scores.softmax(-1)).abs().max()

assert rounding_error(dots) > 0.02 and rounding_error(dots / 1024**0.5) < 0.005

# %% [markdown]
# ## Equal to the library
#
# Scores, one division, softmax, a mean of values: that is scaled dot-product attention.

# %%
def attention(q, k, v):
    d_k = q.shape[-1]
    scores = q @ k.mT / d_k**0.5
    weights = scores.softmax(dim=-1)
    return weights @ v, weights

# The axis in front is a stack of two: the same lines compute each by itself.
q, k, v = torch.randn(2, 5, 64), torch.randn(2, 7, 64), torch.randn(2, 7, 11)
output, weights = attention(q, k, v)
assert output.shape == (2, 5, 11) and weights.shape == (2, 5, 7)
ours = scaled_dot_product_attention(q, k, v)
assert torch.allclose(weights, ours.weights, atol=1e-6)
assert torch.allclose(output, F.scaled_dot_product_attention(q, k, v), atol=1e-6)

# %% [markdown]
# PyTorch's function has the division built in. Whoever has divided by hand must say `scale=1.0`.
#
# > **Predict.** And if you forget it? Which of the three maps at the top will yours look like?

# %%
divided = q / 64**0.5
once = F.scaled_dot_product_attention(divided, k, v, scale=1.0)
twice = F.scaled_dot_product_attention(divided, k, v)
print("once: ", torch.allclose(once, output, atol=1e-6))
print("twice:", torch.allclose(twice, output, atol=1e-2))

# %% [markdown]
# No error, and the third map: divided twice is divided by $d_k$.
#
# ## Exercises
#
# The [exercise notebook](exercises/02_scaling.ipynb) has four: predict spreads, find a scale that is right by luck, write the entropy
# of a head, and measure how a fresh layer starts.
#
# ## Summary
#
# | symbol | code | shape; size |
# |---|---|---|
# | $q \cdot k$ | `q @ k.mT` | (…, n_q, n_k); spread grows as $\sqrt{d_k}$ |
# | $q \cdot k/\sqrt{d_k}$ | `scores` | (…, n_q, n_k); the same spread at every width |
# | $H$ | `heads.entropy(weights)` | (…), the mean over queries; from 0 to $\ln n_k$ nats |
#
# ## Further reading
#
# - [Vaswani et al. (2017)](references.md#vaswani-2017), section 3.2.1 and its footnote 4, give the reason as something they
#   *suspect*. You have measured it.
# - [Raffel et al. (2020)](references.md#raffel-2020) do not divide: in T5 the matrix that makes $q$ starts $\sqrt{d_k}$ times
#   smaller.
# - [Yang et al. (2022)](references.md#yang-2022) divide by $d_k$, because $q$ and $k$ come to depend on each other in training.
# - [Henry et al. (2020)](references.md#henry-2020) fix the length of each $q$ and $k$, and learn one factor.
