# %% [markdown] slideshow={"slide_type": "slide"}
# # What does one head add?
#
# **You will build** four lines that take the output of a pretrained layer apart, head by head, and put it together again with some heads
# switched off.
#
# **You will be able to**
#
# - write the output of a layer as a sum over its heads, and say whose the bias is,
# - say what must move with a head when heads change places, and what a head's number means,
# - switch a head off, and name the gate that changes nothing,
# - predict what a weight on the *scores* does instead, and catch it with a leak test.
#
# **Before you start.** You have built the module of [chapter 7](07_multi_head_attention.ipynb) and know the leak test of [chapter
# 4](04_masks.ipynb). Reading and running takes 40 minutes; the [exercises](exercises/08_heads_add_up.ipynb) take 30, and an
# optional 20.

# %% slideshow={"slide_type": "skip"}
from copy import deepcopy

import torch

from mha_teach import MultiHeadAttention, costs, heads, models, plots
from mha_teach.widgets.slider import Slider

_ = torch.manual_seed(8)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What is an output made of?
#
# A pretrained encoder reads *The cat sat on the mat because it was tired*. In layer 3, counted from 0, twelve heads work side by
# side. Through head 1, *it* looks at *cat*. What does that look add? One vector leaves the attention for *it*, from all heads
# together: the output, 384 numbers.
#
# `heads.contributions` takes it apart into one vector for each head. With the bias of `out_proj` these are thirteen, and they add
# up to the output.
#
# > **Predict.** The output is 5.8 long. Do the thirteen lengths add up to 5.8, to less, or to more?

# %% slideshow={"slide_type": "subslide"}
encoder = models.load_minilm_or_stand_in().requires_grad_(False)
sentence = ["The cat sat on the mat because it was tired."]
reading, layer = encoder.encode(sentence), encoder.layers[3]
tokens, trace, attention = reading.tokens[0], reading.traces[3], layer.attention
it = tokens.index("it")

brought = heads.contributions(attention, trace)[0, :, it]          # (12, 384)
vectors = torch.cat([brought, attention.out_proj.bias[None]])
names = [f"head {i}" for i in range(12)] + ["bias"]

# %% tags=["figure"] slideshow={"slide_type": "subslide"}
plots.show(
    plots.sums(vectors, names),
    alt="Thirteen vectors, twelve heads and a bias. Their lengths lie between 0.4 and "
    "2.7 and add up to 20; that of their sum is 5.8. Beside it their steps along the "
    "sum, each begun where the last one ended: heads 7, 9 and 1 go furthest, head 1 a "
    "sixth of the way; head 3, which is 1.4 long, goes nowhere.",
)

# %% tags=["guard"] slideshow={"slide_type": "skip"}
output, bias = trace.output[0, it], attention.out_proj.bias
whole, length = output.norm(), brought.norm(dim=-1)
step = brought @ output / whole
assert torch.allclose(step.sum() + bias @ output / whole, whole, atol=1e-4)
if encoder.pretrained:
    assert 5.75 < whole < 5.85 and 3.4 < (length.sum() + bias.norm()) / whole < 3.6
    assert step.topk(3).indices.tolist() == [9, 7, 1]
    assert 0.16 < step[1] / whole < 0.18
    assert length[3] > 1.3 and -0.1 < step[3] < 0

# %% [markdown] slideshow={"slide_type": "subslide"}
# To more: they add up to 20. Thirteen arrows, laid tip to tail, end where the output ends, but they do not all point there.
#
# What adds up is on the right: how far each arrow goes in the direction of the output $o$, which is its dot product with $o$,
# divided by the length of $o$. The steps must end at 5.8, for if $c_1 + c_2 + \cdots = o$, then
#
# $$ \frac{c_1 \cdot o}{|o|} + \frac{c_2 \cdot o}{|o|} + \cdots = \frac{o \cdot o}{|o|} = |o| $$
#
# Head 1, with its look at *cat*, brings a sixth of the way. Head 3 adds an arrow 1.4 long that leads nowhere; its step is tiny, and
# backwards. Is head 3 idle? We come back to it. First: *may* an output be taken apart like that?

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Why is it a sum?
#
# For one token the head outputs are a row of $h \cdot d_v$ numbers, and $W^O$ has as many rows. Their product is a sum: the first
# number times the first row of $W^O$, plus the second times the second, and so on. Add up one head at a time:
#
# $$ \big[\, \mathrm{head}_1 \;\cdots\; \mathrm{head}_h \,\big] \begin{bmatrix} W_1^O \\ \vdots \\ W_h^O \end{bmatrix}
# = \sum_{i=1}^{h} \mathrm{head}_i\, W_i^O \tag{1} $$
#
# Head $i$ meets its own block $W_i^O$, $d_v$ rows of $W^O$, and no other. The product is its *contribution*. (Formulas count heads from 1.)
#
# > **Predict.** `out_proj` also adds a bias $b$. Add it to each contribution, then add these up. By how much do you miss the output?

# %% tags=["S0-6", "S0-19"] slideshow={"slide_type": "subslide"}
h, d_v = attention.num_heads, attention.d_v
w_o, bias = attention.out_proj.weight.T, attention.out_proj.bias
blocks = w_o.unflatten(0, (h, d_v))               # (h, d_v, d_model)
parts = trace.head_outputs[0] @ blocks            # (h, n, d_model)
assert blocks.shape == (12, 32, 384) and parts.shape == (12, 13, 384)

output = trace.output[0]
assert torch.allclose(parts.sum(dim=0) + bias, output, atol=1e-4)
assert torch.allclose((parts + bias).sum(dim=0), output + 11 * bias, atol=1e-4)
assert torch.allclose(parts, heads.contributions(attention, trace)[0], atol=1e-5)
assert not torch.allclose(parts.mean(dim=0) + bias, output, atol=0.1)
print("twelve contributions and one bias")

# %% [markdown] slideshow={"slide_type": "fragment"}
# By eleven biases. The bias belongs to no head and comes once. In a fresh module of this book, or of PyTorch, it is zero, and nobody sees
# the slip.
#
# You will often read that heads form an *ensemble*. That mostly means an average over models that could each answer alone. A
# contribution is no answer, and nothing is averaged.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Which head is head 3?
#
# A sum does not mind the order of its terms. Let all twelve heads change places, in each of the six layers. What belongs to a head moves
# with it: its rows of `q_proj`, `k_proj` and `v_proj`, and its columns of `out_proj.weight` (columns, because `nn.Linear` stores its
# matrix transposed).
#
# > **Predict.** What becomes of the maps? Of the vector that `embed` gives for the sentence? And if the columns of `out_proj` stay
# > behind?

# %% tags=["S1-18"] slideshow={"slide_type": "subslide"}
def reordered(module, order):                     # head order[i] takes place i
    other = deepcopy(module)
    own = torch.arange(len(order) * module.d_k).unflatten(0, (-1, module.d_k))
    rows = own[order].flatten()                   # here d_v = d_k
    for proj in (other.q_proj, other.k_proj, other.v_proj):
        proj.weight[:], proj.bias[:] = proj.weight[rows], proj.bias[rows]
    other.out_proj.weight[:] = other.out_proj.weight[:, rows]
    return other

mixed = deepcopy(encoder)
for each in mixed.layers:
    each.attention = reordered(each.attention, torch.randperm(h))
assert torch.allclose(mixed.embed(sentence), encoder.embed(sentence), atol=1e-5)
print("the same sentence vector, with 6 × 12 heads in other places")

# %% tags=["S1-18", "S0-4", "guard"] slideshow={"slide_type": "skip"}
order = torch.arange(h)
order[[0, 3]] = order[[3, 0]]
other = reordered(attention, order).trace(reading.hidden[3])
assert torch.allclose(other.weights, trace.weights[:, order], atol=1e-5)
assert torch.allclose(other.output, trace.output, atol=1e-4)
forgotten = reordered(attention, order)
forgotten.out_proj.weight[:] = attention.out_proj.weight
moved = (forgotten(reading.hidden[3]) - trace.output).norm(dim=-1)
assert (moved > 0.1).all()
assert torch.arange(1, h + 1).prod() == 479_001_600
bert = costs.published["BERT-base"]
assert bert.num_layers * bert.num_heads == 144
twins = trace.head_outputs[0].clone()
twins[1] = twins[0]                               # two heads that bring the same
pair = (twins[:2] @ blocks[:2]).sum(dim=0)
assert torch.allclose(pair, twins[0] @ (blocks[0] + blocks[1]), atol=1e-4)

# %% [markdown] slideshow={"slide_type": "fragment"}
# The vector is the same, and so are the maps, under other numbers. If the columns stay behind, each head meets the block of another:
# every output is wrong, and has the right shape.
#
# The number of a head is the number of a seat. Twelve heads, each with keys of its own, have 12! = 479,001,600 seatings that
# compute the same, and nothing in training prefers one. "Through head 1 of layer 3, *it* looks at *cat*" is about *one trained
# model*. You will often read lists such as "in BERT, head 0 does syntax, head 3 positions". BERT-base has twelve layers of twelve
# heads: such a list does not even say which 12 of 144 it means.
#
# Nor must heads differ. Two that bring the same act as one, with the sum of both blocks. In BERT, heads of one layer often behave alike
# ([Clark et al., 2019](references.md#clark-2019)).

# %% [markdown] slideshow={"slide_type": "slide"}
# ## How do you switch a head off?
#
# Give each term a factor, its *gate* $g_i$:
#
# $$ \mathrm{output} = \sum_{i=1}^{h} g_i\, \mathrm{head}_i\, W_i^O + b \tag{2} $$
#
# At $g_i = 0$ head $i$ is off. The module takes all gates as `head_gate`; `heads.ablate` puts zeros at the heads that you name. (To
# *ablate* is to take something away, and see what is missing.)

# %% slideshow={"slide_type": "subslide"}
x, off = reading.hidden[3], heads.ablate(h, [1])
without = attention(x, head_gate=off)[0]
assert torch.allclose(without, output - parts[1], atol=1e-4)
assert torch.allclose(attention.trace(x, head_gate=off).output[0], without, atol=1e-4)

own = slice(1 * d_v, 2 * d_v)                     # what belongs to head 1
cut = deepcopy(attention)
cut.out_proj.weight[:, own] = 0
assert torch.allclose(cut(x)[0], without, atol=1e-4)
print("gate 0 = no term = no block of W^O")

# %% [markdown] slideshow={"slide_type": "fragment"}
# > **Predict.** Which gate leaves the output as it is: twelve ones, or twelve times 1/12?

# %% tags=["S1-28", "S1-29"] slideshow={"slide_type": "subslide"}
for name, gate in {"1": torch.ones(h), "1/12": torch.full((h,), 1 / h)}.items():
    gated = attention(x, head_gate=gate)[0]
    print(f"gate {name:4}  the output of 'it' is {gated[it].norm():.1f} long")

assert torch.allclose(attention(x, head_gate=torch.ones(h))[0], output, atol=1e-4)
assert torch.allclose(gated - bias, (output - bias) / h, atol=1e-4)
try:
    attention(x, head_gate=torch.full((8,), 1 / 8))
except ValueError as error:
    print(error)

# %% [markdown] slideshow={"slide_type": "fragment"}
# Ones: the trained sum has twelve whole terms. You will often read that $1/h$ each is neutral; here it takes away eleven twelfths of what
# the heads bring, and leaves the bias. (Eight gates for twelve heads are refused.)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## One slider, two places
#
# You will also read that a head is weighted by a factor on its *scores*, before the softmax. Is that the same, one line earlier?
#
# $$ \text{gate:}\quad w \cdot \operatorname{softmax}(S)\, V \qquad\qquad \text{score weight:}\quad \operatorname{softmax}(w\, S)\, V
# \tag{3} $$
#
# You know the second: for $w > 0$ it is the temperature of [chapter 1](01_soft_lookup.ipynb), $T = 1/w$. It says how *decided* a
# head is, not how much it adds. And it meets the mask, which sits in the scores. We give head 1 a causal one: *it* may not see what
# comes after.

# %% slideshow={"slide_type": "subslide"}
past = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()

def scored(x, fill):                              # head 1 under a causal mask
    free = attention.trace(x)
    return free.scores[0, 1].masked_fill(~past, fill), free.v[0, 1]

def gate(w, x, fill=-torch.inf):
    scores, v = scored(x, fill)
    weights = scores.softmax(dim=-1)
    return weights, w * (weights @ v)

def score_weight(w, x, fill):
    scores, v = scored(x, fill)
    weights = (w * scores).softmax(dim=-1)
    return weights, weights @ v

# %% [markdown] slideshow={"slide_type": "fragment"}
# > **Predict.** Forbidden scores are set to `-1e9`, as in much code. What becomes of the weights of *it* as $w$ falls from 1 through 0.05
# > to 0, and on to −0.1? What becomes of them under a gate?

# %% tags=["S1-27"] slideshow={"slide_type": "subslide"}
sizes = (1, 0.5, 0.05, 0, -0.1)
later = range(it + 1, len(tokens))                # what `it` may not see
rows = torch.stack([score_weight(w, x, -1e9)[0][it] for w in sizes])
forbidden = rows[:, later].sum(dim=-1)
assert torch.equal(forbidden[:3], torch.zeros(3))
assert torch.allclose(forbidden[3:], torch.tensor([4 / 13, 1.0]))

# %% tags=["figure"] slideshow={"slide_type": "fragment"}
plots.show(
    plots.shares(rows, tokens, [f"w = {w}" for w in sizes], marked=later),
    alt="The weights of 'it' over 13 keys, the four forbidden ones hatched. At w = 1 "
    "'cat' has half, at 0.5 a third. At 0.05 the nine allowed keys share almost "
    "evenly, at 0 all 13 do, at -0.1 the four forbidden ones have it all.",
)

# %% tags=["guard"] slideshow={"slide_type": "skip"}
if encoder.pretrained:
    at_cat = rows[:, tokens.index("cat")]
    assert 0.5 < at_cat[0] < 0.54 and 0.3 < at_cat[1] < 0.35
    assert rows[2, : it + 1].max() < 0.14 and rows[2, : it + 1].min() > 0.09
assert torch.equal(gate(0.05, x)[0], gate(1, x)[0])

# %% [markdown] slideshow={"slide_type": "subslide"}
# Hatched keys are forbidden. At 0.05 the head is not weak but undecided: it brings nearly the plain mean of all that it may see. At
# 0 every score is 0, and so is $0 \cdot (-10^9)$: the mask is gone, and almost a third of the weight lies on the future. At −0.1 the
# mask is turned over: the forbidden keys have the highest scores and get everything. A gate comes after the weights and leaves them
# alone.
#
# Take the leak test of chapter 4 as a lamp. Replace the tokens after *it*. If the head's output for *it* moves, the lamp goes on.
#
# > **Predict.** Now with $-\infty$ in place of `-1e9`. What does the lamp show at 0.05, at 0 and at −0.1?

# %% slideshow={"slide_type": "subslide"}
x_new = x.clone()
x_new[0, later] = torch.randn(len(later), 384)    # another future

def lamp(place, w, *fill):
    before, after = (place(w, each, *fill)[1][it] for each in (x, x_new))
    if before.isnan().any():
        return "nan"
    return "dark" if torch.allclose(before, after, atol=1e-5) else "LEAKS"

places = {"gate": (gate,), "scores, -1e9": (score_weight, -1e9)}
places["scores, -inf"] = (score_weight, -torch.inf)
print(*(f"{title:>13}" for title in ("w", *places)))
for w in sizes:
    shown = [lamp(place, w, *fill) for place, *fill in places.values()]
    print(*(f"{each:>13}" for each in (w, *shown)))

# %% tags=["S1-27", "guard"] slideshow={"slide_type": "skip"}
lit = {name: [lamp(f, w, *fill) for w in sizes] for name, (f, *fill) in places.items()}
assert lit["gate"] == ["dark"] * 5
assert lit["scores, -1e9"] == ["dark"] * 3 + ["LEAKS"] * 2
assert lit["scores, -inf"] == ["dark"] * 3 + ["nan"] * 2

def masked_last(w, x):                            # first the weight, then the mask
    free = attention.trace(x)
    weights = (w * free.scores[0, 1]).masked_fill(~past, -torch.inf).softmax(dim=-1)
    return weights, weights @ free.v[0, 1]

assert [lamp(masked_last, w) for w in sizes] == ["dark"] * 5
at_zero, mean = masked_last(0, x)[1][it], trace.v[0, 1, : it + 1].mean(dim=0)
assert torch.allclose(at_zero, mean, atol=1e-5) and at_zero.norm() > 0.1

# %% [markdown] slideshow={"slide_type": "subslide"}
# From 0 down, one leaks and the other is nan: at 0 because $0 \cdot \infty$ is not a number, below it because forbidden scores are
# now $+\infty$, and softmax would take $\infty - \infty$. The gate does neither.
#
# Weight first and mask afterwards, and nothing leaks and nothing is nan. But at no $w$ does a score weight switch the head off: at
# 0 it still brings the plain mean of all that it may see. **To switch a head off, use a gate.**
#
# In a running notebook, move $w$ yourself. Beside each bar is its lamp.

# %% tags=["widget", "nbval-ignore-output"] slideshow={"slide_type": "subslide"}
def drawn(w):
    rows = [place(w, x, *fill)[0][it] for place, *fill in places.values()]
    lamps = [lamp(place, w, *fill) for place, *fill in places.values()]
    labels = [f"{name}: {each}" for name, each in zip(places, lamps, strict=True)]
    labels[0] += f", output × {w}"
    fig = plots.shares(torch.stack(rows).nan_to_num(0), tokens, labels, marked=later)
    words = f"The weights of 'it' at w = {w}. {'; '.join(labels)}."
    return plots.as_html(fig, words)

Slider(drawn, "w", start=0.3, low=-0.5, high=1.5, step=0.05)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Does a small step mean a small part?
#
# In the first figure head 3 went nowhere. Is it idle? Take one contribution away and let the encoder read on to its last layer. How
# far does its final vector for *it* move? We take it away at *it* alone, and then at all tokens.
#
# > **Predict.** Which moves *it* more: without head 3, or without head 2, whose step is thirteen times as long? Which of the twelve is
# > missed most when it is off everywhere?

# %% slideshow={"slide_type": "subslide"}
def final(attended):                              # for `it`, after the last layer
    x = layer.finish(reading.hidden[3], attended)
    for next_layer in encoder.layers[4:]:
        x = next_layer(x, reading.mask)
    return x[0, it]

whole = final(trace.output)
moved_here, moved_everywhere = [], []
for i in range(h):
    here = trace.output.clone()
    here[0, it] -= parts[i, it]
    everywhere = trace.output - parts[i]
    moved_here.append((final(here) - whole).norm().item())
    moved_everywhere.append((final(everywhere) - whole).norm().item())
most = max(range(h), key=moved_everywhere.__getitem__)
print("at 'it' alone:", *(f"head {i} moves it by {moved_here[i]:.1f}" for i in (2, 3)))
print(f"everywhere: head {most} moves it most, by {moved_everywhere[most]:.1f}")

# %% tags=["guard"] slideshow={"slide_type": "skip"}
assert torch.allclose(whole, reading.hidden[-1][0, it], atol=1e-4)
off = attention(x, head_gate=heads.ablate(h, [3]))
assert torch.allclose(off, trace.output - parts[3], atol=1e-4)
if encoder.pretrained:
    assert 12 < step[2] / -step[3] < 14 and moved_here[3] > 1.2 * moved_here[2]
    assert moved_here[3] < moved_everywhere[3] / 2
    others = moved_everywhere[:3] + moved_everywhere[4:]
    assert moved_everywhere[3] > 1.3 * max(others)
with_more = layer.finish(x, 100 + trace.output)   # 100 in each of 384 numbers
assert torch.allclose(with_more, layer.finish(x, trace.output), atol=1e-2)

# %% tags=["S1-7", "guard"] slideshow={"slide_type": "skip"}
small, (tokens_in, goal) = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)

def pull(gate):                                   # what training does to block 0
    small.zero_grad()
    (small(tokens_in, head_gate=gate) - goal).square().sum().backward()
    return small.out_proj.weight.grad[:, :4].clone()

alone, beside = pull(torch.tensor([1.0, 0, 0])), pull(torch.ones(3))
assert not torch.allclose(alone, beside, atol=1e-2)
before = heads.contributions(small, small.trace(tokens_in))
with torch.no_grad():
    small.q_proj.weight[4:] = torch.randn(8, 12)  # heads 1 and 2 change
after = heads.contributions(small, small.trace(tokens_in))
assert torch.allclose(before[0], after[0], atol=1e-6)
assert not torch.allclose(before[1:], after[1:], atol=1e-2)

# %% [markdown] slideshow={"slide_type": "subslide"}
# Head 3, both times. What it adds at *it* leads off to the side of the sum, and the layers above read that, too. Most of what it
# does for *it* comes by way of the other tokens, to which it adds as well. **A small step along the output is not a small part.**
# Nor is a long one large for sure: the normalisation that follows ([chapter 9](09_one_block.ipynb)) forgets whatever is added to
# all 384 numbers alike. And one token of one sentence proves little about head 3.
#
# You will also read that heads are *independent*. Within a layer that reads, they are. In training they are not: the loss reads the
# sum, so what each head learns depends on what the others add.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Equal to the library, and common slips
#
# `nn.MultiheadAttention` has no gate. There, set the head's columns of `out_proj.weight` to zero.

# %% slideshow={"slide_type": "subslide"}
theirs = attention.to_torch()
with torch.no_grad():
    whole, _ = theirs(x, x, x)
    theirs.out_proj.weight[:, own] = 0
    cut, _ = theirs(x, x, x)
assert torch.allclose(whole[0], parts.sum(dim=0) + bias, atol=1e-4)
assert torch.allclose(cut[0], without, atol=1e-4)

# %% [markdown] slideshow={"slide_type": "fragment"}
# Here are four ways to write (2) wrong. Three have the right shape.

# %% slideshow={"slide_type": "subslide"}
merge, head_outputs = attention.merge_heads, trace.head_outputs[0]

def summed(g):
    return (g[:, None, None] * parts).sum(dim=0) + bias

def unmerged(g):                                  # W^O is still to come
    return g[:, None, None] * head_outputs

def a_bias_each(g):
    return (g[:, None, None] * parts + bias).sum(dim=0)

def repeated(g):                                  # 0 1 2 … 0 1 2 … for 0 0 … 1 1 …
    return attention.out_proj(merge(head_outputs) * g.repeat(d_v))

def on_the_scores(g):
    weights = (g[:, None, None] * trace.scores[0]).softmax(dim=-1)
    return attention.out_proj(merge(weights @ trace.v[0]))

# %% [markdown] slideshow={"slide_type": "fragment"}
# > **Predict.** All heads on, all off, one off: asked in this order, which of the three questions is the first to expose which slip?

# %% slideshow={"slide_type": "subslide"}
def checks(f):
    on = torch.ones(h)
    yield "its shape", f(on).shape == output.shape
    yield "all on", torch.allclose(f(on), output, atol=1e-4)
    yield "all off", torch.allclose(f(0 * on), bias.expand_as(output), atol=1e-4)
    yield "one off", torch.allclose(f(heads.ablate(h, [1])), without, atol=1e-4)

for f in (summed, unmerged, a_bias_each, on_the_scores, repeated):
    exposed_by = next((name for name, holds in checks(f) if not holds), "nothing")
    print(f"{f.__name__:15} exposed by: {exposed_by}")

# %% tags=["S1-30", "guard"] slideshow={"slide_type": "skip"}
exposing = [
    next((name for name, holds in checks(f) if not holds), None)
    for f in (summed, unmerged, a_bias_each, on_the_scores, repeated)
]
if encoder.pretrained:                            # a fresh bias is 0: nobody sees it
    assert exposing == [None, "its shape", "all on", "all off", "one off"]

# %% [markdown] slideshow={"slide_type": "fragment"}
# With all heads on, twelve biases are too many. A factor on the scores changes
# nothing at 1, and at 0 it leaves plain means. The last one is right whenever all gates are equal: `repeat` deals them out number
# by number, but a head's numbers stand together. Only a gate that tells heads apart shows it.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Exercises
#
# The [exercise notebook](exercises/08_heads_add_up.ipynb) has four: predict what a gate does (●), find the bug in a sum of contributions
# (●●), write the gate yourself (●●), and let two heads change places (●●●).

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Summary
#
# | symbol | code | shape |
# |---|---|---|
# | $\mathrm{head}_i$ | `head_outputs` | (batch, num_heads, n_q, d_v) |
# | $W_i^O$ | `out_proj.weight.T.unflatten(0, (h, d_v))[i]` | (d_v, d_model) |
# | $\mathrm{head}_i\, W_i^O$ | `heads.contributions(module, trace)` | (batch, num_heads, n_q, d_model) |
# | $b$ | `out_proj.bias`, once | (d_model,) |
# | $g$ | `head_gate`; 1 leaves a head, 0 removes it | (num_heads,) or (batch, num_heads) |
# | $g_i \in \{0, 1\}$ | `heads.ablate(num_heads, heads)` | (num_heads,) |

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Further reading
#
# - [Elhage et al. (2021)](references.md#elhage-2021) write a layer as a sum of heads, "independent and additive".
# - [Michel et al. (2019)](references.md#michel-2019) give each head a gate, and count how many can be switched off.
# - [Kobayashi et al. (2020)](references.md#kobayashi-2020) weigh each look by the length of what it brings.
# - [Two corrections](references.md#gate-issues) tell of gates that a widely used library ignored in silence, before it gave them up.
