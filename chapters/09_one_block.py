# %% [markdown]
# # Where does attention sit?
#
# **You will build** one block of a pretrained encoder around the module, stack it six times, and wire it in three ways.
#
# **You will be able to**
#
# - write a block from memory: two additions, two norms, one attention, one small network,
# - say what happens to the tokens of a deep model that never adds,
# - show that a stack of blocks is blind to order until positions are added,
# - draw who can reach whom in BERT, in GPT and in an encoder–decoder, and test it.
#
# **Before you start.** You know the module of [chapter 7](07_multi_head_attention.ipynb), the shuffling of tokens from [chapter
# 3](03_queries_keys_values.ipynb) and the leak test of [chapter 4](04_masks.ipynb). Reading and running takes 30 minutes, typing
# the block 5 more; the [exercises](exercises/09_one_block.ipynb) take 30, and an optional 20.

# %%
import torch
from torch import nn
from torch.nn import functional as F

from mha_teach import MultiHeadAttention, masks, models, plots

_ = torch.manual_seed(9)

# %% [markdown]
# ## What does a layer do to a token?
#
# A pretrained encoder reads *The cat sat on the mat because it was tired*. Layer 3, counted from 0, takes one vector $x_i$ for each
# token and returns one. In between it adds twice: first what attention brings from other tokens, then what a *small network* (mlp
# for short) makes of this token alone. After each addition it normalises:
#
# $$ y_i = \operatorname{norm}\big(x_i + \operatorname{attention}(x)_i\big), \qquad
# \mathrm{output}_i = \operatorname{norm}\big(y_i + \operatorname{mlp}(y_i)\big) \tag{1} $$
#
# The layer is a *block*, and the vectors that run through all blocks are the *residual stream*. A *layer norm* takes the 384 numbers of
# one token, subtracts their mean and divides by their spread; then each number gets a factor and a shift of its own, both learnt.
#
# > **Predict.** Which is longer, what a token brings along or what attention adds to it? And what is a norm good for?

# %%
encoder = models.load_minilm_or_stand_in().requires_grad_(False)
reading = encoder.encode(["The cat sat on the mat because it was tired."])
tokens, layer = reading.tokens[0], encoder.layers[3]

x, attended = reading.hidden[3][0], reading.traces[3].output[0]    # (n, 384)
y = layer.attention_norm(x + attended)
added = layer.mlp(y)
output = layer.mlp_norm(y + added)
assert torch.allclose(output, reading.hidden[4][0], atol=1e-4)

def lengths(*vectors):
    names = ("comes in", "is added", "goes out")
    return dict(zip(names, torch.stack(vectors).norm(dim=-1), strict=True))

at_attention, at_network = lengths(x, attended, y), lengths(y, added, output)

# %% tags=["figure"]
attention = plots.Panel("length, attention", at_attention)
network = plots.Panel("length, small network", at_network)
fig = plots.curves(range(len(tokens)), [attention, network], "token", log_x=False)
for ax in fig.axes:
    ax.set_xticks(range(len(tokens)), tokens, rotation=90)
plots.show(
    fig,
    alt="The lengths of three vectors for each token, in two panels. Attention adds "
    "less than comes in, at every token. So does the network, but for [CLS], where it "
    "adds 50 to 29; after the norm [CLS] is 11 long, about as long as the others.",
)

# %% tags=["guard"]
came_in, went_out = x.norm(dim=-1), output.norm(dim=-1)
by_attention, by_network = attended.norm(dim=-1), added.norm(dim=-1)
if encoder.pretrained:
    assert (by_attention < 0.75 * came_in).all() and 49 < by_network[0] < 51
    assert 1.5 < by_network[0] / y[0].norm() < 2
    assert (by_network[1:] < 0.6 * y.norm(dim=-1)[1:]).all()
    assert 10 < went_out[0] < 11 and (went_out > 9.5).all() and (went_out < 15).all()
    assert 9.5 < (x + attended)[0].norm() < 10 and 28.5 < y[0].norm() < 29.5
    assert 77.5 < (y + added)[0].norm() < 78.5
    assert torch.cosine_similarity(x, output).min() > 0.75
normed = (x + attended - (x + attended).mean(dim=-1, keepdim=True)) / (
    x + attended
).std(dim=-1, correction=0, keepdim=True)
factor, shift = layer.attention_norm.weight, layer.attention_norm.bias
assert torch.allclose(normed * factor + shift, y, atol=1e-4)

# %% [markdown]
# What comes along is longer, at every token. So it is for the network, but for `[CLS]`. Neither step replaces a token; each adds to
# it, and what leaves the layer still points mostly where it came from, with a cosine above 0.75. A norm sets the length: at `[CLS]`
# the first turns a sum 10 long into a vector of 29, as its factors have learnt to. The network adds a vector of 50, and the second
# norm turns their sum of 78 into 11. So the next layer finds vectors of a size it knows.
#
# ## The block
#
# `Block(d_model, h, d_mlp)` holds, under the names of the encoder, `attention`, the module; `attention_norm` and `mlp_norm`, each an
# `nn.LayerNorm(d_model, eps=1e-12)`; and `mlp`, an `nn.Sequential` of two linear maps with a bend between them, `nn.GELU()`, which lets
# large numbers pass and holds back negative ones. Its `forward(x, mask=None)` is (1).
#
# The next cell is folded. Run it without opening it. Then add a cell below it and type the block, under the same name: yours takes its
# place.

# %% tags=["solution"]
class Block(nn.Module):
    def __init__(self, d_model, h, d_mlp):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, h)
        self.attention_norm = nn.LayerNorm(d_model, eps=1e-12)
        self.mlp = nn.Sequential(
            nn.Linear(d_model, d_mlp), nn.GELU(), nn.Linear(d_mlp, d_model)
        )
        self.mlp_norm = nn.LayerNorm(d_model, eps=1e-12)

    def forward(self, x, mask=None):              # (batch, n, d_model), in and out
        x = self.attention_norm(x + self.attention(x, mask=mask))
        return self.mlp_norm(x + self.mlp(x))     # each token by itself

# %% [markdown]
# > **Predict.** The network is 1536 wide inside. Where are most of a block's parameters, in attention or in the network?

# %%
blocks = [Block(384, 12, 1536).requires_grad_(False) for _ in encoder.layers]
for block, trained in zip(blocks, encoder.layers, strict=True):
    block.load_state_dict(trained.state_dict())   # the names are the same

def read(x, mask=None):
    for block in blocks:
        x = block(x, mask)
    return x

assert torch.allclose(read(reading.hidden[0]), reading.hidden[-1], atol=1e-3)
for name, part in blocks[0].named_children():
    print(f"{name:14} {sum(p.numel() for p in part.parameters()):9,} parameters")

# %% tags=["guard"]
in_network, in_block = (
    sum(p.numel() for p in part.parameters()) for part in (blocks[0].mlp, blocks[0])
)
assert 0.66 < in_network / in_block < 0.67 and 10e6 < 6 * in_block < 11e6
assert len(tokens) == 13 and len(blocks) == 6

# %% [markdown]
# Your six blocks are the encoder's layers; two thirds of their parameters lie in the networks, $2 \cdot 384 \cdot 1536$ beside
# $4 \cdot 384^2$. Only in attention do tokens meet.
#
# This block normalises *after* each addition, as BERT does. [GPT-2](references.md#radford-2019) normalises what goes *into* attention and
# network instead, `x + attention(norm(x))`, and leaves the stream itself alone. That spares training a slow start
# ([Xiong et al., 2020](references.md#xiong-2020)).
#
# ## Why add?
#
# Leave out both `x +`, and each block hands on only what it made. The shapes are the same.
#
# > **Predict.** Take the mean cosine between two tokens of the sentence: 1 if all point the same way. How does it change from block to
# > block, with the additions and without? And without them, if each token attends to itself alone?

# %%
def likeness(x):                                  # mean cosine of two tokens
    units = F.normalize(x[0], dim=-1)
    n = len(units)
    return ((units @ units.mT).sum() - n) / (n * (n - 1))

def without_additions(mask):                      # likeness after each block
    x = reading.hidden[0]
    for block in blocks:
        x = block.attention_norm(block.attention(x, mask=mask))
        x = block.mlp_norm(block.mlp(x))
        yield likeness(x)

streams = {
    "with additions": [likeness(hidden) for hidden in reading.hidden[1:]],
    "without": list(without_additions(None)),
    "without, each alone": list(without_additions(torch.eye(13).bool())),
}

# %% tags=["figure"]
panel = plots.Panel("mean cosine of two tokens", streams)
plots.show(
    plots.curves(range(6), [panel], "after block", log_x=False),
    alt="The mean cosine of two tokens after blocks 0 to 5. With additions it rises "
    "from below 0.2 to about 0.5, without them it is 1 from block 3 on. Without them, "
    "but with each token alone, it stays below 0.4.",
)

# %% tags=["S1-21", "guard"]
if encoder.pretrained:
    assert 0.1 < streams["with additions"][0] < 0.2
    assert 0.4 < streams["with additions"][5] < 0.6
    assert min(streams["without"][3:]) > 0.99
    assert max(streams["without, each alone"]) < 0.4

# %% [markdown]
# With additions tokens grow more alike, from below 0.2 to about 0.5. Without them, all thirteen point the same way after four blocks. It is
# the averaging that does it: averages of tokens are more alike than the tokens, averages of averages more so, and where each token
# is alone, nothing of the kind happens. The networks, there in all three curves, do not prevent it: trained with additions, they
# never had to. That attention alone, without additions and networks, makes all tokens alike is proved ([Dong et al.,
# 2021](references.md#dong-2021)). What works against it here are the additions.
#
# ## Does a block know order?
#
# *The dog bit the man* or *The man bit the dog*? One head cannot tell ([chapter 3](03_queries_keys_values.ipynb)): it is a sum over
# tokens, and a sum has no order. Can six blocks, with additions, norms and networks?
#
# > **Predict.** We shuffle the tokens, once as words alone and once with a vector added for each position, which stays in its place. In
# > which of the two does each word get the same as before?

# %%
ids = torch.tensor([encoder.tokenize("The dog bit the man.")[1]])     # (1, 8)
order = torch.tensor([0, 1, 5, 3, 4, 2, 6, 7])    # dog and man change places

def words_alone(ids):
    return encoder.norm(encoder.word(ids))

def words_and_positions(ids):
    places = torch.arange(ids.shape[1])
    return encoder.norm(encoder.word(ids) + encoder.position(places))

for vectors in (words_alone, words_and_positions):
    before, after = read(vectors(ids)), read(vectors(ids[:, order]))
    same = torch.allclose(after, before[:, order], atol=1e-3)
    print(f"{vectors.__name__:20} each word gets the same: {same}")

# %% tags=["S0-29", "guard"]
def _is_reordered(vectors, mask=None):
    before, after = read(vectors(ids), mask), read(vectors(ids[:, order]), mask)
    return torch.allclose(after, before[:, order], atol=1e-3)

assert _is_reordered(words_alone) and not _is_reordered(words_and_positions)
assert not _is_reordered(words_alone, masks.causal(8))
assert torch.equal(words_and_positions(ids), encoder.embed_tokens(ids))

# %% [markdown]
# With words alone, six blocks and ten million parameters cannot tell who bit whom: additions, norms and networks treat each token by
# itself. **In this encoder, as in BERT, order comes from positions alone**: a table with one learnt vector for each place, added once,
# before the first block. From there on the stream carries it. (A causal mask tells places apart as well.)
#
# ## Three wirings
#
# The same module sits in three kinds of model; what differs is who may look at whom. *BERT* reads a text, as our encoder does: each
# token looks both ways, and only padding is hidden. *GPT* writes: a causal mask. An *encoder–decoder* translates. Its encoder is
# wired like BERT. A block of its *decoder* has two attentions: a causal one among its own tokens, then *cross-attention*, in which
# its tokens ask and keys and values come from the encoder.

# %%
block = Block(12, 3, 48)
theirs = nn.TransformerDecoderLayer(12, 3, 48, dropout=0.0, batch_first=True)
own, cross = map(
    MultiHeadAttention.from_torch, (theirs.self_attn, theirs.multihead_attn)
)

def bert(x):                                      # 6 tokens, the last 2 are padding
    return block(x, masks.padding(torch.tensor([4]), n_k=6))

def gpt(x):
    return block(x, masks.causal(6))

def decoder(x, context):
    x = theirs.norm1(x + own(x, mask=masks.causal(6)))
    x = theirs.norm2(x + cross(x, context))       # x asks, context answers
    return theirs.norm3(x + theirs.linear2(theirs.linear1(x).relu()))

# %% [markdown]
# The leak test tells what each wiring does. Replace input $j$, and see which outputs move.
#
# > **Predict.** Draw the tables of BERT and of GPT: six outputs in rows, six replaced inputs in columns. What of padding, which nobody may
# > look at? And what can the decoder see of the four tokens of its context?

# %%
def moved(f, x):                                  # (output, replaced input)
    columns, before = [], f(x)
    for j in range(x.shape[1]):
        new = x.clone()
        new[0, j] = torch.randn(12)
        columns.append((f(new)[0] - before[0]).abs().amax(dim=-1) > 1e-5)
    return torch.stack(columns, dim=1)

x, context = torch.randn(1, 6, 12), torch.randn(1, 4, 12)
wirings = {
    "BERT": moved(bert, x),
    "GPT": moved(gpt, x),
    "decoder: own": moved(lambda x: decoder(x, context), x),
    "decoder: context": moved(lambda context: decoder(x, context), context),
}

# %% tags=["figure"]
plots.show(
    plots.tables(
        {"moves": [each.float() for each in wirings.values()]},
        list(wirings),
        [f"output {i}" for i in range(6)],
        columns=[f"input {i}" for i in range(6)],
    ),
    alt="Four tables of outputs and replaced inputs. BERT: inputs 0 to 3 move every "
    "output, the two paddings only themselves. GPT and the decoder's own inputs move "
    "outputs at or after their place. Each of four context inputs moves every output.",
)

# %% tags=["guard"]
both_ways = masks.padding(torch.tensor([4]), n_k=6)[0, 0] | torch.eye(6).bool()
assert torch.equal(wirings["BERT"], both_ways)
assert torch.equal(wirings["GPT"], masks.causal(6).tensor())
assert torch.equal(wirings["decoder: own"], masks.causal(6).tensor())
assert wirings["decoder: context"].all() and wirings["decoder: context"].shape == (6, 4)

# %% [markdown]
# Padding moves only its own output, through the addition; nobody reads that. The decoder sees its past and all of the context.
#
# ## Equal to the library
#
# `nn.TransformerEncoderLayer` is the same block under other names. Five of its defaults differ: its bend is ReLU, its network 2048 wide,
# its dropout 0.1, its first axis the token, and the small number that its norms add, against a division by 0, is larger.
# `nn.TransformerDecoderLayer` is the decoder above.

# %%
library = nn.TransformerEncoderLayer(
    384, 12, 1536, 0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True
).eval()
library.self_attn = layer.attention.to_torch()
library.linear1, library.linear2 = layer.mlp[0], layer.mlp[2]
library.norm1, library.norm2 = layer.attention_norm, layer.mlp_norm
assert torch.allclose(library(reading.hidden[3]), reading.hidden[4], atol=1e-4)

causal = masks.to_torch_mha(masks.causal(6))      # there, True forbids
expected = theirs(x, context, tgt_mask=causal)
assert torch.allclose(decoder(x, context), expected, atol=1e-5)
print("both agree")

# %% [markdown]
# ## Common slips
#
# Here is a block without learnt factors, and four ways to get it wrong: nothing is added, positions come too late, a norm runs over the
# tokens, or over the batch. All five return the right shape.

# %%
attention, mlp, positions = block.attention, block.mlp, torch.randn(6, 12)

def norm(x, dim):
    spread = x.std(dim, correction=0, keepdim=True)
    return (x - x.mean(dim, keepdim=True)) / (spread + 1e-5)

def right(x, mask=None, dim=-1):                  # -1: over the numbers of a token
    x = x + positions
    y = norm(x + attention(x, mask=mask), dim)
    return norm(y + mlp(y), dim)

def not_added(x, mask=None):
    return norm(mlp(norm(attention(x + positions, mask=mask), -1)), -1)

def positions_too_late(x, mask=None):
    y = norm(x + attention(x, mask=mask) + positions, -1)
    return norm(y + mlp(y), -1)

# %%
def checks(f):
    x = torch.randn(2, 6, 12)
    new, other = x.clone(), x.clone()
    new[:, 2], other[1] = torch.randn(12), torch.randn(6, 12)
    yield "its shape", f(x).shape == x.shape
    yield "another sentence", torch.allclose(f(other)[0], f(x)[0], atol=1e-4)
    alone = torch.eye(6).bool()                   # each token sees itself
    still = torch.allclose(f(new, alone)[:, 3:], f(x, alone)[:, 3:], atol=1e-4)
    yield "each token alone", still
    nobody = f(x, torch.zeros(6, 6).bool())       # attention brings nothing
    yield "seeing nobody", (nobody[:, 1:] - nobody[:, :1]).abs().amax() > 1e-3
    moved = f(x[:, [0, 2, 3, 4, 5, 1]])[:, 0]     # the first stays
    yield "others shuffled", not torch.allclose(moved, f(x)[:, 0], atol=1e-4)

# %% [markdown]
# > **Predict.** A sentence beside it is replaced; each token sees only itself, and one is replaced; nobody sees anybody; all tokens but the
# > first change places. Which is the first to expose each slip?

# %%
variants = {
    "right": right,
    "not added": not_added,
    "norm over the tokens": lambda x, mask=None: right(x, mask, dim=1),
    "positions too late": positions_too_late,
    "norm over the batch": lambda x, mask=None: right(x, mask, dim=0),
}
for name, f in variants.items():
    exposed_by = next((name for name, holds in checks(f) if not holds), "nothing")
    print(f"{name:21} exposed by: {exposed_by}")

# %% tags=["guard"]
past, x = masks.causal(6), torch.randn(1, 6, 12)
later = x.clone()
later[:, 5] = torch.randn(12)
assert torch.allclose(right(later, past)[:, :5], right(x, past)[:, :5], atol=1e-5)
assert not torch.allclose(
    right(later, past, dim=1)[:, :5], right(x, past, dim=1)[:, :5], atol=1e-2
)

# %% [markdown]
# A norm over the wrong axis makes tokens or sentences meet where they must not; over the tokens it even leaks the future past a
# causal mask. Without additions, tokens that may look at nobody all come out equal. And positions that are added after attention
# come too late to decide who looks at whom. (Slips inside the layer hang in the [bug museum](bug_museum.ipynb).)
#
# ## Exercises
#
# The [exercise notebook](exercises/09_one_block.ipynb) has four: predict shapes, parameters and who moves (●), find the bug in the
# second half of a block (●●), write a block (●●), and measure what depth does to tokens that are not added (●●●).
#
# ## Summary
#
# | symbol | code | shape |
# |---|---|---|
# | $x$ | `x`, the residual stream | (batch, n, d_model) |
# | $\operatorname{attention}(x)$ | `attention(x, mask=mask)` | (batch, n, d_model) |
# | $y = \operatorname{norm}(x + \operatorname{attention}(x))$ | `attention_norm(x + …)` | (batch, n, d_model) |
# | $\operatorname{mlp}(y)$ | `mlp(y)`; inside: (batch, n, d_mlp) | (batch, n, d_model) |
# | BERT, GPT | `masks.padding`, `masks.causal` | (batch, 1, 1, n_k), (n, n) |
# | decoder | `own(x, mask=causal)`, then `cross(x, context)` | (batch, n_q, d_model) |
#
# ## Further reading
#
# - [Vaswani et al. (2017)](references.md#vaswani-2017), section 3.2.3, name the three uses of attention.
# - [Devlin et al. (2019)](references.md#devlin-2019) and [Radford et al. (2019)](references.md#radford-2019) are BERT and GPT-2.
# - [Two reports and a correction](references.md#block-issues) tell of blocks that were wired wrongly and had the right shape.
