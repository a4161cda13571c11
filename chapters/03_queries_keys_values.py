# %% [markdown]
# # Why does a token need three vectors?
#
# **You will build** one head from three matrices, the three of a pretrained encoder, and see what each decides.
#
# **You will be able to**
#
# - say what a head loses when one matrix makes both queries and keys,
# - tell which matrices decide *who* looks at whom, and which *what* is handed over,
# - predict every shape when one sentence asks another, and what shuffling the tokens does,
# - name a question with a known answer that exposes each of four slips of the right shape.
#
# **Before you start.** [Chapter 1](01_soft_lookup.ipynb) has scores, softmax over the keys and the weighted mean, [chapter
# 2](02_scaling.ipynb) the division by $\sqrt{d_k}$. Reading and running takes 40 minutes; the
# [exercises](exercises/03_queries_keys_values.ipynb) take 30, and an optional 20.

# %%
import torch
from torch.nn import functional as F

from mha_teach import MultiHeadAttention, models, plots
from mha_teach.widgets import AttentionMap

_ = torch.manual_seed(0)

# %% [markdown]
# ## Must a high score be mutual?
#
# A pretrained encoder reads *The cat sat on the mat because it was tired*. Each of its layers has twelve heads: attentions side by
# side, each with matrices of its own. Here are the scores of one head, before softmax: rows are the tokens that ask, columns those
# asked. (The dark column is `[CLS]`, of which more below.)
#
# > **Predict.** The second *the* gives a high score to *mat*, its noun. A score is a dot product, and $a \cdot b = b \cdot a$. Must
# > *mat* return it?

# %%
encoder = models.load_minilm_or_stand_in().requires_grad_(False)   # no training here
reading = encoder.encode(["The cat sat on the mat because it was tired."])
tokens, trained = reading.tokens[0], reading.traces[3]     # layer 3, counted from 0
head, d_k = 1, 32

theirs = trained.scores[0, head]                  # (n_q, n_k), of sentence 0

# %% tags=["figure"]
plots.show(
    plots.tables(
        {"scores (query, key)": [theirs]}, ["layer 3, head 1"], tokens, columns=tokens
    ),
    alt="The scores of one head, purple above 0 and orange below. Each 'the' scores "
    "the noun after it high, the second one above 3, and so does 'it' the 'cat'. Back, "
    "'mat' scores 'the' near 0, 'cat' scores 'it' below 1. Most rows are highest at "
    "'[CLS]'.",
)

# %% tags=["guard"]
if encoder.pretrained:
    cat, mat, it = (tokens.index(word) for word in ("cat", "mat", "it"))
    assert theirs[mat - 1, mat] > 3 > 0.5 > theirs[mat, mat - 1].abs()
    assert theirs[it, cat] > 3 > 1 > theirs[cat, it]
    assert theirs[cat - 1, cat] > theirs[cat, cat - 1] + 2

# %% [markdown]
# It need not. *the* scores *mat* above 3, and *mat* scores *the* near 0. So it is not the tokens themselves that are multiplied. One
# matrix makes of each token a *query*: what it asks for. A second makes a *key*: what it can be asked for. With token $i$ as a row $x_i$,
#
# $$ q_i = x_i W^Q, \qquad k_j = x_j W^K, \qquad s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} \tag{1} $$
#
# In $s_{ji}$ the two have changed roles, and two other vectors meet.
#
# Both matrices lie open in the encoder, each in an `nn.Linear`, PyTorch's layer for $y = x W^\top + b$: its `weight` is our matrix
# transposed, its `bias` a constant vector, which formulas leave out. One `weight` holds the $W^Q$ of all twelve heads, 32 rows for
# each.

# %%
attention = encoder.layers[3].attention
own = slice(head * d_k, (head + 1) * d_k)         # the rows of this head
(w_q, b_q), (w_k, b_k), (w_v, b_v) = (
    (proj.weight[own].T, proj.bias[own])
    for proj in (attention.q_proj, attention.k_proj, attention.v_proj)
)
x = reading.hidden[3][0]                          # (n, 384): what enters the layer
q = x @ w_q + b_q
k = x @ w_k + b_k
scores = q @ k.mT / d_k**0.5
assert w_q.shape == w_k.shape == (384, 32)
assert q.shape == k.shape == (len(tokens), 32)
assert torch.allclose(scores, theirs, atol=1e-4)
print("the encoder's own scores, in three lines")

# %% [markdown]
# ## What if one matrix does both?
#
# > **Predict.** Let $W^Q$ make the keys as well. What becomes of the table of scores? Of that of weights? Whom does *the* look at now?

# %%
tied = q @ q.mT / d_k**0.5                        # W^Q makes the keys, too
weights, tied_weights = scores.softmax(dim=-1), tied.softmax(dim=-1)

# %% tags=["figure"]
plots.show(
    plots.tables(
        {
            "scores (query, key)": [scores, tied],
            "weights (query, key)": [weights, tied_weights],
        },
        ["as trained", "tied"],
        tokens,
        columns=tokens,
    ),
    alt="Four tables. The trained head's scores are not symmetric. The tied scores "
    "are mirrored at the diagonal, which holds the largest number; the tied weights "
    "are not mirrored, and both 'the' look mostly at themselves.",
)

# %% tags=["guard"]
assert torch.allclose(tied, tied.mT, atol=1e-4)
assert not torch.allclose(scores, scores.mT, atol=0.1)
assert not torch.allclose(tied_weights, tied_weights.mT, atol=1e-3)
to_itself = tied.diagonal()
assert (2 * tied <= to_itself[:, None] + to_itself + 1e-4).all()
assert (tied.max() - to_itself.max()).abs() < 1e-4
if encoder.pretrained:
    assert tied_weights[cat - 1, cat] < 0.1
    assert tied_weights[cat - 1, cat - 1] > 0.8 < tied_weights[mat - 1, mat - 1]
    assert torch.equal(tied.argmax(dim=-1), torch.arange(len(tokens)))

# %% [markdown]
# The tied scores are mirrored at the diagonal: $s_{ij} = q_i \cdot q_j / \sqrt{d_k} = s_{ji}$. Every score is returned.
#
# The weights are *not* mirrored: softmax divides each row by a sum of its own. Where you read that tying makes "the attention map"
# symmetric, scores are meant.
#
# And *the* has lost its noun: like every token here, it scores itself highest. For at least one it had to be so:
#
# $$ 2\, q_i \cdot q_j = |q_i|^2 + |q_j|^2 - |q_i - q_j|^2 \le |q_i|^2 + |q_j|^2 \tag{2} $$
#
# The score between two tokens is never above the mean of the scores that they give themselves. So the largest score of the table
# lies on the diagonal.
#
# Is a tied head useless? No. [Kitaev et al. (2020)](references.md#kitaev-2020) made queries and keys from one matrix, with keys of
# length 1 (so scores are not symmetric) and no look at oneself while there is another to look at, and report no loss. But a second
# matrix buys the freedom not to return a score.
#
# ## What does a token hand over?
#
# Queries and keys settle the weights. The weighted mean of what? If it were the keys, one vector would have two jobs: to be found
# by the right queries, and to carry what they need. In a dictionary you find an entry by its word and take away its definition. So
# a third matrix makes a *value*, and the output mixes values by the weights $a_{ij}$:
#
# $$ v_j = x_j W^V, \qquad \mathrm{output}_i = \sum_j a_{ij}\, v_j \tag{3} $$
#
# > **Predict.** We change one matrix of our head at a time: double $W^V$ (and its bias); shuffle the rows of $W^V$; shuffle the rows of
# > $W^K$. In which of the three does the map of weights change? In which does the output?

# %%
def attend(q, k, v):
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return weights @ v, weights

v = x @ w_v + b_v
mixed_up = torch.randperm(len(w_v))               # row numbers in random order
variants = {
    "as trained": attend(q, k, v),
    "$W^V$ doubled": attend(q, k, 2 * v),
    "$W^V$ shuffled": attend(q, k, x @ w_v[mixed_up] + b_v),
    "$W^K$ shuffled": attend(q, x @ w_k[mixed_up] + b_k, v),
}
outputs, maps = zip(*variants.values(), strict=True)      # four of each

# %% tags=["figure"]
plots.show(
    plots.tables(
        {"weights (query, key)": maps, "output (query, $d_v$ = 32)": outputs},
        list(variants),
        tokens,
        columns=tokens,
    ),
    alt="Weights and output of the head as trained and with one matrix changed. "
    "With W^V doubled or shuffled the weights stay and the output changes; with W^K "
    "shuffled both change. As trained, the output rows of [CLS], cat, mat and tired "
    "are almost blank.",
)

# %% tags=["guard"]
assert torch.allclose(outputs[0], trained.head_outputs[0, head], atol=1e-4)
assert torch.equal(maps[0], maps[1]) and torch.equal(maps[0], maps[2])
assert torch.allclose(outputs[1], 2 * outputs[0], atol=1e-5)
assert not torch.allclose(outputs[2], outputs[0], atol=1e-3)
assert not torch.allclose(maps[3], maps[0], atol=1e-3)
if encoder.pretrained:
    size = torch.linalg.vector_norm(v, dim=-1)    # of each value
    assert 10 * size[0] < size[1:].min()
    size = torch.linalg.vector_norm(outputs[0], dim=-1)
    blank = [0, cat, mat, tokens.index("tired")]
    assert 6 * size[blank].max() < size[cat - 1]
    assert weights[blank, 0].min() > 0.7

# %% [markdown]
# A new $W^V$ changes the output and not a digit of the map. A new $W^K$ changes the map, so other tokens are mixed. **$W^Q$
# and $W^K$ decide who looks at whom, $W^V$ decides what is handed over.**
#
# So a map alone cannot tell you what a head passes on. Look at the output as trained: the rows of `[CLS]`, *cat*, *mat* and *tired* are
# almost blank. These tokens give most of their weight to `[CLS]`, whose value is less than a tenth as long as any other.
#
# ## Which sizes must agree?
#
# In *self-attention* the tokens ask each other. In *cross-attention* the queries come from tokens $X$, keys and values from other
# tokens, the context $C$:
#
# $$ Q = X W^Q, \qquad K = C W^K, \qquad V = C W^V \tag{4} $$
#
# Self-attention is the case $C = X$. The code serves a batch as well: `@`, `.mT` and softmax act on the last axes, and axes in
# front of those are a stack.

# %%
def one_head(x, context, w_q, w_k, w_v):
    q, k, v = x @ w_q, context @ w_k, context @ w_v
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return weights @ v, weights

# %% [markdown]
# > **Predict.** Three tokens of width 11 ask five tokens of width 13. Queries are 2 wide, values 7. Write down the shapes of the three
# > matrices, of the weights and of the output.

# %%
n_q, n_k, d_model, d_context, d_k, d_v = 3, 5, 11, 13, 2, 7
x, context = torch.randn(n_q, d_model), torch.randn(n_k, d_context)
w_q, w_k = torch.randn(d_model, d_k), torch.randn(d_context, d_k)
w_v = torch.randn(d_context, d_v)

output, weights = one_head(x, context, w_q, w_k, w_v)
named = {"w_q": w_q, "w_k": w_k, "w_v": w_v, "weights": weights, "output": output}
print(*(f"{name} {tuple(t.shape)}" for name, t in named.items()), sep="   ")

# %% tags=["guard"]
assert w_q.shape == (d_model, d_k) and w_k.shape == (d_context, d_k)
assert w_v.shape == (d_context, d_v)
assert weights.shape == (n_q, n_k) and output.shape == (n_q, d_v)

# %% [markdown]
# $$ \operatorname{softmax}\Big(\underbrace{Q}_{n_q \times d_k}\; \underbrace{K^\top}_{d_k \times n_k} \big/ \sqrt{d_k}\,\Big)\;
# \underbrace{V}_{n_k \times d_v} \;=\; \underbrace{\text{output}}_{n_q \times d_v} \tag{5} $$
#
# Queries and keys share $d_k$: they meet in a dot product. Keys and values share $n_k$: each weight that a key gets multiplies the value of
# the same token. The two outer sizes are free: as many queries, and values as wide, as you like.
#
# Now with real sentences and the same head: *She gave it to him* asks *The woman found a ring for her brother*.
#
# > **Predict.** Which token of the second sentence should the query *it* look at, and which the query *to*? Decide before you run.

# %%
asking = encoder.encode(["She gave it to him."])
asked = encoder.encode(["The woman found a ring for her brother."])
cross = attention.trace(asking.hidden[3], asked.hidden[3])
AttentionMap(
    cross.weights[0, head],
    asking.tokens[0],
    key_tokens=asked.tokens[0],
    title="Whom does one sentence ask in another?",
    selected_query=asking.tokens[0].index("she"),
)

# %% tags=["guard"]
crossed, rows, columns = cross.weights[0, head], asking.tokens[0], asked.tokens[0]
assert crossed.shape == (len(rows), len(columns)) == (8, 11)
if encoder.pretrained:
    ring, brother = columns.index("ring"), columns.index("brother")
    assert crossed[rows.index("it")].argmax() == ring
    assert crossed[rows.index("gave"), ring] > 0.5
    assert crossed[rows.index("to")].argmax() == brother
    assert crossed[rows.index("she"), 0] > 0.8 and crossed[rows.index("him"), 0] > 0.8

# %% [markdown]
# *gave* and *it* look at *ring*, *to* at *brother*; *she* and *him* find nobody and look at `[CLS]`. One pair of sentences proves nothing
# about the head; but the arithmetic never asks where keys come from.
#
# ## Does order matter?
#
# *The dog bit the man* is no news. *The man bit the dog* is: the same tokens, in another order. Does a head notice the order of those
# that it asks?
#
# > **Predict.** Back to three tokens that ask five. Does the output change if the five are shuffled? And if only their keys are?

# %%
order = torch.tensor([3, 0, 4, 1, 2])
shuffled, _ = one_head(x, context[order], w_q, w_k, w_v)
q, k, v = x @ w_q, context @ w_k, context @ w_v
apart, _ = attend(q, k[order], v)

for what, got in {"keys and values": shuffled, "keys alone": apart}.items():
    same = torch.allclose(got, output, atol=1e-5)
    print(f"shuffled {what:16} the same output: {same}")

# %% tags=["S0-29", "guard"]
assert torch.allclose(shuffled, output, atol=1e-5)
assert not torch.allclose(apart, output, atol=1e-2)

def _is_shuffled_along(mask=None):                # self-attention, the whole layer
    before, moved = reading.hidden[3], torch.arange(len(tokens)).roll(3)
    before, after = (
        attention.trace(each, mask=mask) for each in (before, before[:, moved])
    )
    maps_agree = torch.allclose(
        after.weights, before.weights[..., moved, :][..., moved], atol=1e-4
    )
    outputs_agree = torch.allclose(after.output, before.output[:, moved], atol=1e-4)
    assert maps_agree == outputs_agree
    return outputs_agree

assert _is_shuffled_along()
_past = torch.ones(len(tokens), len(tokens)).tril().bool()    # nobody sees later ones
assert not _is_shuffled_along(_past)

# %% [markdown]
# A key and its value belong together, like a name and a telephone number. Shuffle the names alone, and you reach strangers. Shuffle
# both, and nothing happens: a sum over $j$ forgets the order of its terms.
#
# In self-attention the tokens that ask are shuffled along, and so are the outputs; nothing else changes. To attention alone a sentence
# is a bag of words. Positions change that ([chapter 9](09_one_block.ipynb)). So does a mask that hides from each token what comes after
# it, as in the [next chapter](04_masks.ipynb): language models with it stay competitive without positions
# ([Haviv et al., 2022](references.md#haviv-2022)).
#
# ## Equal to the library
#
# The book's module `MultiHeadAttention` makes random matrices of its own, each in an `nn.Linear`. `load_state_dict` puts ours in their
# place, transposed; `trace` returns every intermediate result.

# %% tags=["S0-8"]
assert torch.allclose(F.scaled_dot_product_attention(q, k, v), output, atol=1e-5)

module = MultiHeadAttention(
    d_model, num_heads=1, d_k=d_k, d_v=d_v, d_context=d_context, bias=False
)
for proj, w in ((module.q_proj, w_q), (module.k_proj, w_k), (module.v_proj, w_v)):
    proj.load_state_dict({"weight": w.T})
trace = module.trace(x, context)
assert torch.allclose(trace.weights[0], weights, atol=1e-6)     # [0]: its one head
assert torch.allclose(trace.head_outputs[0], output, atol=1e-5)
assert module.out_proj.weight.T.shape == (d_v, d_model)         # W^O
print("own lines, PyTorch and module agree")

# %% [markdown]
# A fourth matrix, $W^O$, from $d_v$ back to $d_\text{model}$, makes the `output` of a trace out of its `head_outputs`; see
# [chapter 7](07_multi_head_attention.ipynb).
#
# ## Common slips
#
# Here are four ways to write it wrong. With as many queries as keys and $d_v = d_k$ all of them run and return the right shape.

# %%
def through_w_k(x, context, w_q, w_k, w_v):       # the keys are handed over
    return one_head(x, context, w_q, w_k, w_k)

def transposed(x, context, w_q, w_k, w_v):        # a row belongs to a key
    scores = (context @ w_k) @ (x @ w_q).mT / w_q.shape[1] ** 0.5
    weights = scores.softmax(dim=-1)
    return weights @ (context @ w_v), weights

def over_queries(x, context, w_q, w_k, w_v):      # columns sum to one
    scores = (x @ w_q) @ (context @ w_k).mT / w_q.shape[1] ** 0.5
    weights = scores.softmax(dim=-2)
    return weights @ (context @ w_v), weights

def one_length(x, context, w_q, w_k, w_v):        # n_q where n_k is meant
    return one_head(x, context[: len(x)], w_q, w_k, w_v)

# %% [markdown]
# A question whose answer you know in advance exposes them. Double $W^V$, for example, and the output must double. Here are five.

# %%
x, context = torch.randn(2, 5, d_model)           # five tokens each
w_q, w_k, w_v = torch.randn(3, d_model, d_k)      # d_v = d_k
x_new = x.clone()
x_new[2] = 0                                      # token 2 asks something else

def checks(f):
    output, weights = f(x, context, w_q, w_k, w_v)
    yield "its shape", output.shape == (5, d_k)
    yield "row sums", torch.allclose(weights.sum(dim=-1), torch.ones(5))
    louder, _ = f(x, context, w_q, w_k, 2 * w_v)
    yield "W^V doubled", torch.allclose(louder, 2 * output)
    new, _ = f(x_new, context, w_q, w_k, w_v)
    rows = ((new - output).abs() > 1e-5).any(dim=-1).nonzero().flatten()
    yield "one query changed", rows.tolist() == [2]
    yield "3 queries, 5 keys", f(x[:3], context, w_q, w_k, w_v)[1].shape == (3, 5)

# %% [markdown]
# > **Predict.** They are asked in this order. Which is the first to expose each of the four slips?

# %%
for f in (one_head, through_w_k, transposed, over_queries, one_length):
    exposed_by = next((name for name, holds in checks(f) if not holds), "nothing")
    print(f"{f.__name__:13} exposed by: {exposed_by}")

# %% [markdown]
# The shape exposes none. The first slip never reads $W^V$. In the second a row belongs to a key, so one new query changes every
# row. In the third, columns sum to one. The last drops two of five keys without a word, until you look at the shape of the
# *weights*. Try sizes that differ first.
#
# ## Exercises
#
# The [exercise notebook](exercises/03_queries_keys_values.ipynb) has four: predict shapes (●), find a bug (●●), write attention (●●),
# measure how symmetric a head is (●●●).
#
# ## Summary
#
# | symbol | code | shape |
# |---|---|---|
# | $X$, $C$ | `x`, `context` | (n_q, d_model), (n_k, d_context) |
# | $W^Q$ | `w_q` | (d_model, d_k) |
# | $W^K$, $W^V$ | `w_k`, `w_v` | (d_context, d_k), (d_context, d_v) |
# | $Q = XW^Q$ | `q` | (n_q, d_k) |
# | $K = CW^K$, $V = CW^V$ | `k`, `v` | (n_k, d_k), (n_k, d_v) |
# | $S = QK^\top/\sqrt{d_k}$, $A = \operatorname{softmax}(S)$ | `scores`, `weights` | (n_q, n_k) |
# | $AV$ | `output` | (n_q, d_v) |
#
# ## Further reading
#
# - [Vaswani et al. (2017)](references.md#vaswani-2017), section 3.2.3, name three places where queries and keys come from.
# - [Elhage et al. (2021)](references.md#elhage-2021) treat who looks at whom and what moves as two separate circuits.
# - [Kobayashi et al. (2020)](references.md#kobayashi-2020) weigh each weight by the length of the value that it multiplies.
