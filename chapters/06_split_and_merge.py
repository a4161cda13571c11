# %% [markdown] slideshow={"slide_type": "slide"}
# # Do heads slice the input?
#
# **You will build** `split` and `merge`, two lines that turn a loop over heads into one product, and a table that tells six wrong
# versions of them apart.
#
# **You will be able to**
#
# - say what one head gets of a token, and show it by changing a single number,
# - turn a loop over heads into one matrix product and a split,
# - say where any one number goes in split and merge, and which step moves it in memory,
# - predict when `view` raises, and why its silence proves nothing,
# - name the property that exposes each of six slips of the right shape.
#
# **Before you start.** You know one head: queries, keys, values and the division by $\sqrt{d_k}$ ([chapter
# 3](03_queries_keys_values.ipynb); [chapter 2](02_scaling.ipynb) will do). Why a layer wants several is [chapter
# 5](05_why_many_heads.ipynb). Reading and running takes 40 minutes; the [exercises](exercises/06_split_and_merge.ipynb) take 30,
# and an optional 20.

# %% slideshow={"slide_type": "skip"}
import torch
from torch import nn

from mha_teach import MultiHeadAttention, masks, models, plots

_ = torch.manual_seed(0)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What does a head get of a token?
#
# In a pretrained encoder a token is a list of 384 numbers, and a layer has 12 heads, whose queries are 32 wide. As
# $12 \cdot 32 = 384$, you will often read that the input is cut into heads: numbers 0 to 31 for head 0, the next 32 for head 1, and
# so on.
#
# > **Predict.** Add 1 to number 40 of every token. If the input were cut, which heads would notice? Which do in the encoder?

# %% tags=["S1-2"] slideshow={"slide_type": "subslide"}
encoder = models.load_minilm_or_stand_in().requires_grad_(False)
reading = encoder.encode(["The cat sat on the mat because it was tired."])
attention, x = encoder.layers[3].attention, reading.hidden[3]       # x (1, n, 384)

x_new = x.clone()
x_new[..., 40] += 1
before, after = attention.trace(x).weights, attention.trace(x_new).weights
change = (after - before).abs().amax(dim=(0, 2, 3))                 # of each head's map
assert change.shape == (12,)
print("heads that notice:", (change > 1e-4).sum().item())

# %% tags=["guard"] slideshow={"slide_type": "skip"}
assert (change > 1e-4).all()

# %% [markdown] slideshow={"slide_type": "fragment"}
# All twelve. If the input were cut, head 1 alone would.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Where is the cut?
#
# Behind the *projection*, the product $XW^Q$. The layer multiplies first and then cuts: head 0 takes its first 32 *columns*. What is a
# column of a product made of? With the tokens as rows of $X$,
#
# $$ (XW)_{tj} = \sum_m x_{tm}\, w_{mj} \tag{1} $$
#
# For column $j$ the *whole* token meets one column of $W$. To cut the product is to cut $W$; the input stays in one piece.
#
# > **Predict.** Four tokens of width 6, two heads of width 5. Head 0 is `(x @ w)[:, :5]`. Which is the same, `x @ w[:, :5]` or
# > `x[:, :3] @ w[:3, :5]`? Both have the right shape.

# %% tags=["S0-8", "S1-2", "S1-3"] slideshow={"slide_type": "subslide"}
n, d_model, h, d_k = 4, 6, 2, 5
x, w = torch.randn(n, d_model), torch.randn(d_model, h * d_k)

head_0 = (x @ w)[:, :d_k]
of_half_a_token = x[:, :3] @ w[:3, :d_k]
assert head_0.shape == of_half_a_token.shape == (n, d_k)
assert torch.allclose(head_0, x @ w[:, :d_k], atol=1e-6)
assert not torch.allclose(head_0, of_half_a_token, atol=0.1)

def in_blocks(w):                                 # zero outside each head's block
    columns = w.shape[1] // 2
    return torch.block_diag(w[:3, :columns], w[3:, columns:])

cut_first = torch.cat([of_half_a_token, x[:, 3:] @ w[3:, d_k:]], dim=1)
w_in_blocks = in_blocks(w)
assert torch.allclose(x @ w_in_blocks, cut_first, atol=1e-6)

# %% tags=["figure"] slideshow={"slide_type": "fragment"}
plots.show(
    plots.tables(
        {"$W$": [w, w_in_blocks]},
        ["the projection is cut", "the input is cut"],
        [f"number {m}" for m in range(d_model)],
    ),
    alt="Two tables with 6 rows, the numbers of a token, and 10 columns. On the left "
    "all 60 entries are in use. On the right only two blocks are: numbers 0 to 2 reach "
    "columns 0 to 4, numbers 3 to 5 reach columns 5 to 9; the rest is zero.",
)

# %% tags=["guard"] slideshow={"slide_type": "skip"}
assert in_blocks(w).count_nonzero() == 30 and w.count_nonzero() == 60

# %% [markdown] slideshow={"slide_type": "subslide"}
# The first. To cut the input is to set $W$ to zero outside the blocks: half of it with two heads, eleven twelfths with twelve. That
# saves parameters and makes each head deaf: number 4 never reaches head 0.
#
# **Heads slice the projection, not the input.**

# %% [markdown] slideshow={"slide_type": "slide"}
# ## How do many heads become one product?
#
# In the formula each head has three matrices of its own, and $W^O$ leads what they find back to $d_\text{model}$:
#
# $$ \begin{aligned}
# \mathrm{head}_i &= \operatorname{softmax}\!\left(\frac{(XW_i^Q)(XW_i^K)^\top}{\sqrt{d_k}}\right) XW_i^V \\
# \mathrm{output} &= \big[\, \mathrm{head}_1 \;\cdots\; \mathrm{head}_h \,\big]\, W^O
# \end{aligned} \tag{2} $$
#
# (Formulas count heads from 1, code and names such as *head 1* from 0.) A loop writes it down as it stands. We take 3 sentences at once,
# and values wider than keys.

# %% tags=["S0-6", "S0-8"] slideshow={"slide_type": "subslide"}
def attend(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:                          # True: may attend
        scores = scores.masked_fill(~mask, float("-inf"))           # weight 0
    return scores.softmax(dim=-1) @ v

batch, d_v = 3, 7
x = torch.randn(batch, n, d_model)
widths = (d_k, d_k, d_v)                          # of W^Q, W^K, W^V in one head
heads = [[torch.randn(d_model, width) for width in widths] for _ in range(h)]
w_o = torch.randn(h * d_v, d_model)

looped = torch.cat([attend(*(x @ w for w in head)) for head in heads], dim=-1)
output = looped @ w_o
assert looped.shape == (batch, n, h * d_v) and output.shape == x.shape

# %% [markdown] slideshow={"slide_type": "fragment"}
# $W^O$ takes $h \cdot d_v$ numbers and knows nothing of $d_k$.
#
# > **Predict.** Each head takes three products to project and two to attend; $W^O$ is one more. How many does that make for 12 heads?
# > Would six do?

# %% tags=["S1-10", "S0-14", "S1-9"] slideshow={"slide_type": "subslide"}
all_w_q, all_w_k, all_w_v = zip(*heads, strict=True)
w_q, w_k, w_v = (torch.cat(each, dim=1) for each in (all_w_q, all_w_k, all_w_v))

def split(t, h=2):                                # (…, n, h * width)
    return t.unflatten(-1, (h, -1)).transpose(-3, -2)

def merge(t):                                     # (…, h, n, width)
    return t.transpose(-3, -2).flatten(-2)

q, k, v = split(x @ w_q), split(x @ w_k), split(x @ w_v)
assert w_q.shape == (d_model, h * d_k) and (x @ w_q).shape == (batch, n, h * d_k)
assert q.shape == (batch, h, n, d_k) and v.shape == (batch, h, n, d_v)
assert torch.allclose(merge(attend(q, k, v)), looped, atol=1e-4)
assert torch.equal(merge(v), x @ w_v)             # merge undoes split
print("six products give what the loop gives")

# %% tags=["guard"] slideshow={"slide_type": "skip"}
assert torch.allclose(merge(attend(q, k, v)) @ w_o, output, atol=1e-3)
for i, (own, *_) in enumerate(heads):
    assert torch.allclose(q[:, i], x @ own, atol=1e-5)

# %% [markdown] slideshow={"slide_type": "fragment"}
# For twelve heads $12 \cdot 5 + 1 = 61$, and six for any number of them (larger ones: the multiplications are the same). With the matrices
# of all heads side by side, one product makes the queries of all. `split` cuts its columns and moves the head beside the sentence. (As an
# axis −1 is the last, as a size whatever is left.) Then `@` multiplies the last two axes and takes the others as a stack: $3 \cdot 2$
# tables of scores are one product. `merge` puts the heads side by side again.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Where does one number go?
#
# Two lines, often written wrong. Watch a sentence of 4 tokens whose numbers say where they come from: 27 is token 2, column 7. The
# colour is the token.
#
# With two heads of width 5, column 7 is number 2 of head 1, as $7 = 1 \cdot 5 + 2$. In general
#
# $$ [\,t,\; i \cdot d_k + j\,] \;\xrightarrow{\ \text{unflatten}\ }\; [\,t,\; i,\; j\,] \;\xrightarrow{\ \text{transpose}\ }\;
# [\,i,\; t,\; j\,] \tag{3} $$
#
# > **Predict.** Where is 27 after each of the two steps? And after a plain `reshape(2, 4, 5)`, which has the shape that we want?

# %% tags=["S0-14", "S1-9"] slideshow={"slide_type": "subslide"}
named = torch.arange(40).view(n, h * d_k)
steps = {
    "one sentence": named,
    "unflatten": named.unflatten(-1, (h, d_k)),
    "transpose": split(named),
    "or reshape?": named.reshape(h, n, d_k),
}
assert steps["unflatten"][2, 1, 2] == split(named)[1, 2, 2] == 27

# %% tags=["figure"] slideshow={"slide_type": "fragment"}
plots.show(
    plots.cells(steps, width=10, follow=27),
    alt="40 cells, four colours for four tokens. unflatten breaks each row of ten in "
    "two. transpose makes two blocks; each has one row of every colour, and 27 is in "
    "block 1, row 2. reshape makes two blocks of the same size: the first holds only "
    "two colours, two rows each, and 27 is in block 1, row 1.",
)

# %% tags=["guard"] slideshow={"slide_type": "skip"}
assert steps["or reshape?"][1, 1, 2] == 27
assert steps["or reshape?"].shape == split(named).shape
assert (steps["or reshape?"][0] // 10 < 2).all()
assert (split(named) // 10 == torch.arange(n)[:, None]).all()

# %% [markdown] slideshow={"slide_type": "subslide"}
# The transpose makes a block for each head, and in it one row for each token, in order: what attention needs.
#
# The plain `reshape` hands the numbers out in the order in which they lie: the first block gets tokens 0 and 1, each torn into two
# rows, and never hears of 2 and 3. Everything will run: the product, the softmax, the training.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Which step moves the numbers?
#
# (On a first evening you may skip this section, and with it what the goals say of memory and `view`.) In memory a tensor is one
# long list. Its *strides* say how many places one step along each axis is.
#
# > **Predict.** `named` lies there as 0, 1, …, 39. How many of its 40 numbers does `split` move? And `merge`, once attention has written
# > its result, head by head?

# %% tags=["S0-17"] slideshow={"slide_type": "subslide"}
attended = split(named).contiguous()              # as a product writes it: by heads
tensors = {"named": named, "split": split(named), "attended": attended}
tensors |= {"transposed": attended.transpose(0, 1), "merged": merge(attended)}
for name, t in tensors.items():
    print(f"{name:11} {tuple(t.shape)!s:10}  strides {t.stride()}")
assert split(named).data_ptr() == named.data_ptr()                  # none was moved
assert merge(attended).data_ptr() != attended.data_ptr()            # a new list

# %% [markdown] slideshow={"slide_type": "fragment"}
# `split` moves none. It changes the strides: to the next token it is 10 places, as before, to the next head 5. The transpose in `merge`
# moves none either. But then the heads of a token must be *joined*, and its columns 4 and 5 lie $20 - 4 = 16$ places apart. So `merge`
# copies all 40.
#
# `view` gives the same numbers another shape and never copies; where it would have to, it raises an error. It joins two neighbouring axes
# $a$ and $b$ only if one step along $a$ is as long as the whole of $b$:
#
# $$ \text{stride}_a = \text{size}_b \cdot \text{stride}_b \tag{4} $$
#
# An axis of size 1 does not count: nobody takes a step along it.
#
# > **Predict.** `transposed` has strides (5, 20, 1), and 20 is not $5 \cdot 1$. For which of the sizes (h, n, d_k) below does `view`
# > raise?

# %% tags=["S0-17"] slideshow={"slide_type": "subslide"}
for sizes in ((2, 4, 5), (1, 4, 5), (2, 1, 5)):
    transposed = torch.randn(sizes).transpose(0, 1)
    try:
        transposed.view(len(transposed), -1)
        outcome = "runs"
    except RuntimeError as error:
        outcome = f"raises: {str(error)[:27]} …"
    print(sizes, "view", outcome)
    assert torch.equal(transposed.reshape(len(transposed), -1), transposed.flatten(1))

assert not split(named).is_contiguous()
assert split(named).view(h, 2, 2, d_k).stride() == (5, 20, 10, 1)   # and yet it runs

# %% tags=["guard"] slideshow={"slide_type": "skip"}
named_merged = merge(attended)
assert torch.equal(named_merged, named)
place = {number: i for i, number in enumerate(attended.flatten().tolist())}
assert place[5] - place[4] == 16
empty, guessed = torch.randn(0, n, h * d_k), True
try:
    empty.view(0, -1, h, d_k)
except RuntimeError:
    guessed = False
assert not guessed and split(empty).shape == (0, h, n, d_k)
assert merge(split(empty)).shape == (0, n, h * d_k)

# %% [markdown] slideshow={"slide_type": "fragment"}
# Only for the first. With one head its axis does not count, with one token the strides are (5, 5, 1), and (4) holds. So a test with one
# head or one token sees nothing. You will often read that `view` needs *contiguous* memory, numbers that lie in the order of the axes. It
# needs (4), and that only to join axes: `split(named)` is not contiguous, and still its tokens can be viewed in pairs.
#
# The error is the lucky case. `reshape`, `flatten` and `.contiguous().view(…)` do not raise; where `view` cannot, they copy. But no copy
# makes up for a transpose that is missing. Whoever leaves it out to silence the error gets a merge that undoes the plain `reshape`, not
# `split`.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Equal to the library
#
# We give the module of this book our matrices, transposed, as PyTorch's layer `nn.Linear` keeps them, and a causal mask: no token
# sees a later one.

# %% slideshow={"slide_type": "subslide"}
module = MultiHeadAttention(d_model, h, d_k=d_k, d_v=d_v, bias=False)
ours = {"q_proj": w_q, "k_proj": w_k, "v_proj": w_v, "out_proj": w_o}
module.load_state_dict({f"{name}.weight": w.T for name, w in ours.items()})

causal = masks.causal(n).tensor()                 # spelled out: True and False
trace = module.trace(x, mask=causal)
head_outputs = attend(q, k, v, causal)
assert torch.allclose(trace.q, q, atol=1e-5) and torch.allclose(trace.v, v, atol=1e-5)
assert torch.allclose(trace.head_outputs, head_outputs, atol=1e-4)
assert torch.allclose(trace.output, merge(head_outputs) @ w_o, atol=1e-3)
assert torch.equal(module.split_heads(x @ w_q, h), split(x @ w_q))
assert torch.equal(module.merge_heads(head_outputs), merge(head_outputs))

# %% [markdown] slideshow={"slide_type": "fragment"}
# PyTorch's module stacks the three projections in one tensor, `in_proj_weight`. A head owns a few rows of each third: rows, because
# of the transpose.

# %% slideshow={"slide_type": "subslide"}
theirs = nn.MultiheadAttention(d_model, h, bias=False, batch_first=True)
thirds = theirs.in_proj_weight.chunk(3)           # W^Q, W^K, W^V, each (6, 6)
width = d_model // h
rows = [slice(i * width, (i + 1) * width) for i in range(h)]
found = [attend(*(x @ third[own].T for third in thirds)) for own in rows]
by_rows = torch.cat(found, dim=-1) @ theirs.out_proj.weight.T
assert torch.allclose(by_rows, theirs(x, x, x)[0], atol=1e-6)
print("our lines, the book's module and PyTorch's agree")

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Common slips: six of the right shape
#
# Three wrong splits, one with a merge to match, and a wrong merge. Most of them have been found in [public
# code](references.md#split-issues).

# %% slideshow={"slide_type": "subslide"}
def recut(t, h=2):                                # split without the transpose
    return t.reshape(*t.shape[:-2], h, t.shape[-2], -1)

def deal(t, h=2):                                 # head i takes every h-th column
    return t.unflatten(-1, (-1, h)).movedim(-1, -3)

def collect(t):                                   # undoes deal
    return t.movedim(-3, -1).flatten(-2)

def join(t):                                      # merge without the transpose
    return t.reshape(*t.shape[:-3], t.shape[-2], -1)

def swap(t, h=2):                                 # heads first, read sentences first
    return split(t, h).transpose(0, 1).reshape(split(t, h).shape)

# %% slideshow={"slide_type": "subslide"}
pictures = {
    "split": split(named),
    "deal": deal(named),
    "split, then join": join(split(named)),
}
plots.show(
    plots.cells(pictures, width=10, follow=27),
    alt="The right split. Then deal: each block has one row of every colour, but every "
    "second column. Then join: its first row holds columns 0 to 4 of two tokens.",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# `recut` is the `reshape` that you have seen. `deal` gives a head the wrong columns. `join` fills the row of one token with what
# one head found for two. `swap` takes some rows from another sentence.
#
# `recut` and `join` together are the fifth, and to cut the input is the sixth. Five questions, beside the shape, whose answers we know
# beforehand:
#
# - *back*: does merge undo split?
# - *token*: token 2 changes. Does row 2 of each head's queries change, and no other?
# - *sentence*: sentence 0 changes. Do the outputs of the others stay?
# - *feature*: number 0 of the tokens changes. Does every head notice?
# - *loop*: is the output that of the loop over heads?
#
# > **Predict.** Which questions does `recut`, with the right merge, get wrong? And which slip passes all but the loop?

# %% slideshow={"slide_type": "subslide"}
def moved(f, place):                              # along all axes but the last
    x_new = x.clone()
    x_new[place] += 1
    return (f(x_new) - f(x)).abs().amax(dim=-1) > 1e-4

def checks(split, merge, weights):                # each question, and: does it hold?
    def queries(x):                               # (batch, h, n, d_k)
        return split(x @ weights[0])

    def run(x):
        return merge(attend(*(split(x @ w) for w in weights))) @ w_o

    only_row_2 = torch.arange(n) == 2
    yield "shape", run(x).shape == (batch, n, d_model)
    yield "back", torch.equal(merge(split(x @ w_v)), x @ w_v)
    yield "token", (moved(queries, (slice(None), 2)) == only_row_2).all()  # x[:, 2]
    yield "sentence", not moved(run, 0)[1:].any()
    yield "feature", moved(queries, (..., 0)).any(dim=2).all()
    yield "loop", torch.allclose(run(x), output, atol=1e-3)

# %% slideshow={"slide_type": "subslide"}
right, sliced = (w_q, w_k, w_v), [in_blocks(w) for w in (w_q, w_k, w_v)]
suspects = {
    "split, merge": (split, merge, right),
    "recut, merge": (recut, merge, right),
    "split, join": (split, join, right),
    "recut, join": (recut, join, right),
    "deal, collect": (deal, collect, right),
    "swap, merge": (swap, merge, right),
    "input cut": (split, merge, sliced),
}
for name, suspect in suspects.items():
    exposed_by = [question for question, holds in checks(*suspect) if not holds]
    print(f"{name:14} exposed by: {', '.join(exposed_by) or 'nothing'}")

# %% tags=["guard"] slideshow={"slide_type": "skip"}
t = x @ w_q
few = t[:, :1]                                    # one token
assert torch.equal(recut(few), split(few)) and torch.equal(join(split(few)), few)
assert torch.equal(swap(t[:1]), split(t[:1]))     # one sentence
assert not torch.equal(deal(t[:1, :1]), split(t[:1, :1]))
assert all(torch.equal(wrong(t, 1), split(t, 1)) for wrong in (recut, deal, swap))
assert torch.equal(join(split(t, 1)), t)          # one head
dealt = [w.unflatten(1, (h, -1)).transpose(1, 2).flatten(1) for w in right]
dealt_w_o = w_o.unflatten(0, (h, -1)).transpose(0, 1).flatten(0, 1)
relabelled = collect(attend(*(deal(x @ w) for w in dealt))) @ dealt_w_o
assert torch.allclose(relabelled, output, atol=1e-3)

# %% [markdown] slideshow={"slide_type": "subslide"}
# The shape exposes none, and each slip leaves marks of its own. `recut` tears tokens, so *token* fails; it leaves sentences whole. The
# right merge does not undo it, and *back* fails, too; `join` does, and *back* holds.
#
# `deal` passes all but the loop. In a model trained with it, it is no slip: that is the right one with its columns in another
# order. It is one as soon as the matrices come from elsewhere.
#
# The loop exposes all six, but does not say where to look, and misses a mistake that you make in both. And sizes decide: with one
# token `recut` and `join` are right, with one sentence `swap`, with one head all six are. Take sizes above one, all different. More
# slips hang in the [bug museum](bug_museum.ipynb).

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercises
#
# The [exercise notebook](exercises/06_split_and_merge.ipynb) has five: follow one number (●), find a bug that one sentence does not
# show (●●), write `split` and `merge` (●● each), and measure what cutting the input costs (●●●).

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# | symbol | code | shape |
# |---|---|---|
# | $X$ | `x` | (batch, n, d_model) |
# | $W_1^Q \cdots W_h^Q$ | `w_q` | (d_model, h · d_k) |
# | $W_1^V \cdots W_h^V$ | `w_v` | (d_model, h · d_v) |
# | $Q_i$ of all heads | `split(x @ w_q)` | (batch, h, n, d_k) |
# | $\mathrm{head}_i$ of all heads | `attend(q, k, v)` | (batch, h, n, d_v) |
# | $[\,\mathrm{head}_1 \cdots \mathrm{head}_h\,]$ | `merge(attend(q, k, v))` | (batch, n, h · d_v) |
# | $W^O$ | `w_o` | (h · d_v, d_model) |

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Further reading
#
# - [Vaswani et al. (2017)](references.md#vaswani-2017), section 3.2.2: every head projects from the full $d_\text{model}$.
# - [PyTorch on `view`](references.md#torch-view) states condition (4).
# - [Public issues](references.md#split-issues) show the slips of this chapter in code that many had read; in one of them a training test
#   had passed all the same.
