# %% [markdown]
# # Who may look at whom?
#
# **You will build** the line that decides which keys a query may average over, and a test that finds a mask which is wrong but has the
# right shape.
#
# **You will be able to**
#
# - say where a mask acts, and what goes wrong when it acts after the softmax,
# - write a causal, a padding and a window mask, and say their shapes,
# - translate a mask into each of four conventions,
# - predict what $-\infty$, `-1e9` and PyTorch make of a query that may look at nobody,
# - catch a mask that shows too much or too little.
#
# **Before you start.** You can write one head from [chapter 3](03_queries_keys_values.ipynb). Reading and running takes 40 minutes; the
# [exercises](exercises/04_masks.ipynb) take 50, and an optional 20.

# %%
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.bias import causal_lower_right

from mha_teach import (
    MultiHeadAttention,
    masks,
    models,
    plots,
    scaled_dot_product_attention,
)
from mha_teach.widgets import Mask

_ = torch.manual_seed(3)

# %% [markdown]
# ## Who reads the padding?
#
# Two sentences go through the pretrained encoder together. A tensor is a rectangle, so the shorter one is filled up with `[PAD]`:
# *The dog slept.* makes 6 tokens, and 7 more are padding.
#
# > **Predict.** In one head, with every look allowed, how much of their weight do the six real tokens give to padding: nearly none, a
# > tenth, or almost half?

# %%
encoder = models.load_minilm_or_stand_in().requires_grad_(False)
long, short = "The cat sat on the mat because it was tired.", "The dog slept."
together = encoder.encode([long, short])
real = len(together.tokens[1])
tokens = together.tokens[1] + ["[PAD]"] * (len(together.tokens[0]) - real)

attention, x = encoder.layers[1].attention, together.hidden[1]      # x (2, 13, 384)
free, masked = attention.trace(x), attention.trace(x, mask=together.mask)
maps = [trace.weights[1, 7] for trace in (free, masked)]
to_padding = [weights[:real, real:].sum(dim=-1) for weights in maps]

# %% tags=["figure"]
figure = plots.attention_maps(maps, tokens, ["all allowed", "padding forbidden"])
for axes, shares in zip(figure.axes, to_padding, strict=False):
    for query, share in enumerate(shares):
        axes.text(9, query, f"{share:.2f}", ha="center", va="center")
plots.show(
    figure,
    alt="Two maps of one head over 6 real tokens and 7 padding tokens; a number in "
    "each real row says how much it gives to padding. With every look allowed it is "
    "almost half on average, more than three quarters in the last two. With padding "
    "forbidden it is zero, and the columns are blank; the rows of padding are still "
    "there.",
)

# %% tags=["guard"]
assert real == 6 and x.shape == (2, 13, 384)
assert not maps[1][:, real:].any()
left = maps[0][:, :real]
assert torch.allclose(maps[1][:, :real], left / left.sum(-1, keepdim=True), atol=1e-5)
if encoder.pretrained:
    to_padding = maps[0][:real, real:].sum(dim=-1)
    assert 0.4 < to_padding.mean() < 0.5 and to_padding[4:].min() > 0.75

# %% [markdown]
# The numbers say it: almost half on average, more than three quarters from the full stop and `[SEP]`. Softmax must give its whole to
# somebody, and padding is a key like any other. On the right it is forbidden, and what is left of a row is scaled up.
#
# Let the sentence go through alone, and compare.

# %%
alone = encoder.encode([short]).traces[1].output[0]                 # (6, 384)
for name, trace in (("all allowed", free), ("padding forbidden", masked)):
    same = torch.allclose(trace.output[1, :real], alone, atol=1e-4)
    print(f"{name:18} as if the sentence were alone: {same}")

# %% tags=["guard"]
for trace, same in ((free, False), (masked, True)):
    assert torch.allclose(trace.output[1, :real], alone, atol=1e-4) is same

# %% [markdown]
# Without a mask, what becomes of a sentence depends on how long its neighbour in the batch is.
#
# ## How is a look forbidden?
#
# By its score. A mask holds True where query $i$ may look at key $j$. Where it may not, the score becomes $-\infty$. With scores $S$ and
# weights $A$:
#
# $$ A = \operatorname{softmax}(S + M), \qquad M_{ij} = \begin{cases} 0 & i \text{ may look at } j \\ -\infty & \text{it may not}
# \end{cases} \tag{1} $$
#
# As $e^{-\infty} = 0$, that key gets exactly nothing, and the others share the whole.
#
# The future is forbidden, too, where a model learns to guess token $i + 1$ from the output of token $i$: looking ahead, it would copy
# the answer. A mask that allows the past and the token itself is *causal*.
#
# In code, `tril` keeps the lower triangle of a table, `~` swaps True and False, and `masked_fill` writes a number where its mask is True.

# %%
def attend(q, k, v, mask):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return weights @ v, weights

n, d_k = 5, 4
q, k, v = torch.randn(3, n, d_k)
causal = torch.ones(n, n, dtype=torch.bool).tril()                  # (n_q, n_k)
output, weights = attend(q, k, v, causal)
assert (weights[~causal] == 0).all()                                # exactly
assert torch.allclose(weights.sum(dim=-1), torch.ones(n))

# %% [markdown]
# > **Predict.** Why infinity? Take the softmax of all scores instead, and set the forbidden weights to zero. What do the rows sum to? And
# > if each row is divided by its sum?

# %%
zeroed = (q @ k.mT / d_k**0.5).softmax(dim=-1) * causal
sums = zeroed.sum(dim=-1, keepdim=True)                             # (n, 1)
print("row sums:", [round(each, 1) for each in sums[:, 0].tolist()])
same = torch.allclose(zeroed / sums, weights, atol=1e-6)
print("divided by them, as in attend:", same)

# %% tags=["guard"]
assert 0.05 < sums[0] < 0.15 and torch.allclose(zeroed / sums, weights, atol=1e-6)
k_new = torch.cat([k[:4], torch.randn(1, d_k)])   # what it keeps depends on the future
kept = (q @ k_new.mT / d_k**0.5).softmax(dim=-1)[0, 0]
assert (kept - zeroed[0, 0]).abs() > 1e-3

# %% [markdown]
# The rows no longer sum to one, and what query 0 keeps of its one value depends on forbidden scores: the future has a hand in it.
# Dividing takes it out, and gives what $-\infty$ had given at once.
#
# ## Which shape does a mask have?
#
# Scores have four axes, (batch, head, query, key), and a mask must fit them. An axis that makes no difference to it is 1 long or,
# in front, left out; PyTorch repeats the mask along it (*broadcasting*). Where two masks apply, both must allow a look: `&`. A
# *window* allows only the last few keys, the query's own included.
#
# > **Predict.** Two sentences have 3 and 5 tokens. Which shape has a causal mask, which a padding mask, and which the two together?

# %%
place, lengths = torch.arange(n), torch.tensor([3, 5])
past = place <= place[:, None]                    # None: a new axis, 1 long
window = past & (place > place[:, None] - 3)      # 3 keys
padding = (place < lengths[:, None])[:, None, None]

shapes = {"causal": past, "padding": padding, "both": past & padding}
print(*(f"{name} {tuple(x.shape)}" for name, x in shapes.items()), sep="   ")

# %% tags=["guard"]
assert torch.equal(past, masks.causal(n).tensor())
assert torch.equal(window, masks.window(n, width=3))
assert torch.equal(padding, masks.padding(lengths, n_k=n))
assert torch.equal(past & padding, masks.combine(masks.causal(n), padding))

# %% [markdown]
# The causal mask is the same everywhere: (n_q, n_k). Padding depends on sentence and key: (batch, 1, 1, n_k). The package has all
# of them. `masks.causal(n)` is a name for its table, and modules take it as it is; `.tensor()` spells it out where you need the
# cells.
#
# Below, a small head attends twice: to these six tokens, and again when *a* and *mat*, tokens 4 and 5, are replaced. Bars show
# how far each output moves.
#
# > **Predict.** Which outputs will move under the causal mask? Then choose: under a window? With nothing forbidden? With one more cell
# > allowed above the diagonal?

# %%
Mask(masks.causal(6), ["the", "cat", "sat", "on", "a", "mat"], changed=4)

# %% tags=["guard"]
explorer = Mask(masks.causal(6), changed=4)
assert explorer.verdicts() == ["stays"] * 4 + ["was changed"] * 2
for preset, leaking in (("window", 0), ("everyone", 4)):
    seen = explorer.at(mask=explorer.preset_mask(preset))
    assert seen.verdicts().count("leaks") == leaking
painted = masks.causal(6).tensor()
painted[1, 4] = True                              # cat looks at a
assert explorer.at(mask=painted).verdicts().count("leaks") == 1
assert explorer.at(mask=painted, changed=5).verdicts().count("leaks") == 0
blind = explorer.at(mask=torch.zeros(6, 6, dtype=torch.bool))
assert blind.verdicts() == ["sees nobody"] * 6 and not blind.look().change.any()

# %% [markdown]
# Outputs 4 and 5 move, as they read what was replaced. Before them, under the causal mask and the window, none does; with nothing
# forbidden all four do. One painted cell moves one output at most, as a row of the mask belongs to one query.
#
# That makes the *leak test*: **change what must stay hidden, and nothing may move.** It finds only what it changes: let *cat* look at token
# 4, replace token 5 alone, and no earlier output moves. So each token needs its turn. And a mask that forbids every look passes. So there
# is another half: **change what may be seen, and something must move.** What must be hidden you take from what the model is for, not from
# the mask under test, which always agrees with itself.
#
# ## Where does the triangle sit?
#
# A model that writes computes the key of a token once and keeps it. Then its newest token asks alone: $n_q = 1$, $n_k = 5$.
#
# > **Predict.** Which keys may it see? PyTorch's function makes a causal mask itself if you say `is_causal=True`. Which keys does that
# > show?

# %%
newest, units = q[-1:], torch.eye(n)
shown = F.scaled_dot_product_attention(newest, k, units, is_causal=True)
print((shown > 0).int())                          # with unit vectors as values: weights

# %% [markdown]
# It may see all five, which are its past; `is_causal=True` shows it the oldest alone. That triangle begins at the *top left*, as does
# `torch.ones(1, 5).tril()`. But query $i$ is token $n_k - n_q + i$: the triangle belongs at the *bottom right*. PyTorch has it as
# `causal_lower_right`. For the two newest tokens:

# %%
n_q, n_k = 2, 5
place_of_query = n_k - n_q + torch.arange(n_q)    # 3 and 4
rectangle = torch.arange(n_k) <= place_of_query[:, None]
print(rectangle.int())

assert torch.equal(rectangle, masks.causal(n_q, n_k).tensor())
lower_right = causal_lower_right(n_q, n_k)
for mask in (rectangle, lower_right):
    two = F.scaled_dot_product_attention(q[-n_q:], k, v, attn_mask=mask)
    assert torch.allclose(two, output[-n_q:], atol=1e-6)

# %% tags=["guard"]
assert torch.equal(shown > 0, place[None] == 0)
assert torch.equal(torch.ones(1, 5).tril() == 1, place[None] == 0)
assert masks.causal(1, 5).tensor().all()

# %% [markdown]
# The top left forbids too much, so only the second half of the test finds it. Where $n_q = n_k$, both triangles are the same: try
# unequal sizes.
#
# ## Which way round? Equal to the library
#
# | where | may look | may not |
# |---|---|---|
# | this book, boolean mask of `F.scaled_dot_product_attention` | `True` | `False` |
# | boolean mask of `nn.MultiheadAttention` | `False` | `True` |
# | a float mask in both, added as $M$ in (1) | `0.0` | `-inf` |
# | much code that you will meet | `1` | `0` |
#
# Rightly translated, all compute the same. `nn.MultiheadAttention` takes padding by itself, as `key_padding_mask`: True is padding.

# %% tags=["S0-16"]
additive = torch.zeros(n, n).masked_fill(~causal, float("-inf"))
for mask in (causal, additive, causal.int() == 1):
    same = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert torch.allclose(same, output, atol=1e-6)

theirs = nn.MultiheadAttention(12, num_heads=3, batch_first=True).eval()
ours, x = MultiHeadAttention.from_torch(theirs), torch.randn(2, n, 12)
expected, _ = theirs(x, x, x, attn_mask=masks.to_torch_mha(masks.causal(n)))
assert torch.allclose(ours(x, mask=causal), expected, atol=1e-6)
expected, _ = theirs(x, x, x, key_padding_mask=~padding[:, 0, 0])   # (batch, n_k)
assert torch.allclose(ours(x, mask=padding), expected, atol=1e-6)

# %% tags=["guard"]
assert torch.equal(additive.bool(), ~causal)
in_theirs, _ = theirs(x, x, x, attn_mask=additive)
assert torch.allclose(in_theirs, ours(x, mask=causal), atol=1e-6)
package = scaled_dot_product_attention(q, k, v, causal)
assert torch.allclose(package.output, output, atol=1e-6)
refusal = ""
try:
    ours(x, mask=additive)
except TypeError as error:
    refusal = str(error)
assert "becomes bool by mask == 0" in refusal

# %% [markdown]
# Swap True and False, and nothing complains. `.bool()` on an additive mask does it: $-\infty$ is not 0, so it becomes True. So this
# book takes bool alone.
#
# ## What if nobody is left?
#
# You will often read `masked_fill(mask == 0, -1e9)`: a score so low that its exponential is zero. Newer code takes the lowest
# number of the format, `torch.finfo(dtype).min`. Are they as good as $-\infty$? The hard case is a query with no key left, as in an
# empty sentence, or where its window holds padding alone. Here query 0 is one.
#
# > **Predict.** What is its output with each of the three, with PyTorch's function, and with this book's?

# %%
nobody = causal.clone()
nobody[0] = False                                 # query 0 may look at nobody

def filled(low, q, k, v):                         # low: what a forbidden score becomes
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return scores.masked_fill(~nobody, low).softmax(dim=-1) @ v

lowest = torch.finfo(torch.float32).min
lows = {"-1e9": -1e9, "finfo.min": lowest, "-inf": float("-inf")}
outputs = {name: filled(low, q, k, v) for name, low in lows.items()}
outputs["PyTorch"] = F.scaled_dot_product_attention(q, k, v, attn_mask=nobody)
outputs["this book"] = scaled_dot_product_attention(q, k, v, nobody).output
outputs["mean of all values"] = v.mean(dim=0, keepdim=True)
for name, each in outputs.items():
    print(f"{name:19}", [round(number, 1) for number in each[0].tolist()])

# %% tags=["S0-15", "S1-12", "S1-35", "guard"]
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    cast, mean = [x.to(dtype) for x in (q, k, v)], v.mean(dim=0)
    results = {"lowest": filled(torch.finfo(dtype).min, *cast)}
    results["-inf"] = filled(float("-inf"), *cast)
    four_axes = [x[None, None] for x in cast]     # so the fused routine takes them
    torch_says = F.scaled_dot_product_attention(*four_axes, attn_mask=nobody)[0, 0]
    this_book = scaled_dot_product_attention(*cast, nobody).output
    if dtype != torch.float16:
        results["-1e9"] = filled(-1e9, *cast)
        assert torch.allclose(results["-1e9"][0].float(), mean, atol=0.02)
    assert torch.allclose(results["lowest"][0].float(), mean, atol=0.02)
    assert results["-inf"][0].isnan().all()
    assert not torch_says[0].any() and not this_book[0].any()
    for each in (*results.values(), torch_says, this_book):
        assert torch.allclose(each[1:].float(), output[1:], atol=0.02)

# %% tags=["S0-15", "S1-35", "guard"]
assert torch.finfo(torch.float16).max == 65504
refusal = ""
try:
    filled(-1e9, q.half(), k.half(), v.half())
except RuntimeError as error:
    refusal = str(error)
assert "overflow" in refusal
added = (1 - nobody.half()) * -1e9                # added, it becomes -inf unseen
assert added[0].isneginf().all()
assert (q.half() @ k.half().mT + added).softmax(dim=-1)[0].isnan().all()
swapped = torch.tensor([-2e9, 1.0]).masked_fill(torch.tensor([False, True]), -1e9)
assert swapped.softmax(dim=-1).tolist() == [0, 1]                   # not so far above

# %% tags=["guard"]
in_sum = torch.zeros(n, n).masked_fill(~nobody, lowest)
by_sum = F.scaled_dot_product_attention(q, k, v, attn_mask=in_sum)
assert torch.allclose(by_sum[0], v.mean(dim=0), atol=1e-5)
assert not masks.padding([0], n).any()            # where such a query comes from
padded_left = masks.padding([3], n).flip(-1)
assert not masks.combine(masks.window(n, 2), padded_left)[0, 0, 0].any()
for num_heads in (3, 4):                          # an even number: a path of its own
    module = nn.MultiheadAttention(12, num_heads, batch_first=True).eval()
    for needs in (True, False):
        with torch.no_grad():
            row, _ = module(x, x, x, attn_mask=~nobody, need_weights=needs)
        assert row[:, 0].isnan().all() == (needs or num_heads == 4)

# %% [markdown]
# Where a key is left all agree, as long as real scores stay far above the fill. Where none is, a finite number shares evenly among
# *forbidden* keys: if all scores are equally low, none is low. In float16, which ends at 65 504, `masked_fill` refuses $-10^9$, and
# `scores + (1 - mask) * -1e9` makes it $-\infty$ unseen.
#
# With $-\infty$ the weights are 0/0, which is nan. PyTorch's function and this book's give zeros; the function [gave nan until
# 2024](references.md#torch-issues). `nn.MultiheadAttention` gives nan, but with `need_weights=False` only sometimes.
#
# > **Predict.** The loss leaves out the output of query 0. Does a nan in it harm the gradient, which `backward` computes?

# %%
for name, attention in (("-inf", attend), ("this book", scaled_dot_product_attention)):
    values = v.clone().requires_grad_()
    result, _ = attention(q, k, values, nobody)
    result[1:].sum().backward()                   # row 0 takes no part
    print(f"{name:9} gradient is finite: {values.grad.isfinite().all()}")

# %% tags=["guard"]
w_v = torch.randn(d_k, d_k).requires_grad_()      # two sentences, the first has a nan
both_sentences = torch.stack([nobody, causal])
values = torch.stack([v, v]) @ w_v
attend(torch.stack([q, q]), torch.stack([k, k]), values, both_sentences)[0][
    :, 1:
].sum().backward()
assert w_v.grad.isnan().all()
values = v.clone().requires_grad_()
some = nobody.any(dim=-1, keepdim=True)
(attend(q, k, v, nobody)[1] * some @ values)[1:].sum().backward()
assert values.grad.isnan().all()                  # zeros by a product do not help

# %% [markdown]
# It does. The gradient of value $j$ adds up, over the queries $i$, the weight $a_{ij}$ times the gradient of output $i$. For query
# 0 these are nan and 0, and $0 \cdot \text{nan}$ is nan. One empty row spoils the gradient of every value in its sentence, and
# $W^V$ carries it to the batch.
#
# The remedy makes no nan: leave the scores of an empty row as they are, and after the softmax let `masked_fill` write zeros over its
# weights. To multiply nan by `mask.any(dim=-1, keepdim=True)` does not help. You write the remedy in the exercises.
#
# ## Common slips
#
# All these masks have shapes that fit. Outputs 0, 1 and 2 of sentence 0 must not depend on tokens 3 and 4, padding and future;
# outputs 1 and 2 may see token 0.
#
# > **Predict.** Replace tokens 3 and 4, then token 0. Under which masks do these outputs move?

# %%
def moved(mask, changed):                         # which outputs of sentence 0 move
    x_new = x.clone()
    x_new[0, changed] = torch.randn(12)
    same = (ours(x_new, mask=mask) - ours(x, mask=mask)).abs() <= 1e-5
    return ~same[0].all(dim=-1)                   # nan equals nothing: it moves

suspects = {"causal": causal, "padding": padding, "~causal": ~causal}
suspects |= {"nothing": torch.zeros_like(causal), "padding.mT": padding.mT}
for name, mask in suspects.items():
    hidden, seen = moved(mask, [3, 4])[:3].sum(), moved(mask, 0)[1:3].sum()
    print(f"{name:10}  by 3 and 4: {hidden} of 3   by 0: {seen} of 2")

# %% tags=["guard"]
for mask in (causal, padding):
    assert not moved(mask, [3, 4])[:3].any() and moved(mask, 0)[1:3].all()
assert moved(~causal, [3, 4])[:3].all() and not moved(~causal, 0)[1:3].any()
assert moved(padding.mT, [3, 4])[:3].all() and moved(padding.mT, 0)[1:3].all()
assert not moved(suspects["nothing"], [0, 3, 4]).any()
inverted = F.scaled_dot_product_attention(q, k, v, attn_mask=~causal)
assert not inverted[-1].any() and not torch.allclose(inverted[0], v[0], atol=0.1)
assert torch.allclose(output[0], v[0])

# %% [markdown]
# (`causal` and `padding` each hide 3 and 4, which are both.) **The inverted mask**, `~causal`, lets each token see its future alone. The
# last one sees nobody, and PyTorch's function gives zeros, not even a nan. Nor need you replace a token to see it: token 0 may see itself
# alone, so output 0 must be value 0, and is not. **The mask that allows nothing** is found by the second half alone.
#
# **Padding that hides queries**, (batch, 1, n_q, 1), silences outputs that nobody reads, and lets every word look at padding. Padding
# hides *keys*: in the map at the top its rows are still there.
#
# **A mask that lands on the heads.** Shapes are aligned from the right, so of a mask (batch, n_q, n_k) the batch falls on the heads.
#
# > **Predict.** Three sentences of 2, 3 and 5 tokens, and three heads. Which sentences look at padding?

# %%
batch, h = 3, 3
q, k, v = torch.randn(3, batch, h, n, d_k)
padding = masks.padding([2, 3, 5], n)             # (batch, 1, 1, n_k)
short_of_an_axis = padding[:, 0].expand(batch, n, n)

_, weights = attend(q, k, v, short_of_an_axis)
on_padding = (weights * ~padding).sum(dim=-1)     # (batch, head, n_q)
for i in range(batch):
    print(f"sentence {i}, some weight on padding: {on_padding[i].any()}")

# %% [markdown]
# Those that have any: each *head* wears the mask of one sentence. With two sentences it would be an error. So `masks.padding`
# returns all four axes, and this book's module refuses three.

# %% tags=["S0-16", "guard"]
assert weights.shape == (batch, h, n, n) and on_padding[:2].mean() > 0.1
assert not on_padding[0, 0].any() and not on_padding[1, :2].any()
assert (on_padding[0, 1:] > 0).all() and (on_padding[1, 2] > 0).all()
assert (weights[2, 0, :, 2:] == 0).all()          # head 0 hides most of the longest
refusals = []
for attempt in (
    lambda: attend(*torch.randn(3, 2, h, n, d_k), past.expand(2, n, n)),
    lambda: MultiHeadAttention(12, h)(torch.randn(batch, n, 12), mask=short_of_an_axis),
):
    try:
        attempt()
    except (RuntimeError, ValueError) as error:
        refusals.append(str(error))
assert "must match" in refusals[0] and "mask[:, None]" in refusals[1]

# %% [markdown]
# ## Exercises
#
# The [exercise notebook](exercises/04_masks.ipynb) has six: predict (●), find a mask that leaks (●●), write `causal`, `padding` and
# `attention` (●●), and write the test that catches a mask which shows too much or too little (●●●).
#
# ## Summary
#
# | mask | code | shape |
# |---|---|---|
# | causal, bottom right | `masks.causal(n_q, n_k)` | (n_q, n_k) |
# | padding: hides keys | `masks.padding(lengths, n_k)` | (batch, 1, 1, n_k) |
# | window | `masks.window(n, width)` | (n, n) |
# | "and" | `masks.combine(…)` | broadcast of its parts |
# | `attn_mask` of `nn.MultiheadAttention` | `masks.to_torch_mha(causal)` | (n_q, n_k) |
# | its `key_padding_mask` | `~padding[:, 0, 0]` | (batch, n_k) |
#
# A query that may look at nobody gets zero weights and a zero output.
#
# ## Further reading
#
# - [Vaswani et al. (2017)](references.md#vaswani-2017), section 3.2.3, mask the future by $-\infty$.
# - PyTorch describes the masks of its [function](references.md#torch-sdpa) and its [module](references.md#torch-mha).
# - [Public issues and pull requests](references.md#mask-issues) show two of the slips; [four more](references.md#torch-issues) tell of
#   the empty row and of `is_causal`.
# - [Jiang et al. (2023)](references.md#jiang-2023) build a language model on a window.
