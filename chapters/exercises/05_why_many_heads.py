# %% [markdown]
# # Exercises: why many heads
#
# Four exercises for [chapter 05](../05_why_many_heads.ipynb), 30 minutes and an optional 20:
#
# | | exercise | what you practise | minutes | points |
# |---|---|---|---|---|
# | ● | `05-average` | predict what one average keeps, and what two heads cost | 5 | 2 |
# | ●● | `05-bug` | find why two heads give one answer | 10 | 2 |
# | ●● | `05-hand` | set two heads by hand for another question | 15 | 4 |
# | ●●● | `05-line` | measure what a matrix can read from one average, and say why (optional) | 20 | 4 |
#
# Half of the points of an exercise go by the share of its properties that hold, the other half is earned if all of them do.
#
# Each one is a statement, a place to write, and a check. The check names what holds and what does not, and asks you a
# question. Run it as often as you like. A function that you write returns what is asked for, and leaves what it was given as it was.
#
# - `hint("05-hand")` gives the next of a few hints.
# - `solution("05-hand")` shows a worked solution, after your first attempt.
#   They are also [on one page](05_why_many_heads_solutions.md).
# - `progress()` lists what you have passed. It is kept on your machine and sent nowhere.

# %%
import torch

from mha_teach import scaled_dot_product_attention
from mha_teach.exercises import check, hint, progress, solution
from mha_teach.tasks import encode_lookups

_ = torch.manual_seed(5)

# %% [markdown]
# ## ● What one average keeps
#
# A head looks at two tokens, a and b. Their values are one number each, $v_a = 14$ and $v_b = 4$. Then the two values change places: a has
# 4 and b has 14.
#
# > **Predict.** Fill in, without running anything:
# >
# > - `even`: what the head returns *after* the exchange, with a weight of ½ on each token;
# > - `uneven`: what it returns after the exchange, with a weight of ¾ on a and ¼ on b;
# > - `averages`: each token holds one of 6 letters, perhaps the same one, and the values are one-hot. With ½ and ½, how many different
# >   outputs are there?
# > - `two`: the parameters of `MultiHeadAttention(20, num_heads=2, bias=False)`;
# > - `wide`: the parameters of `MultiHeadAttention(20, num_heads=2, d_k=20, bias=False)`, whose values are as wide as its keys.

# %%
kept = {
    "even": None,
    "uneven": None,
    "averages": None,
    "two": None,
    "wide": None,
}

# %%
check("05-average", kept)

# %% [markdown]
# ## ●● Two heads, one answer
#
# This function has two heads, each with matrices of its own, stacked along the first axis. It runs, and the output has the right shape.


# %%
def two_heads(x, context, w_q, w_k, w_v, w_o):
    """Let the tokens of x ask with two heads, and lead the answers to d_model."""
    q, k, v = x @ w_q, context @ w_k, context @ w_v  # (head, n, d_k)
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1).mean(dim=0)
    head_outputs = weights @ v  # (head, n_q, d_v)
    return head_outputs.transpose(0, 1).flatten(1) @ w_o


# %% [markdown]
# Here it gets the two heads that were set by hand in the chapter: one asks for the place a, the other for the place b. The places hold the
# letters 3, 8, 5 and 1, and the question is a = 1, b = 3. Beside it, the two heads one by one. Then the letters at a and b change places.

# %%
letter, place, first, second = torch.eye(64).split(16, dim=1)
w_q = 9 * torch.stack([first, second])            # (2, 64, 16)
w_k, w_v = torch.stack([place, place]), torch.stack([letter, letter])
w_o, outputs = torch.eye(32), []
for four in ([3, 8, 5, 1], [3, 1, 5, 8]):
    letters = torch.tensor([four + [0] * 12])
    x = encode_lookups(letters, torch.tensor([[1, 3]]))[0]          # (17, 64)
    outputs.append(two_heads(x[-1:], x, w_q, w_k, w_v, w_o))
    q, k, v = x[-1:] @ w_q, x @ w_k, x @ w_v
    one_by_one = [scaled_dot_product_attention(q[i], k[i], v[i]) for i in (0, 1)]
    expected = torch.cat([head.output for head in one_by_one], dim=-1) @ w_o
    print("same shape: ", outputs[-1].shape == expected.shape)
    print("same output:", torch.allclose(outputs[-1], expected, atol=1e-3))
print("the two answers differ:", not torch.allclose(*outputs, atol=1e-3))

# %% [markdown]
# One line is wrong. Find it, mend it in the cell above, and run both cells again. Then check: it tries inputs that the
# cell above does not.
#
# > **Predict.** Before you change anything: what is `outputs[0]`, and why does it not change?

# %%
check("05-bug", two_heads)

# %% [markdown]
# ## ●● Two heads by hand
#
# Another question about the letters. The last token names the places $a$ and $b$ as before, but wants
#
# - from head 0: the letter at $b$;
# - from head 1: the letter at the place *right after* $a$. ($a$ is never the last place.)
#
# Set the matrices. A token is `letters + 3 * places` numbers: first its letter, then its place, then, in the token that asks, $a$ and $b$.
# In each group one number is 2 and the others are 0, or all are 0.
#
# Return three tensors with the two heads on their first axis:
#
# | tensor | shape | what is asked of it |
# |---|---|---|
# | `w_q`, `w_k` | `(2, d_model, d_k)` | the place that is wanted gets at least 0.9 of the weight; you choose $d_k$ |
# | `w_v` | `(2, d_model, letters)` | the largest number that a head brings is that of the letter |
#
# Numbers of places and letters vary; there are at most 16 places.


# %%
def by_hand(places, letters):
    return None


# %%
check("05-hand", by_hand)

# %% [markdown]
# ## ●●● What a linear readout can read
#
# One head looks at two letters, with the weight $\alpha$ on the first and $1 - \alpha$ on the second. Someone says: with uneven weights
# the order is in the average, so one head is enough. How much of it can be read?
#
# Take 10 letters with one-hot values, all 100 ordered pairs, and $\alpha = 0.7$. Let `seen` be the 100 averages, (100, 10), and
# `answer` the number of the letter to be named, (100,). A readout is fitted by least squares:
# `readout = torch.linalg.lstsq(seen, torch.eye(10)[answer]).solution`, and what it answers is `(seen @ readout).argmax(dim=-1)`.
#
# > **Predict.** Of the 100 pairs, how many first letters will a matrix get right? How many second letters?
#
# Count pairs, from 0 to 100 (in `bent` rounding has a say: five more or fewer will do):
#
# - `even`: at $\alpha = 0.5$, the most first letters that any readout can get right, whatever it is;
# - `first`: at 0.7, the first letters that the matrix gets right;
# - `second`: at 0.7, the second letters, with a matrix fitted to them;
# - `turned`: the second letters again, with the weights exchanged, $\alpha = 0.3$;
# - `bent`: at 0.7, the second letters if the readout also sees the squares and the cubes of the average:
#   `seen = torch.cat([average, average**2, average**3], dim=1)`.
#
# Then say `why`, in a sentence or two: what does the matrix lack? No program can judge that sentence. Compare it with the worked
# solution.

# %%
# Measure here.

# %%
readable = {
    "even": None,
    "first": None,
    "second": None,
    "turned": None,
    "bent": None,
    "why": "",
}

# %%
check("05-line", readable)

# %% [markdown]
# ## Where you stand
#
# Run `progress()` in a new cell. What is left is a good place to start next time.
#
# Back to [chapter 05](../05_why_many_heads.ipynb).
