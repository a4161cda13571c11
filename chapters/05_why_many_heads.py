# %% [markdown] slideshow={"slide_type": "slide"}
# # Why is one head not enough?
#
# **You will build** two heads, set by hand, that answer a question which no single average can answer.
#
# **You will be able to**
#
# - show on paper that an even average forgets the order, whatever reads it,
# - say what an uneven average keeps, and why no matrix gets it out,
# - set the matrices of two heads by hand so that every answer is right,
# - tell a limit from a lack of patience in a figure of trained runs,
# - say what more heads cost, and name two ways to do with one.
#
# **Before you start.** You can write one head and say what its matrices decide ([chapter 3](03_queries_keys_values.ipynb)). Symbols are
# in the [notation](notation.md). Reading and running takes 35 minutes; the [exercises](exercises/05_why_many_heads.ipynb) take 30, and
# an optional 20.

# %%
import json
from pathlib import Path

import torch
from torch import nn

from mha_teach import MultiHeadAttention, costs, models, plots
from mha_teach.tasks import encode_lookups, two_lookups
from mha_teach.training import answer_loss, train
from mha_teach.widgets import AttentionMap

_ = torch.manual_seed(0)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Who passes to whom?
#
# Here is one sentence, in Chinese and in English:
#
# 他把球踢给了队友，队友又传给了他。
#
# He kicked the ball to his team-mate, and the team-mate passed it back to him.
#
# > **Predict.** Who is *him* (他) at the end? Give every word for a person a number, the same number for the same person. How many
# > numbers do you need? Ours are below; change them if you disagree.

# %%
words = ["他 he", "把", "球 ball", "踢给了 kicked to", "队友 team-mate", "，"]
words += ["队友 team-mate", "又 then", "传给了 passed to", "他 him", "。"]
person = [1, 0, 0, 0, 2, 0, 2, 0, 0, 1, 0]        # 0: not a person
for number in (1, 2):
    same = [word for word, who in zip(words, person, strict=True) if who == number]
    print(f"person {number}:", " = ".join(same))

# %% tags=["S0-3", "guard"]
assert person[0] == person[9] != person[4] == person[6]
assert "".join(word.split()[0] for word in words) == "他把球踢给了队友，队友又传给了他。"

# %% [markdown]
# Two people, twice each. You will often read that *him* and the team-mate are linked, as if they were one. But nobody passes a ball back
# to himself: *him* is the *he* of the beginning.
#
# Now the verbs. *kicked* must know from whom and to whom, and so must *passed*. Here are the looks that they need: the row is the verb,
# the column the person.

# %%
def looks(whom):                                  # {row of the verb: column}
    wanted = torch.zeros(len(words), len(words))
    wanted[list(whom), list(whom.values())] = 1
    return wanted

from_whom, to_whom = looks({3: 0, 8: 6}), looks({3: 4, 8: 9})
plots.show(
    plots.attention_maps([from_whom, to_whom], words, ["from whom?", "to whom?"]),
    alt="Two maps over the words of the sentence, Chinese with English beside it. "
    "From whom: 'kicked to' looks at 'he', 'passed to' at the second 'team-mate'. To "
    "whom: 'kicked to' looks at the first 'team-mate', 'passed to' at 'him'.",
)

# %% [markdown]
# Each verb has one row, and must look at two places at once. Both need the same two people, in opposite order.
#
# Do trained heads look there? Here are all 72 of the encoder, on the English sentence.
#
# > **Predict.** The map opens at the row of *him*. At whom should it look? At whom the second *team* and *mate*? And will any head find
# > *him* from the row of *passed*?

# %%
encoder = models.load_minilm_or_stand_in().requires_grad_(False)
english = "He kicked the ball to his team-mate, "
english += "and the team-mate passed it back to him."
reading = encoder.encode([english])
tokens, maps = reading.tokens[0], [trace.weights[0] for trace in reading.traces]
him = tokens.index("him")
AttentionMap(torch.stack(maps), tokens, layer=1, head=1, selected_query=him)

# %% tags=["S0-2", "S0-3", "guard"]
if encoder.pretrained:
    he, passed, heads = tokens.index("he"), tokens.index("passed"), torch.stack(maps)
    teams, mates = [7, 13], [9, 15]
    assert [tokens[i] for i in teams + mates] == ["team", "team", "mate", "mate"]
    assert heads[1, 1, him, 1:].argmax() + 1 == he
    assert 0.4 < heads[1, 1, him, he] < 0.5
    for earlier, later in (teams, mates):
        assert 0.35 < heads[1, 1, later, earlier] < 0.45
    assert heads[:, :, passed, him].max() < 0.15
    assert mates[1] == passed - 1 and heads[0, 2].diagonal(-1).min() > 0.95

# %% [markdown]
# In this head *him* gives almost half of its weight to *he*, the second *team* and *mate* each some four tenths to the first. One head
# follows two people: every row asks with a query of its own. But *passed* gives *him* less than 0.15 in every head, and finds *mate* where
# a head looks at the token before, whatever it is (layer 0, head 2).
#
# One sentence cannot tell what a head is for. And the Chinese one?

# %%
print(*encoder.encode(["他把球踢给了队友，队友又传给了他。"]).tokens[0])

# %% [markdown]
# `[UNK]` means *unknown*. The encoder learnt from English and has no token for any of these characters: 他 and 球 are the same to it. Its
# maps could speak of places and commas, not of people. So we ask a question whose answer we know.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What does one average forget?
#
# Sixteen tokens hold a letter each, one of sixteen. One more token asks: it names two places, $a$ and $b$, and wants both letters, in
# order. Each token is 64 numbers in four groups of 16, almost all of them 0. A piece of the identity matrix picks a group.

# %%
batch = two_lookups(4096, generator=torch.Generator().manual_seed(0))
x, asking = batch.x, batch.x[:, -1:]              # (4096, 17, 64), (4096, 1, 64)
letter, place, first, second = torch.eye(64).split(16, dim=1)       # (64, 16) each
groups = {"letter": letter, "place": place, "a": first, "b": second}
names = [f"token {i}" for i in range(16)] + ["asks"]
plots.show(
    plots.tables({"x": [x[0] @ pick for pick in groups.values()]}, list(groups), names),
    alt="The 17 tokens of one question, group by group. In the groups letter and place "
    "each of the 16 tokens has one number that is not 0, for places on the diagonal; "
    "the token that asks has one number in group a and one in group b.",
)

# %% [markdown]
# This question has $a = 8$ and $b = 15$: it wants the letter of token 8, then that of token 15. Our first head asks for both places at
# once. Its keys are the places, its values the letters.

# %%
def one_head(x, context, w_q, w_k, w_v):          # as in chapter 3
    q, k, v = x @ w_q, context @ w_k, context @ w_v
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return weights @ v, weights

average, weights = one_head(asking, x, 9 * (first + second), place, letter)
top = weights.sort(descending=True).values[..., :3].mean(dim=(0, 1))
print("the three largest weights:", *(f"{weight:.2f}" for weight in top))

# %% tags=["guard"]
assert x.shape == (4096, 17, 64) and asking.shape == (4096, 1, 64)
assert average.shape == (4096, 1, 16) and weights.shape == (4096, 1, 17)
assert torch.equal((asking @ first).argmax(-1)[:, 0], batch.pointers[:, 0])
assert torch.equal((x @ letter).argmax(-1)[:, :-1], batch.tokens)
assert batch.pointers[0].tolist() == [8, 15]
looked_at = weights[:, 0].topk(2).indices.sort().values
assert torch.equal(looked_at, batch.pointers.sort().values)

# %% [markdown]
# It looks at both, half and half.
#
# > **Predict.** Now let the two letters change places, in every sequence. The right answer turns round. What becomes of the output?

# %%
exchanged = batch.tokens.scatter(1, batch.pointers, batch.answer.flip(1))
x_new = encode_lookups(exchanged, batch.pointers)
after, _ = one_head(x_new[:, -1:], x_new, 9 * (first + second), place, letter)
print("the same output:", torch.allclose(after, average, atol=1e-5))

pairs = torch.cartesian_prod(torch.arange(16), torch.arange(16))    # (256, 2)
averages = (torch.tensor([0.5, 0.5]) @ torch.eye(16)[pairs]).unique(dim=0)
print(f"{len(pairs)} answers, {len(averages)} averages:", end=" ")
print(f"at most {len(averages) / len(pairs):.2f} can be right")

# %% tags=["S0-2", "guard"]
assert torch.allclose(after, average, atol=1e-5)
assert torch.equal(exchanged.gather(1, batch.pointers), batch.answer.flip(1))
assert len(averages) == 16 + 120

# %% [markdown]
# Nothing. With $v_A$ and $v_B$ for the values of the two letters,
#
# $$ \tfrac12\, v_A + \tfrac12\, v_B \;=\; \tfrac12\, v_B + \tfrac12\, v_A \tag{1} $$
#
# Whatever comes after, a matrix or a network of any size, gets the same numbers for both questions and gives both the same answer. One of
# the two is wrong. (The 136 are 16 pairs of one letter twice, and 120 of two.) **One softmax is one average**, and an even average has no
# order.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Is an uneven average enough?
#
# Give $a$ a weight of 0.7 and $b$ 0.3. Now the order is there: the larger part came first. Can it be read?
#
# What follows the heads in a layer is a matrix. So let a *linear readout* make one number per letter for each of the two answers; the
# largest wins. Take one answer and two letters, x and y, and watch $d$, the number for x minus the number for y:
#
# $$ d \;=\; \alpha\, d_A + (1 - \alpha)\, d_B \tag{2} $$
#
# Here $\alpha$ is the weight on the first letter $A$, and $d_A$ is $d$ for that letter alone. With x and y there are four questions, and
# in each only the share of x matters: from $d_y$ to $d_x$, $d$ moves one way. It changes its sign once at most, and with it the answer.
#
# > **Predict.** So a readout can make one cut between these bars. Where, to get the *first* letter right in all four? And the *second*?

# %%
share_of_x = torch.tensor([1, 0.7, 0.3, 0])
plots.show(
    plots.shares(
        torch.stack([share_of_x, 1 - share_of_x], dim=1),
        ["x", "y"],
        ["x, then x", "x, then y", "y, then x", "y, then y"],
        marked=[1],
    ),
    alt="Four bars, one below the other. The share of x falls from 1 over 0.7 and 0.3 "
    "to 0, for the questions x then x, x then y, y then x, y then y.",
)

# %% [markdown]
# From top to bottom, the *first* letters are x, x, y, y: one cut in the middle. The *second* letters are x, y, x, y: that takes three.
#
# With $\alpha < \tfrac12$ the middle bars change places, and so do the two answers. At $\tfrac12$ they are the same bar. So **a linear
# readout of one average can always name the first letter only if $\alpha > \tfrac12$, and the second only if $\alpha < \tfrac12$. Never
# both.** (We took it that the weights depend on the places, not on the letters there.)
#
# Is one head doomed? We train a matrix and a small network on all 256 pairs.
#
# > **Predict.** At $\alpha = 0.7$: which names the first letter? Which the second?

# %%
def right(readout, alpha):                        # share of each answer, once trained
    average = torch.tensor([alpha, 1 - alpha]) @ torch.eye(16)[pairs]
    def loss(readout, _):
        return answer_loss(readout(average).unflatten(-1, (2, 16)), pairs)
    train(readout, loss, steps=500, generator=torch.Generator(), learning_rate=0.02)
    answers = readout(average).unflatten(-1, (2, 16)).argmax(dim=-1)
    return (answers == pairs).float().mean(dim=0)

network = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32))
results = {"matrix": right(nn.Linear(16, 32), 0.7), "network": right(network, 0.7)}
for name, shares in results.items():
    print(f"{name:8} first {shares[0]:.2f}   second {shares[1]:.2f}")

# %% tags=["S0-2", "guard"]
assert results["matrix"][0] == 1 and results["matrix"][1] < 0.1
assert results["network"].min() > 0.95
mirrored = right(nn.Linear(16, 32), 0.3)
assert mirrored[1] == 1 and mirrored[0] < 0.1

# %% [markdown]
# The matrix always names the first letter; with the second it is no better than a guess, 1 in 16. The network names both: it can bend
# where the answers alternate. So the limit is not one head. It is **one average, read by a linear map**.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Can two heads do it?
#
# Give each question a head of its own, and lay what they bring side by side:
#
# $$ \big[\; \mathrm{head}_1 \;\; \mathrm{head}_2 \;\big] \;=\; \big[\; v_A \;\; v_B \;\big] \tag{3} $$
#
# > **Predict.** Nothing below is trained. How many of the 4,096 questions will be right? Why the factor 9?

# %% tags=["S0-2"]
brought = [
    one_head(asking, x, 9 * pointer, place, letter)[0] for pointer in (first, second)
]
output = torch.cat(brought, dim=-1)               # 16 numbers of each head
answers = output.unflatten(-1, (2, 16)).argmax(dim=-1)[:, 0]
assert output.shape == (4096, 1, 32) and answers.shape == (4096, 2)
assert torch.equal(answers, batch.answer)
print("right:", (answers == batch.answer).all(dim=-1).sum().item(), "of", len(answers))

# %% tags=["guard"]
_, sharp = one_head(asking, x, 9 * first, place, letter)
assert sharp.amax(dim=-1).min() > 0.99
highest = (asking @ (9 * first) @ (x @ place).mT / 4).amax(dim=-1)
assert torch.equal(highest, torch.full_like(highest, 9.0))

# %% [markdown]
# All. What is not 0 in `x` is 2, so the place that is asked for scores $9 \cdot 2 \cdot 2 / \sqrt{16} = 9$, every other 0: it gets $e^9$,
# some 8,000 times, the weight of another. And the order is kept by *where* a number stands, not by how large it is: what came first
# stands on the left.
#
# Is it equal to the library? The book's module holds both heads side by side, and its $W^O$ leads their 32 numbers to $d_\text{model}$.

# %%
module = MultiHeadAttention(64, num_heads=2, d_k=16, bias=False)
stacked = {
    "q_proj": torch.cat([9 * first, 9 * second], dim=1),            # (64, 2 * 16)
    "k_proj": torch.cat([place, place], dim=1),
    "v_proj": torch.cat([letter, letter], dim=1),
    "out_proj": torch.eye(32, 64),                # W^O, (2 * d_v, d_model)
}
module.load_state_dict({f"{name}.weight": w.T for name, w in stacked.items()})
assert torch.allclose(module(asking, x)[..., :32], output, atol=1e-5)

# %% [markdown] slideshow={"slide_type": "slide"}
# ## Does training find it?
#
# Now models learn the task, each from five seeds, with $d_\text{model} = 64$ and a linear readout. In the left panel heads share the
# width: one head of 64, two of 32, up to 64 heads of one number, all with equal parameters. In the middle each head is 16 wide. On the
# right one head is followed by a small network, or by a second layer of one head. ([How they were trained](artifacts/why_many_heads.md).)
#
# > **Predict.** Which will name both letters after 400 steps? Which of the others will three times as many steps help?

# %%
runs = json.loads(Path("artifacts/why_many_heads.json").read_text())["runs"]

def dots(name, chosen):                           # {length: {setting: five shares}}
    return {
        f"{steps:,} steps": {
            str(run[name]): run["accuracy"] for run in chosen if run["steps"] == steps
        }
        for steps in (400, 1_200)
    }

linear = [run for run in runs if run["model"] == "linear"]
others = [run for run in runs if run["model"] != "linear"]
sharing = [run for run in linear if run["parameters"] == 16_384]
of_width_16 = [run for run in linear if run["d_k"] == 16]

# %%
panels = {
    "heads that share the width": dots("num_heads", sharing),
    "heads of width 16": dots("num_heads", of_width_16),
    "one head, then": dots("model", others),
}
levels = {"the most at one half each": 136 / 256, "one letter and a guess": 1 / 16}
plots.show(
    plots.runs(panels, levels, "both letters right"),
    alt="Five dots for each model and length of training. One head lies at 0.1 to 0.2, "
    "2 to 16 heads at 1. With longer training 32 heads rise to 1, 64 to about a third. "
    "One head with a network or a second layer lies at 1, but for one dot.",
)

# %% tags=["S0-2", "S0-10", "guard"]
def shares_right(**fixed):
    found = [run for run in runs if all(run[key] == fixed[key] for key in fixed)]
    return [share for run in found for share in run["accuracy"]]

one = {"model": "linear", "num_heads": 1}
assert len(shares_right(**one)) == 20 and max(shares_right(**one)) < 0.25
for d_k in (16, 64):
    short, long = (shares_right(**one, d_k=d_k, steps=steps) for steps in (400, 1200))
    assert max(long) < min(short)
assert all(min(shares_right(num_heads=h)) > 0.98 for h in (2, 4, 8, 16))
assert max(shares_right(num_heads=32, steps=400)) < 0.6
assert min(shares_right(num_heads=32, steps=1200)) > 0.98
assert max(shares_right(num_heads=64, steps=400)) < 0.1
assert 0.2 < sum(shares_right(num_heads=64, steps=1200)) / 5 < 0.5

# %% tags=["S0-2", "S0-24", "guard"]
lowest, *rest = sorted(shares_right(model="network", steps=400))
assert lowest < 0.2 and min(rest) > 0.98
assert min(shares_right(model="network", steps=1200)) > 0.98
assert min(shares_right(model="second layer")) > 0.98
[narrow] = {run["parameters"] for run in of_width_16 if run["num_heads"] == 2}
assert narrow == sharing[0]["parameters"] / 2

# %% [markdown]
# One head with a linear readout stays below 0.25 in all twenty runs, and longer training does not raise it. Two heads name everything, and
# not for want of parameters: two heads of width 16 have half as many as one head of 64.
#
# The other end looks alike and is not. 32 heads of width 2 fail at first and succeed in the end; 64 heads of width 1 are on their way.
# That was a lack of patience. Nor is it the number: sixteen heads of width 16 do no harm.
#
# And one head *is* enough if something else follows: a network (one seed in five took the longer training), or a second layer, where the
# token asks again. [Liu et al. (2021)](references.md#liu-2021) built 384 layers of one head each; once such models could be trained, they
# did better than several heads in fewer layers.

# %% [markdown] slideshow={"slide_type": "slide"}
# ## What do more heads cost?
#
# You will often read that more heads mean more parameters. $W^Q$, $W^K$, $W^V$ and $W^O$ hold $d_\text{model} \cdot h \cdot d_k$ numbers
# each.
#
# > **Predict.** How does the count grow with $h$ if the heads share the width, $d_k = d_\text{model}/h$? And if each is 16 wide?

# %% tags=["S1-19"]
for h in (1, 2, 4, 8, 16):
    module = MultiHeadAttention(64, h, bias=False)
    shared, wide = (costs.parameters(64, h, d_k=d_k, bias=False) for d_k in (None, 16))
    assert shared == sum(p.numel() for p in module.parameters()) == 4 * 64**2
    print(f"h = {h:2}   sharing the width {shared:,}   of width 16 {wide:6,}")

# %% [markdown]
# Where heads share the width, $h$ cancels. What costs is $h \cdot d_k$, the width of all heads together.
#
# ## Common slips
#
# Two heads do not help if what they bring is mixed too early. Four ways to join them, and a test: let the letters change places, and the
# output must move.
#
# > **Predict.** Which of the four fail?

# %%
def two(x):
    return [one_head(x[:, -1:], x, 9 * p, place, letter)[0] for p in (first, second)]

w_o = torch.randn(2, 16, 64)                      # a block of W^O for each head
joined = {
    "side by side": lambda a, b: torch.cat([a, b], dim=-1),
    "each through its block, added": lambda a, b: a @ w_o[0] + b @ w_o[1],
    "averaged": lambda a, b: (a + b) / 2,
    "both through one block, added": lambda a, b: a @ w_o[0] + b @ w_o[0],
}
for name, join in joined.items():
    moves = not torch.allclose(join(*two(x)), join(*two(x_new)), atol=1e-3)
    print(f"{name:30} the output moves: {moves}")

# %% tags=["S0-19", "guard"]
by_block = joined["each through its block, added"](*two(x))
by_w_o = torch.cat(two(x), dim=-1) @ w_o.flatten(0, 1)
assert torch.allclose(by_block, by_w_o, atol=1e-3)
still = [torch.allclose(f(*two(x)), f(*two(x_new)), atol=1e-3) for f in joined.values()]
assert still == [False, False, True, True]

# %% [markdown]
# An average of two averages is one average. Adding is fine if each head has gone through a block of its own: that is what $W^O$ does to
# heads that stand side by side.
#
# ## What this does not show
#
# It does not show that heads share out the work: nothing in the loss asks them to. Nor that they are many pairs of eyes or a committee, as
# you will often read: a committee averages its votes, and averaged, our heads lose the order. Nor that one head fails everywhere: this task
# was made to need two looks. In translation one head costs [Vaswani et al. (2017)](references.md#vaswani-2017) 0.9 BLEU, of 100.
#
# ## Exercises
#
# The [exercise notebook](exercises/05_why_many_heads.ipynb) has four: predict what one average keeps (●), find the bug in two heads that
# answer as one (●●), set two heads by hand for another question (●●), and measure what a straight line can read (●●●).
#
# ## Summary
#
# | what is brought | code | shape | who can read the order |
# |---|---|---|---|
# | $\frac12 v_A + \frac12 v_B$ | `weights @ v` | (n_q, d_v) | nobody |
# | $\alpha v_A + (1 - \alpha) v_B$ | `weights @ v` | (n_q, d_v) | a network, no matrix |
# | $[\,\mathrm{head}_1 \; \mathrm{head}_2\,]$ | `torch.cat(…, dim=-1)` | (n_q, 2 · d_v) | a matrix |
#
# ## Further reading
#
# - [Vaswani et al. (2017)](references.md#vaswani-2017), section 3.2.2, give the reason in half a sentence: averaging.
# - [Liu et al. (2021)](references.md#liu-2021) ask whether it takes several heads, or several layers of one.
# - [Michel et al. (2019)](references.md#michel-2019) take heads away after training.
