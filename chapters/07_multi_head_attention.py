# %% [markdown] slideshow={"slide_type": "slide"}
# # Build multi-head attention
#
# **You will build** a class of two dozen lines that computes multi-head attention, equals PyTorch's, and runs a pretrained encoder.
#
# **You will be able to**
#
# - write the class from memory and say the shape after every line,
# - show that it is right against three witnesses: a loop over heads, PyTorch's function and PyTorch's module,
# - explain why $d_k = d_\text{model}/h$ is a convention and not a law,
# - say what moving $h$ or $d_k$ does to shapes, parameters and accuracy.
#
# **Before you start.** You can write one head with a mask, from chapters [1](01_soft_lookup.ipynb) to [4](04_masks.ipynb) or from
# elsewhere. If you come from [chapter 6](06_split_and_merge.ipynb), run the cells above *The class* and read on there. Reading and
# running takes 50 minutes, typing the class 20 more; the [exercises](exercises/07_multi_head_attention.ipynb) take 30, and an
# optional 20.

# %% slideshow={"slide_type": "skip"}
import torch
from torch import nn
from torch.nn import functional as F

from mha_teach import MultiHeadAttention, costs, masks, models, plots
from mha_teach.widgets import AttentionMap, Heads
from mha_teach.workspace import artifact

_ = torch.manual_seed(0)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Where does a head look?
#
# A pretrained encoder reads a sentence, cut into *tokens*, in six layers of twelve *heads*. Each head decides for every token how much it
# looks at every other. Here three of them read *The cat sat on the mat because it was tired*. Which word would you look at from *it*?

# %% slideshow={"slide_type": "subslide"}
encoder = models.load_minilm_or_stand_in()
reading = encoder.encode(["The cat sat on the mat because it was tired."])
tokens = reading.tokens[0]

chosen = [(0, 2), (1, 8), (3, 1)]                 # (layer, head), counted from 0
maps = [reading.traces[layer].weights[0, head] for layer, head in chosen]
plots.show(
    plots.attention_maps(maps, tokens, [f"layer {a}, head {b}" for a, b in chosen]),
    alt="Three attention maps of one sentence. In the first, every token looks at the "
    "token before it; in the second, mostly at the token after it; in the third, each "
    "'the' looks at the noun after it, 'it' looks at 'cat', and many look at '[CLS]'.",
)

# %% tags=["guard"] slideshow={"slide_type": "skip"}
if encoder.pretrained:
    cat, mat, it = (tokens.index(word) for word in ("cat", "mat", "it"))
    assert maps[0].diagonal(-1).min() > 0.95       # the token before
    assert maps[1].diagonal(1)[1:-1].mean() > 0.5  # the token after
    assert maps[2][cat - 1].argmax() == cat and maps[2][it].argmax() == cat
    assert 0.35 < maps[2][mat - 1, mat] < 0.5 < maps[2][cat - 1, cat]

# %% [markdown] slideshow={"slide_type": "subslide"}
# A row is a token that asks, the *query*, a column one that is looked at, the *key*. Every row sums to one. `[CLS]` and `[SEP]`
# mark the ends of the sentence.
#
# The first head looks at the token before, the second mostly at the token after. The third depends on the words: each *the* looks
# at its noun and *it* at *cat*; much of the rest goes to `[CLS]`.
#
# One head gives one map. How can a layer compute twelve at once?

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What does it compute?
#
# A query says what a token looks for, a key what it offers, a *value* what it hands over. The dot product of a query and a key is
# large where they fit; softmax turns each row into shares that sum to one; the output mixes the values in these shares. With the
# tokens as rows of $X$, each head does this with three matrices of its own:
#
# $$ \mathrm{head}_i = \operatorname{softmax}\!\left(\frac{(X W_i^Q)(X W_i^K)^\top}{\sqrt{d_k}}\right) X W_i^V,
# \qquad i = 1, \ldots, h \tag{1} $$
#
# The heads stand side by side, and one more matrix brings them back to the width of the tokens:
#
# $$ \operatorname{MultiHead}(X) = \big[\, \mathrm{head}_1 \;\cdots\; \mathrm{head}_h \,\big]\, W^O \tag{2} $$
#
# That makes four steps: project, split, attend, merge. We take them on a batch of 2 sentences of 5 tokens.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Project and split
#
# The $h$ matrices $W_i^Q$ have $d_k$ columns each. Side by side they are one matrix with $h \cdot d_k$ columns, and one linear map serves
# all heads: `nn.Linear`, a matrix and a bias.
#
# > **Predict.** `q_proj(x)` has shape (2, 5, 12). Every head needs its own 5 × 4 matrix, for each sentence. Which shape do we
# > want? And is `reshape` to that shape the right cut? To see it, we also cut a tensor in which every number says which token
# > it belongs to.

# %% tags=["S0-14", "S1-9"] slideshow={"slide_type": "subslide"}
batch, n, d_model, h, d_k = 2, 5, 12, 3, 4
x = torch.randn(batch, n, d_model)
q_proj, k_proj, v_proj, out_proj = (nn.Linear(d_model, d_model) for _ in range(4))

def split(t):                                     # (batch, n, h * d_k)
    return t.unflatten(-1, (h, d_k)).transpose(1, 2)

q, k, v = split(q_proj(x)), split(k_proj(x)), split(v_proj(x))
assert q.shape == k.shape == v.shape == (batch, h, n, d_k)

token = torch.arange(n)[:, None].expand(1, n, d_model)
print("tokens in head 0, split:  ", split(token)[0, 0, :, 0].tolist())
print("tokens in head 0, reshape:", token.reshape(1, h, n, d_k)[0, 0, :, 0].tolist())

# %% [markdown] slideshow={"slide_type": "fragment"}
# `split` cuts the last axis in three and moves the head beside the batch: row $i$ of each head comes from token $i$. A plain
# `reshape` gives the same shape and the wrong numbers: it deals them out as they lie in memory, and head 0 gets all of token 0, two
# thirds of token 1, and nothing of the others.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ### Attend and merge
#
# `@` multiplies the last two axes and treats the others as a stack; `k.mT` swaps the last two.
#
# > **Predict.** Scores, weights, head outputs: which of the three hold $n \times n$ numbers per head? Along which axis must the
# > weights sum to one?

# %% slideshow={"slide_type": "subslide"}
scores = q @ k.mT / d_k**0.5
weights = scores.softmax(dim=-1)                  # over the keys
head_outputs = weights @ v
assert scores.shape == weights.shape == (batch, h, n, n)
assert head_outputs.shape == (batch, h, n, d_k)
assert torch.allclose(weights.sum(dim=-1), torch.ones(batch, h, n))

merged = head_outputs.transpose(1, 2).flatten(2)  # undo the split
output = out_proj(merged)
assert merged.shape == (batch, n, h * d_k) and output.shape == (batch, n, d_model)

# %% [markdown] slideshow={"slide_type": "fragment"}
# Scores and weights hold $n \times n$ numbers for each head, and a row of weights, over the keys, sums to one. Until `out_proj` no head
# meets another: there what they bring is added up.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## The class
#
# The four steps make one class, `MyMultiHeadAttention(d_model, h)`. It holds `q_proj`, `k_proj`, `v_proj` and `out_proj` and has
# two methods, `split` and `merge`; its `forward(x, mask=None)` returns output and weights. An `nn.Module` holds the layers that its
# `__init__` makes after calling `super().__init__()`. A mask says who may look at whom, and True means *may attend*. Where it is
# False, `scores.masked_fill(~mask, float("-inf"))` makes the score $-\infty$, and softmax the weight 0.
#
# The next cell is folded. Run it without opening it. Then add a cell below it and type the class, under the same name: yours takes its
# place, and all that follows tests yours.

# %% tags=["solution"] slideshow={"slide_type": "subslide"}
class MyMultiHeadAttention(nn.Module):
    def __init__(self, d_model, h):
        super().__init__()
        self.h, self.d_k = h, d_model // h
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, t):                           # to (batch, h, n, d_k)
        return t.unflatten(-1, (self.h, self.d_k)).transpose(1, 2)

    def merge(self, t):                           # to (batch, n, h * d_k)
        return t.transpose(1, 2).flatten(2)

    def forward(self, x, mask=None):
        q = self.split(self.q_proj(x))
        k = self.split(self.k_proj(x))
        v = self.split(self.v_proj(x))
        scores = q @ k.mT / self.d_k**0.5         # (batch, h, n, n)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))  # softmax: 0
        weights = scores.softmax(dim=-1)
        return self.out_proj(self.merge(weights @ v)), weights

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Is it right?
#
# The shapes are right, but so was that of the `reshape`. We call three witnesses.
#
# The first is equation (1), one head at a time. Head $i$ owns $d_k$ rows of each `weight`: rows, because `nn.Linear` stores its
# matrix transposed. The second is `F.scaled_dot_product_attention`, which starts after the split and never shows its map.

# %% tags=["S0-6", "S1-4", "S1-10", "S1-34"] slideshow={"slide_type": "subslide"}
mine = MyMultiHeadAttention(d_model, h)
output, weights = mine(x)
projections = (mine.q_proj, mine.k_proj, mine.v_proj)

looped = []
for i in range(h):
    rows = slice(i * d_k, (i + 1) * d_k)
    # F.linear(x, w, b) is x @ w.T + b
    q, k, v = (F.linear(x, p.weight[rows], p.bias[rows]) for p in projections)
    looped.append((q @ k.mT / d_k**0.5).softmax(dim=-1) @ v)
assert torch.allclose(mine.out_proj(torch.cat(looped, dim=-1)), output, atol=1e-6)

fused = F.scaled_dot_product_attention(*(mine.split(p(x)) for p in projections))
assert torch.allclose(mine.out_proj(mine.merge(fused)), output, atol=1e-6)
print("loop, function and class agree")

# %% [markdown] slideshow={"slide_type": "fragment"}
# The third is `nn.MultiheadAttention`. It stacks the matrices of queries, keys and values in one; `from_torch` takes them apart and
# `to_torch` puts them back. Three of its defaults matter:
#
# - its boolean mask says the opposite of ours, True means *may not attend*, hence the `~`;
# - it averages the maps of all heads, unless told not to;
# - it expects (n, batch, d_model), unless `batch_first=True`.
#
# > **Predict.** What would happen if you forgot the `~`? Would anything tell you?

# %% tags=["S1-11"] slideshow={"slide_type": "subslide"}
theirs = nn.MultiheadAttention(d_model, h, batch_first=True)
ours = MultiHeadAttention.from_torch(theirs)
mine.load_state_dict(ours.state_dict())           # the same four names

causal = masks.causal(n).tensor()                 # nobody sees later tokens
output, weights = mine(x, causal)
their_output, their_weights = theirs(
    x, x, x, attn_mask=~causal, average_attn_weights=False
)
assert torch.allclose(output, their_output, atol=1e-6)
assert torch.allclose(weights, their_weights, atol=1e-6)
assert torch.equal(ours.to_torch().in_proj_weight, theirs.in_proj_weight)

for asked in (True, False):
    forgotten, _ = theirs(x, x, x, attn_mask=causal, need_weights=asked)
    assert forgotten.shape == output.shape
    nan = forgotten[0].isnan().any(dim=-1).tolist()
    print(f"need_weights={asked!s:5}  token is nan: {nan}")

# %% tags=["guard"] slideshow={"slide_type": "skip"}
nobody = torch.zeros(n, n, dtype=torch.bool)
assert torch.allclose(ours(x, mask=nobody), ours.out_proj.bias.expand_as(output))

# %% [markdown] slideshow={"slide_type": "subslide"}
# No error, and the same shape. Every token but the last now sees only its future. The last may look at nobody, and the average of
# nothing is not a number. With `need_weights=False` the module here calls PyTorch's function, which takes zero weights there: even
# that sign is gone ([not always](04_masks.ipynb#what-if-nobody-is-left)). A comparison tells, as above, or another last token: no
# output before it may move.
#
# `ours` is the book's own class. It takes your four steps and adds checked arguments, free widths, keys and values shared by several heads,
# and zero weights where a query may look at nobody and yours may give nan. Its `trace` returns every intermediate; its `forward` returns
# the output alone and leaves the step *attend* to PyTorch's function. Open [attention.py](../mha_teach/attention.py) and find the four
# steps in `trace` and `_project`: checks, shared keys, dropout (in training, some weights are set to 0 at random) and gate ([chapter
# 8](08_heads_add_up.ipynb)) are new.
#
# Here are four layouts with six heads, shapes for one sentence. In the last, three heads share each key head and its value head.

# %% tags=["S1-5"] slideshow={"slide_type": "subslide"}
layouts = {
    "as usual": {},
    "narrow heads": {"d_k": 1},
    "wide values": {"d_v": 7},
    "shared keys": {"num_kv_heads": 2},
}
for name, sizes in layouts.items():
    module = MultiHeadAttention(d_model, 6, **sizes)
    trace = module.trace(x, mask=causal)
    assert torch.allclose(module(x, mask=causal), trace.output, atol=1e-6)
    q, k, out = (tuple(t[0].shape) for t in (trace.q, trace.k, trace.head_outputs))
    print(f"{name:12}  q {q}  k {k}  head_outputs {out}")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Must $d_k$ be $d_\text{model}/h$?
#
# > **Predict.** A model of width 512 wants 12 heads. 512/12 is not a whole number. Is that the end?

# %% slideshow={"slide_type": "subslide"}
try:
    MultiHeadAttention(512, 12)
except ValueError as error:
    print(error)
print(MultiHeadAttention(512, 12, d_k=64).out_proj)

# %% tags=["S1-8", "guard"] slideshow={"slide_type": "skip"}
projected = torch.arange(64)[:, None].expand(64, 512)
assert [n for n in range(1, 64) if n * 512 % (12 * 42) == 0] == [63]
recut = projected[:63].reshape(-1, 12 * (512 // 12))
assert recut.shape == (64, 504)
assert [row.unique().tolist() for row in recut[:3]] == [[0], [0, 1], [1, 2]]
refusal = ""
try:
    projected.view(-1, 12, 512 // 12)
except RuntimeError as error:
    refusal = str(error)
assert "invalid for input of size" in refusal

# %% [markdown] slideshow={"slide_type": "fragment"}
# Of the default only. In equation (1), $W_i^Q$ takes $d_\text{model}$ numbers to $d_k$, whatever $d_k$ is; in equation (2), $W^O$ takes
# $h \cdot d_v$ numbers back, and $d_v = d_k$ unless you say otherwise. Here 12 heads of width 64 make 768 numbers, and `out_proj` returns
# 512. (Code that rounds down, to `512 // 12 = 42`, fails from deep inside, or cuts 63 tokens into 64 rows in silence:
# $63 \cdot 512 = 64 \cdot 12 \cdot 42$.)
#
# Why then do most models divide? Count the parameters: four matrices with $d_\text{model} \cdot h \cdot d_k$ numbers each, and
# their biases. With $d_k = d_\text{model}/h$ the $h$ cancels. More heads then cost neither parameters nor multiplications; but
# where scores are stored they cost memory, $h \cdot n^2$ numbers.

# %% tags=["S0-9", "S1-19"] slideshow={"slide_type": "subslide"}
for heads in (1, 8, 16, 64):
    divided = costs.parameters(512, heads) / 1e6
    fixed = costs.parameters(512, heads, d_k=64) / 1e6
    assert costs.parameters(512, heads) == costs.parameters(512, 1)
    assert costs.forward_flops(512, heads, 128) == costs.forward_flops(512, 1, 128)
    print(f"h = {heads:2}   d_k = 512/h: {divided:.2f} million   d_k = 64: {fixed:.2f}")

for name, model in costs.published.items():
    if (inner := model.num_heads * model.d_k) != model.d_model:
        print(f"{name}: {model.num_heads} heads of {model.d_k} make {inner},", end=" ")
        print(f"d_model is {model.d_model}")

# %% [markdown] slideshow={"slide_type": "fragment"}
# Three of the 17 models in `costs.published` break the convention. T5-11B spreads tokens of 1024 numbers over 128 heads of width 128,
# sixteen times the width of the token ([Raffel et al., 2020](references.md#raffel-2020)).

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What do $h$ and $d_k$ buy?
#
# Here is the task of [chapter 5](05_why_many_heads.ipynb). Sixteen tokens hold a letter each. One more names two places, and a
# linear map must read both letters, in order, from what its heads bring. For each $h$ and each $d_k$, five small models were
# trained on it ([how](artifacts/heads_grid.md)). Values are 16 wide throughout, so here more heads do cost parameters.
#
# > **Predict.** Which does better: one head of width 16 or two heads of width 4? Two heads of width 4 or four? Then move $h$ and
# > $d_k$ with the arrow keys. A dot is one of the five runs.

# %% slideshow={"slide_type": "subslide"}
grid = artifact("heads_grid.json")
Heads(grid, num_heads=2, d_k=8)

# %% tags=["S0-10", "guard"] slideshow={"slide_type": "skip"}
accuracy = {
    (cell["num_heads"], cell["d_k"]): sum(cell["accuracy"]) / len(cell["accuracy"])
    for cell in grid["cells"].values()
}
assert all(accuracy[1, width] < 0.2 for width in (2, 4, 8, 16))
assert all(accuracy[number, 8] > 0.99 for number in (2, 4, 8))
assert accuracy[1, 4] + 0.2 < accuracy[2, 4] < accuracy[4, 4] - 0.2
assert accuracy[8, 4] > 0.99 > 0.5 > accuracy[8, 2]

# %% [markdown] slideshow={"slide_type": "subslide"}
# One head fails at every width: from its one average a linear map must read both letters, in order ([when it
# cannot](05_why_many_heads.ipynb#is-an-uneven-average-enough)). (If the average is uneven, a small network can; so can a second
# layer.) Two heads of width 8 hardly ever fail. At width 4, number makes up for width: on average two heads beat one of any width,
# four beat two, and eight hardly ever fail. At width 2 eight do no better than four, and the five runs lie far apart. A limit, or a
# lack of patience? After three times the training eight heads of width 2 succeed, and one head still does not
# ([card](artifacts/heads_grid.md)).
#
# In translation, [Vaswani et al. (2017)](references.md#vaswani-2017) kept the cost fixed and moved $h$ from 1 to 32 (Table 3, rows
# A): the best and the worst lie 0.9 apart on a scale of 100 (BLEU), and 8 and 16 heads tie.
#
# In a running notebook, `.live()` gives the same explorer to Python. Move it, and run the next cell. Then set `live.num_heads = 8`
# in your own, and watch.

# %% tags=["widget", "nbval-ignore-output"] slideshow={"slide_type": "subslide"}
live = Heads(grid, num_heads=4, d_k=4).live()
live

# %% slideshow={"slide_type": "subslide"}
live.num_heads, live.d_k

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Can your class run a real encoder?
#
# Each layer of the encoder holds an attention with the four names that your class has, so its parameters fit yours. What else a
# layer does ([chapter 9](09_one_block.ipynb)) is in `finish`.
#
# > **Predict.** Your class has two dozen lines and no training. Six layers deep, how far will its maps be from the encoder's?

# %% slideshow={"slide_type": "subslide"}
mine = MyMultiHeadAttention(encoder.d_model, encoder.num_heads)
x, my_maps = reading.hidden[0], []                # (1, n, 384): words and positions
with torch.no_grad():
    for layer in encoder.layers:
        mine.load_state_dict(layer.attention.state_dict())
        attended, weights = mine(x)
        my_maps.append(weights[0])
        x = layer.finish(x, attended)

their_maps = torch.stack([trace.weights[0] for trace in reading.traces])
difference = (torch.stack(my_maps) - their_maps).abs().max().item()
assert difference < 1e-4
print(f"72 maps, the largest difference {difference:.3f}")

# %% slideshow={"slide_type": "subslide"}
AttentionMap(
    torch.stack(my_maps), tokens, layer=3, head=1, selected_query=tokens.index("it")
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# All 72 heads, computed by your class: it is the same function of the same parameters. Find the three from the beginning.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercises
#
# The [exercise notebook](exercises/07_multi_head_attention.ipynb) has four: predict shapes (●), find the bug in code of the right
# shape (●●), write all of it yourself (●●), and measure what narrow heads lose (●●●).

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# | symbol | code | shape |
# |---|---|---|
# | $X$ | `x` | (batch, n, d_model) |
# | $XW_i^Q,\ XW_i^K$ | `q`, `k` | (batch, num_heads, n, d_k) |
# | $XW_i^V$ | `v` | (batch, num_heads, n, d_v) |
# | $QK^\top/\sqrt{d_k}$ | `scores` | (batch, num_heads, n, n) |
# | softmax of it | `weights` | (batch, num_heads, n, n) |
# | $\mathrm{head}_i$ | `head_outputs` | (batch, num_heads, n, d_v) |
# | $[\,\mathrm{head}_1 \cdots \mathrm{head}_h\,]\,W^O$ | `output` | (batch, n, d_model) |

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Further reading
#
# - [Vaswani et al. (2017)](references.md#vaswani-2017), section 3.2, defines all of this.
# - [Clark et al. (2019)](references.md#clark-2019) look at the heads of BERT the way this chapter began, and count.
# - [Ainslie et al. (2023)](references.md#ainslie-2023) share keys among heads, the last row of our layouts.
