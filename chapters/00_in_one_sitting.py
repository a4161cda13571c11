# %% [markdown] slideshow={"slide_type": "slide"}
# # Multi-head attention in one sitting
#
# **You will build** one head in six lines, then two side by side, and see one at work on a real sentence.
#
# **You will be able to**
#
# - write one head from memory and say the shape of every line,
# - show what one head cannot do and two can,
# - say what more heads, or wider ones, do to shapes, parameters and accuracy,
# - name five rules of practice, each with a line of code that shows it.
#
# **Before you start.** You need Python and a little linear algebra: a vector, a matrix, their product. Symbols are in the
# [notation](notation.md). Reading and running takes 30 minutes.

# %% slideshow={"slide_type": "skip"}
import torch

from mha_teach import MultiHeadAttention, costs, heads, masks, models, plots
from mha_teach.widgets import Heads
from mha_teach.workspace import artifact

_ = torch.manual_seed(0)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What is *it*?
#
# *The cat sat on the mat because it was tired.* Who was tired? Now let the last word be *soft*. The word *it* is the same and means
# something else: its meaning lies in the words around it.
#
# A model that reads holds a list of numbers, a *vector*, for each piece of the text, its *token*. So the vector of *it* must take something
# over from other tokens. From which, and how much from each? This is what a *pretrained* model, one that has read much text, decides in one
# place, a *head* of one of its layers:

# %% slideshow={"slide_type": "fragment"}
encoder = models.load_minilm_or_stand_in().requires_grad_(False)
sentence = "The cat sat on the mat because it was tired."
reading = encoder.encode([sentence])
tokens = reading.tokens[0]
cat, mat, it = (tokens.index(word) for word in ("cat", "mat", "it"))

tired = reading.traces[3].weights[0, 1, it]       # layer 3, text 0, head 1
plots.show(
    plots.shares(tired[None], tokens, ["it"]),
    alt="One bar, the weights of 'it', cut into a piece for each token. 'cat' has "
    "almost half of it, '[CLS]' a fifth, 'mat' a seventh, every other token little.",
)

# %% tags=["guard"] slideshow={"slide_type": "skip"}
assert torch.allclose(tired.sum(), torch.tensor(1.0))
if encoder.pretrained:
    assert 0.45 < tired[cat] < 0.5 and 0.12 < tired[mat] < 0.16
    assert tired.argsort(descending=True)[:2].tolist() == [cat, 0]

# %% [markdown] slideshow={"slide_type": "subslide"}
# A row of *weights*, none negative, which sum to one. *it* takes almost half of what it gets here from *cat*. (`[CLS]` and `[SEP]`
# mark the ends of the text.) How does such a row arise? (To *soft* we come back.)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## One head in six lines
#
# Take a language of five words, and tokens of 11 numbers: five for the word and six for its place.

# %% slideshow={"slide_type": "subslide"}
vocabulary = ["dog", "cat", "man", "bites", "sees"]
word, place = torch.eye(11).split([5, 6], dim=1)  # (11, 5), (11, 6): each picks a part

def vectors(text):                                # (n, d_model): a row for each token
    which = [vocabulary.index(name) for name in text.split()]
    return word.T[which] + place.T[: len(which)]  # a 1 for the word, a 1 for the place

names, x = ["dog", "bites", "man"], vectors("dog bites man")
assert x.shape == (3, 11) and (x @ word).shape == (3, 5)
plots.show(
    plots.tables(
        {"X": [x @ word, x @ place]}, ["word", "place"], names, columns=vocabulary
    ),
    alt="A table of three rows. In its first five numbers dog, bites and man have a 1 "
    "for words 0, 3 and 2, in its last six for places 0, 1 and 2. The rest is zero.",
)

# %% [markdown] slideshow={"slide_type": "subslide"}
# Every token makes three vectors, each with a matrix. Its *query* says what it looks for, its *key* what it can be found by, its
# *value* what it hands over. The dot product of a query and a key, divided by the root of their width $d_k$, is their *score*:
# large where they fit. ($QK^\top$ holds the dot products of all; why they are divided is [chapter 2](02_scaling.ipynb).) *Softmax*
# makes weights of a row of scores: $e^\text{score}$ of each, divided by their sum. The output is the mean of the values, by these
# weights.
#
# $$ \mathrm{head} = \operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right) V, \qquad Q = XW^Q,\ K = XW^K,\ V = XW^V \tag{1} $$
#
# Let each token look for the place before its own. Keys are the places, values the words; the 20 makes the scores large, so that the
# largest takes nearly all.
#
# > **Predict.** What does *bites* bring home? And *dog*, which has no place before it?

# %% slideshow={"slide_type": "subslide"}
def head(x, w_q, w_k, w_v):                       # x (n, d_model)
    q, k, v = x @ w_q, x @ w_k, x @ w_v           # (n, d_k), (n, d_k), (n, d_v)
    scores = q @ k.mT / k.shape[-1] ** 0.5        # (n, n); .mT: transposed
    weights = scores.softmax(dim=-1)              # a row for each query
    output = weights @ v                          # (n, d_v)
    return output, weights

# a diagonal of ones, one step below the middle: place i asks for place i - 1
one_before = 20 * place @ torch.ones(5).diag(-1)
output, weights = head(x, one_before, place, word)
assert weights.shape == (3, 3) and output.shape == (3, 5)

# %% tags=["figure"] slideshow={"slide_type": "fragment"}
plots.show(
    plots.shares(weights, names, names),
    alt="Three bars. 'dog' gives a third to each token, 'bites' everything to 'dog', "
    "'man' everything to 'bites'.",
)

# %% tags=["guard"] slideshow={"slide_type": "skip"}
assert torch.allclose(weights[0], torch.full((3,), 1 / 3))
assert weights[1, 0] > 0.99 and weights[2, 1] > 0.99
assert output[1].argmax() == vocabulary.index("dog")

# %% [markdown] slideshow={"slide_type": "subslide"}
# *bites* brings home *dog*. The query of *dog* fits no key, so all its scores are 0. But softmax has one whole to give, and gives each a
# third. A head cannot say "nothing".
#
# In a model nobody sets the matrices; they are learnt. All the rest is these six lines. Cover them and write them again, in a cell
# of your own. ([Chapter 1](01_soft_lookup.ipynb) builds them up slowly, [chapter 3](03_queries_keys_values.ipynb) takes query, key
# and value apart.)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Who bites whom?
#
# For that, *bites* must look at both of its neighbours. Let one head ask for both places at once.
#
# > **Predict.** *dog bites man*, *man bites dog*: how do the two outputs for *bites* differ?

# %% slideshow={"slide_type": "subslide"}
one_after = 20 * place @ torch.ones(5).diag(1)
for text in ("dog bites man", "man bites dog"):
    output, _ = head(vectors(text), one_before + one_after, place, word)
    brought = zip(output[1], vocabulary, strict=True)
    print(text, "", *(f"{share:.2f} {name}" for share, name in brought if share > 0.01))

# %% [markdown] slideshow={"slide_type": "subslide"}
# Not at all. Half *dog* and half *man* is half *man* and half *dog*. **One head is one average, and an even average has no order.**
#
# So give each neighbour a head of its own, and lay what they bring side by side. One more matrix leads it back to the width of the tokens:
#
# $$ \mathrm{output} = \big[\, \mathrm{head}_1 \;\cdots\; \mathrm{head}_h \,\big]\, W^O \tag{2} $$

# %% slideshow={"slide_type": "fragment"}
for text in ("dog bites man", "man bites dog"):
    before, _ = head(vectors(text), one_before, place, word)
    after, _ = head(vectors(text), one_after, place, word)
    both = torch.cat([before, after], dim=-1)     # (n, h * d_v), before W^O
    biter, bitten = both[1].unflatten(-1, (2, 5)).argmax(dim=-1)    # 10 = 2 * 5
    print(f"{text}:  {vocabulary[biter]} bites, {vocabulary[bitten]} is bitten")

# %% [markdown] slideshow={"slide_type": "subslide"}
# Two heads tell them apart: the order is kept by *where* a number stands. ([Chapter 5](05_why_many_heads.ipynb) asks what an uneven
# average keeps.)
#
# Must two heads cost two products? Put their matrices side by side: one product makes the queries of both, and its result is cut.
# `MultiHeadAttention` does this. We give it our matrices, transposed, as PyTorch keeps them.
#
# > **Predict.** Two heads, three tokens, keys 6 wide and values 5: which shapes have `q`, `weights` and `v`, for all heads at once?

# %% slideshow={"slide_type": "subslide"}
module = MultiHeadAttention(11, num_heads=2, d_k=6, d_v=5, bias=False)
stacked = {
    "q_proj": torch.cat([one_before, one_after], dim=1),            # (11, 2 * 6)
    "k_proj": torch.cat([place, place], dim=1),
    "v_proj": torch.cat([word, word], dim=1),                       # (11, 2 * 5)
    "out_proj": torch.eye(10, 11),                # W^O copies; (2 * 5, 11)
}
module.load_state_dict({f"{name}.weight": w.T for name, w in stacked.items()})
trace = module.trace(vectors("man bites dog"))
assert torch.allclose(trace.output[:, :10], both, atol=1e-5)
for name in ("q", "weights", "v"):
    print(f"{name:7} {tuple(getattr(trace, name).shape)}")

# %% [markdown] slideshow={"slide_type": "subslide"}
# The head comes first: `q` holds a table of 3 tokens for each of 2 heads. ([Chapter 6](06_split_and_merge.ipynb) follows one number through
# the cut, in [chapter 7](07_multi_head_attention.ipynb) you type the module yourself.)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Does training find it?
#
# Here is a larger question of the same kind. Sixteen tokens hold a letter each. One more names two places and wants both letters,
# in order; a matrix must read them from what the heads bring. For each number of heads $h$ and each width $d_k$ of their queries
# and keys, five small models were trained on it ([how](artifacts/heads_grid.md)). Values are 16 wide in every head.
#
# > **Predict.** The explorer opens at one head of width 16. Where will the last token look if you move to two heads of width 8? What
# > becomes of the shape of `q`, of the parameters, of the accuracy? Then move $h$ and $d_k$ with the arrow keys. A dot is one of five runs.

# %% slideshow={"slide_type": "subslide"}
grid = artifact("heads_grid.json")
Heads(grid, num_heads=1, d_k=16)

# %% tags=["guard"] slideshow={"slide_type": "skip"}
accuracy = {
    (cell["num_heads"], cell["d_k"]): sum(cell["accuracy"]) / len(cell["accuracy"])
    for cell in grid["cells"].values()
}
assert all(accuracy[1, width] < 0.2 for width in (2, 4, 8, 16))
assert accuracy[2, 8] > 0.95 and accuracy[8, 2] < 0.5

# %% [markdown] slideshow={"slide_type": "subslide"}
# One head looks at both places and fails, at every width: it brings one average, and a matrix must read two letters from it, in order.
# ([Chapter 5](05_why_many_heads.ipynb) asks when that cannot be done, and what can do it.) Two heads of width 8 look at one place each and
# hardly ever fail. `q`, now (2, 17, 8), holds as many numbers as before; parameters grow with the values. And number is not all: at width 2
# eight heads fail as well, at least after so short a training.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## And with *soft*?
#
# The model that reads has six layers of twelve heads. What you saw was one head's row.
#
# > **Predict.** In the same head, with *soft* for *tired*: how much does *it* take from *cat*, and how much from *mat*?

# %% slideshow={"slide_type": "subslide"}
soft = encoder.encode([sentence.replace("tired", "soft")])
rows = torch.stack([tired, soft.traces[3].weights[0, 1, it]])
words = [*tokens[:-3], "tired / soft", *tokens[-2:]]

# %% tags=["figure"] slideshow={"slide_type": "fragment"}
plots.show(
    plots.shares(rows, words, ["… was tired", "… was soft"]),
    alt="Two bars, the weights of 'it'. With 'tired' nearly half is for 'cat' and a "
    "seventh for 'mat'. With 'soft' more than half is for '[CLS]', a fifth for 'mat' "
    "and less than a sixth for 'cat'.",
)

# %% tags=["guard"] slideshow={"slide_type": "skip"}
assert soft.tokens[0] == [*tokens[:-3], "soft", *tokens[-2:]]
if encoder.pretrained:
    assert 0.13 < rows[1, cat] < 0.165 and 0.18 < rows[1, mat] < 0.22
    assert rows[1].argsort(descending=True)[:2].tolist() == [0, mat]
    assert 0.5 < rows[1, 0] < 0.6 and rows[1, 0] - rows[0, 0] > 0.3

# %% [markdown] slideshow={"slide_type": "subslide"}
# Another last word, another row. *cat* falls from almost a half to less than a sixth; *mat* rises to a fifth and is now first among
# the words. But most of what *cat* has lost goes to `[CLS]`, which hands over next to nothing ([chapter
# 3](03_queries_keys_values.ipynb)): a head cannot say "nothing", but it can look where nothing is.
#
# Does it understand? One head and two sentences cannot say. A map shows where a head looks, not what that changes.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Five rules of practice
#
# 1. **Divide by $\sqrt{d_k}$, the width of one head**, not of the token. ([Chapter 2](02_scaling.ipynb))
# 2. **Know what True means.** A *mask* is a table that says who may look at whom; a *causal* one lets no token see a later one. In this book
#    and in PyTorch's `scaled_dot_product_attention` True is *may*, in `nn.MultiheadAttention` it is *may not*. So replace the last token: its own
#    output must move, and none before it. ([Chapter 4](04_masks.ipynb))
# 3. **Cut the columns of `x @ W`, not the list of its numbers.** A `reshape` to the right shape gives a head pieces of some tokens and nothing
#    of others. So replace one token: only its row of `q` may move. ([Chapter 6](06_split_and_merge.ipynb))
# 4. **$d_k = d_\text{model}/h$ is a habit, no law.** With it, more heads cost no parameters. But they get narrow, and each has $n \times n$
#    scores of its own. ([Chapter 7](07_multi_head_attention.ipynb))
# 5. **Do not judge a head by its looks.** Switch it off and measure, with a gate on what it brings: 1 leaves it, 0 removes it.
#    ([Chapter 8](08_heads_add_up.ipynb))

# %% [markdown] slideshow={"slide_type": "subslide"}
# Whoever breaks the first three gets the right shapes and no error. So here is a line for each rule, from 1 to 5. The first three
# fail when their rule is broken; the other two show what theirs say. (`x` has an axis in front, for texts, and `trace.q` one more
# behind it, for heads.)

# %% slideshow={"slide_type": "fragment"}
layer, causal = MultiHeadAttention(24, num_heads=4), masks.causal(7)
x = torch.randn(1, 7, 24)                         # (text, token, number)
x_new = torch.cat([x[:, :-1], torch.randn(1, 1, 24)], dim=1)       # another last token
trace, after = layer.trace(x, mask=causal), layer.trace(x_new, mask=causal)
without_2 = layer(x, mask=causal, head_gate=heads.ablate(4, [2]))

assert torch.allclose(trace.scores, trace.q @ trace.k.mT / 6**0.5, atol=1e-5)
assert torch.allclose(trace.output[:, :-1], after.output[:, :-1], atol=1e-5)
assert torch.allclose(trace.q[:, :, :-1], after.q[:, :, :-1], atol=1e-5)
assert sum(p.numel() for p in layer.parameters()) == costs.parameters(24, num_heads=1)
assert not torch.allclose(without_2, trace.output, atol=1e-3)

# %% tags=["guard"] slideshow={"slide_type": "skip"}
assert not torch.allclose(trace.scores, trace.q @ trace.k.mT / 24**0.5, atol=1e-2)
assert not torch.allclose(trace.output[:, -1], after.output[:, -1], atol=1e-2)
others_see = layer(x_new, mask=~causal.tensor()) - layer(x, mask=~causal.tensor())
assert others_see[:, :-1].abs().amax() > 1e-2
recut, recut_new = (layer.q_proj(each).reshape(1, 4, 7, 6) for each in (x, x_new))
assert recut.shape == trace.q.shape
assert not torch.allclose(recut[:, :, :-1], recut_new[:, :, :-1], atol=1e-2)
narrow = MultiHeadAttention(24, 4, d_k=4)
assert sum(p.numel() for p in narrow.parameters()) < costs.parameters(24, 4)
share = heads.contributions(layer, trace)[:, 2]
assert torch.allclose(without_2, trace.output - share, atol=1e-5)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Where to go on
#
# With an evening, read chapters [2](02_scaling.ipynb), [6](06_split_and_merge.ipynb) and [7](07_multi_head_attention.ipynb); in the last
# you type all of it. With a week, read from [chapter 1](01_soft_lookup.ipynb) on, and do the exercises that each chapter ends with.
#
# | symbol | code | shape |
# |---|---|---|
# | $X$ | `x` | (n, d_model) |
# | $Q,\ K$ | `q`, `k` | (n, d_k) |
# | $V$ | `v` | (n, d_v) |
# | $QK^\top/\sqrt{d_k}$ | `scores` | (n, n) |
# | softmax of it | `weights` | (n, n) |
# | $\mathrm{head}$ | `output` of `head` | (n, d_v) |
# | $[\,\mathrm{head}_1 \cdots \mathrm{head}_h\,]\,W^O$ | `trace.output` | (n, d_model) |
#
# Multi-head attention was first written down in [Vaswani et al. (2017)](references.md#vaswani-2017).
