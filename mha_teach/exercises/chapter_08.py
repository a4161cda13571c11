"""Exercises of chapter 08: the output as a sum over heads, term by term."""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import nn

from mha_teach import MultiHeadAttention
from mha_teach.exercises import _chapter_08_right as right
from mha_teach.exercises.bank import (
    LOST_AXIS,
    Draw,
    Exercise,
    Inputs,
    Property,
    Wrong,
    entry,
    reason,
    shape,
    slip,
)


def sums(c_0, c_1, c_2, bias, n_k, seen):
    """Say what becomes of one number of the output, and of one row of weights."""
    output = c_0 + c_1 + c_2 + bias
    return {
        "output": output,
        "without": output - c_1,
        "off": bias,
        "shares": (c_0 + c_1 + c_2) / 3 + bias,
        "orders": 3 * 2 * 1,
        "keys": n_k,
    }


def _terms(draw: Draw) -> Inputs:
    c_0, c_1 = draw.one_of(5, 7), -draw.one_of(2, 4)
    total = draw.one_of(9, 15)  # divisible by 3, and not 3 * bias
    return {
        "c_0": c_0,
        "c_1": c_1,
        "c_2": total - c_0 - c_1,
        "bias": draw.one_of(2, total // 5),
        "n_k": draw.one_of(16, 20),
        "seen": draw.one_of(11, 13),
    }


PREDICT = Exercise(
    id="08-predict",
    title="One number, three heads",
    kind="predict",
    level=1,
    minutes=5,
    points=2,
    reference=sums,
    draw=_terms,
    axes={},
    decisive=("c_1", "bias", "n_k"),
    properties=(
        Property(
            "output",
            "the output",
            "Write the output as a sum. How often does the bias stand in it?",
            observe=entry("output"),
        ),
        Property(
            "without",
            "the output without head 1",
            "Which term is missing from the sum, and with which sign did it stand "
            "there? Which terms are left?",
            observe=entry("without"),
        ),
        Property(
            "off",
            "the output with all heads off",
            "Set all three gates to 0 in the sum. What is left?",
            observe=entry("off"),
        ),
        Property(
            "shares",
            "the output under a gate of 1/3 for each head",
            "Which terms does a gate multiply, and which not?",
            observe=entry("shares"),
        ),
        Property(
            "orders",
            "in how many orders the heads compute the same",
            "Who can sit on the first place, and who then on the second?",
            observe=entry("orders"),
        ),
        Property(
            "keys",
            "how many keys have weight under a score weight of 0",
            "What is 0 times a score, and what is 0 times -1e9?",
            observe=entry("keys"),
        ),
    ),
    hints=(
        "Write the number as a sum, with a gate for each head. Which terms has it, and "
        "which of them have a gate?",
        "output = g_0 c_0 + g_1 c_1 + g_2 c_2 + bias, for each number of the output. A "
        "gate multiplies contributions. Nothing else in the sum changes.",
        "For the keys: after the multiplication by 0, can softmax still tell a "
        "forbidden key from an allowed one?",
    ),
    explanation=(
        "The output is the sum of the contributions and one bias. A head that is off "
        "is missing from it, which may make a number larger; with all heads off the "
        "bias is left. A gate of 1/3 takes away two thirds of what the heads bring "
        "and leaves the bias alone. The three terms can be added in 3 · 2 · 1 orders. "
        "A score weight of 0 makes all scores equal, those of -1e9 too: every key has "
        "weight, forbidden or not."
    ),
    wrong=(
        Wrong(
            "Each head brings the bias.",
            "output",
            slip(sums, "c_2 + bias\n", "c_2 + 3 * bias\n"),
            "You added the bias for each head. To which head does it belong?",
        ),
        Wrong(
            "Heads are averaged.",
            "output",
            slip(sums, "c_0 + c_1 + c_2 + bias\n", "(c_0 + c_1 + c_2) / 3 + bias\n"),
            "That is a mean of the heads. Does W^O average what it meets?",
        ),
        Wrong(
            "The output is what the heads bring.",
            "output",
            slip(sums, "c_0 + c_1 + c_2 + bias\n", "c_0 + c_1 + c_2\n"),
            "That is all that the heads bring. What else does out_proj add?",
        ),
        Wrong(
            "Without a head there is less.",
            "without",
            slip(sums, "output - c_1", "output + c_1"),
            "You made the number smaller. What is left of a sum when a negative term "
            "goes?",
        ),
        Wrong(
            "What the heads bring is all that is left.",
            "without",
            slip(sums, "output - c_1", "c_0 + c_2"),
            "That is what the other two heads bring. What else stood in the sum, and "
            "has it gone?",
        ),
        Wrong(
            "The other heads make up for it, as in dropout.",
            "without",
            slip(sums, "output - c_1", "(c_0 + c_2) * 3 / 2 + bias"),
            "You made the other two heads larger. What are their gates?",
        ),
        Wrong(
            "A head takes its share of the bias along.",
            "without",
            slip(sums, "output - c_1", "c_0 + c_2 + bias * 2 / 3"),
            "You took away a third of the bias as well. Whose is the bias?",
        ),
        Wrong(
            "Without heads there is nothing.",
            "off",
            slip(sums, '"off": bias', '"off": 0'),
            "The three terms are gone. Which part of out_proj asks no head?",
        ),
        Wrong(
            "Each head leaves its bias behind.",
            "off",
            slip(sums, '"off": bias', '"off": 3 * bias'),
            "You left a bias for each head. How often does it stand in the sum?",
        ),
        Wrong(
            "Gates that add up to one are neutral.",
            "shares",
            slip(sums, "(c_0 + c_1 + c_2) / 3 + bias,", "output,"),
            "You left the output as it was. What is a third of each term?",
        ),
        Wrong(
            "A gate multiplies the whole output.",
            "shares",
            slip(sums, "(c_0 + c_1 + c_2) / 3 + bias,", "output / 3,"),
            "You divided the bias too. Does a gate act before W^O or after it?",
        ),
        Wrong(
            "Each head has its gate and brings its bias.",
            "shares",
            slip(
                sums,
                "(c_0 + c_1 + c_2) / 3 + bias,",
                "(c_0 + c_1 + c_2) / 3 + 3 * bias,",
            ),
            "The thirds are right, the bias is there three times. How often does it "
            "stand in the sum?",
        ),
        Wrong(
            "Head 0 is the first head.",
            "orders",
            slip(sums, '"orders": 3 * 2 * 1', '"orders": 1'),
            "You allow one order. Does a sum change when its terms change places?",
        ),
        Wrong(
            "Heads can be turned, like a wheel.",
            "orders",
            slip(sums, '"orders": 3 * 2 * 1', '"orders": 3'),
            "That is one order for each head on the first place. How many are left "
            "for the second?",
        ),
        Wrong(
            "What is forbidden stays forbidden.",
            "keys",
            slip(sums, '"keys": n_k', '"keys": seen'),
            "You count the allowed keys. The mask sits in the scores: what does the "
            "score weight do to it?",
        ),
        Wrong(
            "A weight of 0 switches the head off.",
            "keys",
            slip(sums, '"keys": n_k', '"keys": 0'),
            "Softmax always gives away its whole. To whom, if all scores are 0?",
        ),
        Wrong(
            "The mask is turned over.",
            "keys",
            slip(sums, '"keys": n_k', '"keys": n_k - seen'),
            "You count the forbidden keys. That takes a score weight below 0; what "
            "happens at 0?",
        ),
    ),
    right=(right.sums_by_running, right.sums_by_hand, right.sums_in_numpy),
)


def terms(head_outputs, out_weight, out_bias):
    """Return one term per head and, last, the bias: they add up to the output."""
    h, d_v = head_outputs.shape[1], head_outputs.shape[3]
    blocks = out_weight.T.unflatten(0, (h, d_v))  # (head, d_v, d_model)
    contributions = head_outputs @ blocks
    rest = out_bias.expand_as(contributions[:, :1])
    return torch.cat([contributions, rest], dim=1)


def _heads_and_projection(draw: Draw) -> Inputs:
    batch, n, h, d_v = draw.primes(4)
    d_model = h * d_v
    return {
        "head_outputs": draw.normal(batch, h, n, d_v),
        "out_weight": draw.normal(d_model, d_model) / d_model**0.5,
        "out_bias": draw.normal(d_model),
    }


def _silent_heads(draw: Draw) -> Inputs:
    inputs = _heads_and_projection(draw)
    inputs["head_outputs"].zero_()
    return inputs


def _nothing_to_mix(draw: Draw) -> Inputs:
    inputs = _heads_and_projection(draw)
    d_model = len(inputs["out_bias"])
    inputs["out_weight"].copy_(torch.eye(d_model))
    inputs["out_bias"].zero_()
    return inputs


def _one_of_each(draw: Draw) -> Inputs:
    (h,) = draw.primes(1)  # and so is d_model, since d_v is 1
    return {
        "head_outputs": draw.normal(1, h, 1, 1),
        "out_weight": draw.normal(h, h) / h**0.5,
        "out_bias": draw.normal(h),
    }


_BLOCKS = "out_weight.T.unflatten(0, (h, d_v))"
_ROWS = "out_weight.unflatten(0, (h, d_v))"
_REST = "out_bias.expand_as(contributions[:, :1])"

BUG = Exercise(
    id="08-bug",
    title="Terms that do not add up",
    kind="find the bug",
    level=2,
    minutes=10,
    points=2,
    reference=terms,
    draw=_heads_and_projection,
    axes={
        "head_outputs": "batch h n d_v",
        "out_weight": "d_model h·d_v",
        "out_bias": "d_model",
        "returns": "batch term n d_model",
    },
    properties=(
        Property(
            "shape",
            "one term for each head and one more, each d_model wide",
            "How many terms are there, and how wide is one? Write the shape after "
            "each line.",
            observe=shape,
        ),
        Property(
            "bias",
            "silent heads: the last term is the bias, the others are zero",
            "With head outputs of zero only the bias is left. In which term must it "
            "stand, and how often?",
            draw=_silent_heads,
        ),
        Property(
            "places",
            "W^O the identity, no bias: each head keeps to its own numbers",
            "Term i should be head i at its own places, as large as it came, and zero "
            "elsewhere; the last should be zero. Which of your terms is not?",
            draw=_nothing_to_mix,
        ),
        Property(
            "terms",
            "each term is what out_proj makes of that head alone",
            "Let one head speak and silence the others. How does out_proj use its "
            "weight, and how does your code?",
        ),
        Property(
            "single",
            "one sentence, one token, one number per head: all four axes stay",
            LOST_AXIS,
            on_error=LOST_AXIS,
            draw=_one_of_each,
        ),
    ),
    hints=(
        "Every shape is right, so shapes will not help. Send in something whose terms "
        "you know: head outputs of zero, or W^O the identity.",
        "The identity is its own transpose. What does a test with it fail to see?",
        "nn.Linear multiplies by the transpose of its weight. Which axis of out_weight "
        "has the numbers that come in, side by side, head by head?",
    ),
    explanation=(
        "The bug was in the second line: the blocks were cut from the rows of "
        "out_weight, which are the numbers that go out. A head owns columns of "
        "out_weight, rows of its transpose: `out_weight.T.unflatten(0, (h, d_v))`. "
        "Where h·d_v = d_model the matrix is square, so both cuts have the same shape, "
        "and with the identity, or any symmetric matrix, even the same numbers. That "
        "the terms add up to the output is one line to test."
    ),
    given=slip(terms, _BLOCKS, _ROWS),
    wrong=(
        Wrong(
            "The bias belongs to the sum, not to the terms.",
            "shape",
            slip(terms, "torch.cat([contributions, rest], dim=1)", "contributions"),
            "You have as many terms as there are heads. Where is the one that belongs "
            "to no head?",
        ),
        Wrong(
            "It is each block that has to be transposed.",
            "shape",
            slip(terms, _BLOCKS, f"{_ROWS}.mT"),
            "Your blocks are d_model by d_v. Which axis of a block must meet the d_v "
            "of a head? And which axis of out_weight is to be cut, head by head?",
        ),
        Wrong(
            "The output is all that counts.",
            "shape",
            slip(
                terms,
                "torch.cat([contributions, rest], dim=1)",
                "contributions.sum(dim=1) + out_bias",
            ),
            "That has the shape of the output. Which axis should tell the terms apart?",
        ),
        Wrong(
            "Each head goes through all of out_proj, its bias too.",
            "bias",
            slip(terms, "head_outputs @ blocks", "head_outputs @ blocks + out_bias"),
            "Each of your heads brings a bias. How many are there in the output?",
        ),
        Wrong(
            "The heads share the bias.",
            "bias",
            slip(
                terms,
                "head_outputs @ blocks",
                "head_outputs @ blocks + out_bias / h",
                _REST,
                "torch.zeros_like(contributions[:, :1])",
            ),
            "You dealt the bias out among the heads. Which term should hold all of it?",
        ),
        Wrong(
            "Head i owns every h-th row.",
            "places",
            slip(
                terms,
                _BLOCKS,
                "out_weight.T.unflatten(0, (d_v, h)).transpose(0, 1)",
            ),
            "Your head 0 meets rows 0, h, 2h and so on. Do the numbers of a head stand "
            "together or apart?",
        ),
        Wrong(
            "A head's part is its share of the whole.",
            "places",
            slip(
                terms,
                "head_outputs @ blocks",
                "(head_outputs @ blocks).mean(dim=1, keepdim=True).repeat(1, h, 1, 1)",
            ),
            "Your heads all bring the same. Whose numbers make the term of head i?",
        ),
        Wrong(
            "A sum of h terms is a mean.",
            "places",
            slip(terms, "head_outputs @ blocks", "head_outputs @ blocks / h"),
            "Your terms are h times too small. Does the sum over heads divide by "
            "anything?",
        ),
        Wrong(
            "A term is the output as far as this head.",
            "places",
            slip(
                terms,
                "head_outputs @ blocks",
                "(head_outputs @ blocks).cumsum(dim=1)",
            ),
            "Each of your terms holds those before it as well. What does one head "
            "bring by itself?",
        ),
        Wrong(
            "The last term is what it all comes to.",
            "places",
            slip(terms, _REST, "contributions.sum(dim=1, keepdim=True) + out_bias"),
            "Your heads are right, and your last term adds them up. Which part of the "
            "output belongs to no head?",
        ),
        Wrong(
            "Merging came before, in the order of memory.",
            "places",
            slip(
                terms,
                "head_outputs @ blocks",
                "head_outputs.reshape(len(head_outputs), -1, h, d_v)"
                ".transpose(1, 2) @ blocks",
            ),
            "You cut the head outputs anew and mixed the tokens. Which axis is "
            "already that of the heads?",
        ),
        Wrong(
            "The last term is whatever is missing.",
            "terms",
            slip(
                terms,
                _BLOCKS,
                _ROWS,
                _REST,
                "(head_outputs.transpose(1, 2).flatten(2) @ out_weight.T + out_bias)"
                "[:, None] - contributions.sum(dim=1, keepdim=True)",
            ),
            "Your terms add up because the last one makes up for the others. What do "
            "you get for one head alone?",
        ),
        Wrong(
            "Axes of size 1 are of no use.",
            "single",
            slip(
                terms,
                "[contributions, rest], dim=1)",
                "[contributions, rest], dim=1).squeeze()",
            ),
            "Your result has lost its axes of size 1. How is a caller to know which "
            "axis is which?",
        ),
    ),
    right=(
        right.terms_by_head,
        right.terms_by_einsum,
        right.terms_by_switching_off,
        right.terms_in_numpy,
    ),
)


def gated(head_outputs, w_o, gate):
    """Multiply each head by its gate, then merge the heads and apply W^O."""
    scaled = head_outputs * gate[..., None, None]
    merged = scaled.transpose(-3, -2).flatten(-2)
    return merged @ w_o


def _gated(draw: Draw, *lead, h, n, d_v, d_model) -> Inputs:
    return {
        "head_outputs": draw.normal(*lead, h, n, d_v),
        "w_o": draw.normal(h * d_v, d_model) / (h * d_v) ** 0.5,
        "gate": draw.normal(h),
    }


def _batched(draw: Draw) -> Inputs:
    batch, h, n, d_v, d_model = draw.primes(5)
    return _gated(draw, batch, h=h, n=n, d_v=d_v, d_model=d_model)


def _unbatched(draw: Draw) -> Inputs:
    h, n, d_v, d_model = draw.primes(4)
    return _gated(draw, h=h, n=n, d_v=d_v, d_model=d_model)


def _twice_batched(draw: Draw) -> Inputs:
    more, batch, h, n, d_v, d_model = draw.primes(6)
    return _gated(draw, more, batch, h=h, n=n, d_v=d_v, d_model=d_model)


def _all_on(draw: Draw) -> Inputs:
    inputs = _batched(draw)
    inputs["gate"].fill_(1)
    return inputs


def _all_off(draw: Draw) -> Inputs:
    inputs = _batched(draw)
    inputs["gate"].zero_()
    return inputs


def _one_off(draw: Draw) -> Inputs:
    inputs = _all_on(draw)
    inputs["gate"][0] = 0
    return inputs


def _as_many_sequences_as_heads(draw: Draw) -> Inputs:
    h, n, d_v, d_model = draw.primes(4)
    return _gated(draw, h, h=h, n=n, d_v=d_v, d_model=d_model)


def _one_for_each(sequences: Callable[[Draw], Inputs]) -> Callable[[Draw], Inputs]:
    """Draw a gate of its own for each sequence."""

    def drawn(draw: Draw) -> Inputs:
        inputs = sequences(draw)
        inputs["gate"] = draw.normal(*inputs["head_outputs"].shape[:-2])
        return inputs

    return drawn


def _one_token(draw: Draw) -> Inputs:
    h, d_v = draw.primes(2)
    return _gated(draw, 1, h=h, n=1, d_v=d_v, d_model=1)


_GATE_HAS_A_BATCH = (
    "Here the gate is (batch, head). Along which of the two do you count the heads, "
    "and which axes of head_outputs does it not have?"
)
_GATE_HAS_TWO_MORE = (
    "Here the gate is (more, batch, head). Which index adds two axes at its end, "
    "however many come before the heads?"
)
_WHICH_GATE = (
    "Here there are as many sequences as heads. By which sign does your code tell a "
    "gate (head,) from one (batch, head)?"
)

GATE = Exercise(
    id="08-gate",
    title="A gate for each head",
    kind="write",
    level=2,
    minutes=15,
    points=4,
    reference=gated,
    draw=_batched,
    axes={
        "head_outputs": "more batch h n d_v",
        "w_o": "h·d_v d_model",
        "gate": "more batch h",
        "returns": "batch n d_model",
    },
    properties=(
        Property(
            "shape",
            "one row of width d_model per token",
            "Write the shape of each factor. Along which axis does a gate belong, and "
            "which two axes come after it?",
            observe=shape,
        ),
        Property(
            "on",
            "all gates 1: the heads side by side, times W^O",
            "What does your gate of 1 do to a head? And with no gate at all, is what "
            "remains the output of chapter 7?",
            draw=_all_on,
        ),
        Property(
            "off",
            "all gates 0: zeros",
            "Each term of the sum has its gate as a factor. What is left of 0 times a "
            "head?",
            draw=_all_off,
        ),
        Property(
            "one off",
            "the gate of head 0 is 0: its term is missing, the others stay",
            "Which numbers of the merged heads are those of head 0?",
            draw=_one_off,
        ),
        Property(
            "any",
            "any gates, above 1 and below 0 too",
            "Double one gate. By which factor does that head's term grow?",
        ),
        Property(
            "unbatched",
            "no batch axis",
            "Without a batch axis, where is the head? Count from the end.",
            draw=_unbatched,
            axes="n d_model",
            on_error="Without a batch axis, where is the head? Count from the end.",
        ),
        Property(
            "batched twice",
            "two batch axes",
            "With two batch axes, where is the head? Count from the end.",
            draw=_twice_batched,
            axes="more batch n d_model",
            on_error="With two batch axes, where is the head? Count from the end.",
        ),
        Property(
            "per sequence",
            "a gate of its own for each sequence: (batch, head)",
            _GATE_HAS_A_BATCH,
            draw=_one_for_each(_batched),
            on_error=_GATE_HAS_A_BATCH,
        ),
        Property(
            "as many",
            "as many sequences as heads, one gate for all of them",
            _WHICH_GATE,
            draw=_as_many_sequences_as_heads,
            on_error=_WHICH_GATE,
        ),
        Property(
            "as many, each",
            "as many sequences as heads, a gate of its own for each",
            _WHICH_GATE,
            draw=_one_for_each(_as_many_sequences_as_heads),
            on_error=_WHICH_GATE,
        ),
        Property(
            "per sequence, twice",
            "two batch axes, and a gate for each sequence: (more, batch, head)",
            _GATE_HAS_TWO_MORE,
            draw=_one_for_each(_twice_batched),
            axes="more batch n d_model",
            on_error=_GATE_HAS_TWO_MORE,
        ),
        Property(
            "single",
            "one sequence of one token, d_model = 1: all axes stay",
            LOST_AXIS,
            on_error=LOST_AXIS,
            draw=_one_token,
        ),
    ),
    hints=(
        "Write the shape of each factor in the sum. Which axis of head_outputs counts "
        "the heads, from the end, and how many axes come after it?",
        "Three steps: multiply, merge, project. Shapes are aligned from the right: "
        "which shape lets a gate (head,) meet (…, head, n, d_v)? And which two axes "
        "change places before heads stand side by side?",
        "gate[..., None] adds one axis of size 1 at the end, whatever stands before "
        "it. transpose and flatten count axes from the end, too: -1 is the last.",
    ),
    explanation=(
        "The gate is a factor on the head outputs, after attention and before W^O. "
        "Because W^O is linear it might as well multiply the contributions or the "
        "blocks of W^O. Counting axes from the back makes one line do for no batch "
        "axis, for several, and for a gate of its own for each sequence."
    ),
    wrong=(
        Wrong(
            "A number per head fits wherever there is a head axis.",
            "shape",
            slip(gated, "gate[..., None, None]", "gate[..., None]"),
            "Your gate lies along the tokens. How many axes come after that of the "
            "heads?",
        ),
        Wrong(
            "The merged heads are the output.",
            "shape",
            slip(gated, "merged @ w_o", "merged"),
            "The last axis is h·d_v wide. What leads to d_model?",
        ),
        Wrong(
            "The heads are added before W^O.",
            "shape",
            slip(gated, "scaled.transpose(-3, -2).flatten(-2)", "scaled.sum(dim=-3)"),
            "What meets W^O is d_v wide, like one head. Which block of W^O should each "
            "head meet?",
        ),
        Wrong(
            "Merging is only a matter of shape.",
            "on",
            slip(
                gated,
                "scaled.transpose(-3, -2).flatten(-2)",
                "scaled.reshape(*scaled.shape[:-3], scaled.shape[-2], -1)",
            ),
            "In memory your heads lie one after the other, tokens inside. Which order "
            "does W^O expect?",
        ),
        Wrong(
            "The heads are averaged.",
            "on",
            slip(gated, "merged @ w_o", "merged @ w_o / gate.shape[-1]"),
            "Your output is h times too small. Does W^O average the heads?",
        ),
        Wrong(
            "Gates are shares that add up to one.",
            "on",
            slip(
                gated,
                "gate[..., None, None]",
                "(gate / gate.sum(-1, keepdim=True))[..., None, None]",
            ),
            "You divided the gates by their sum. Which gate leaves a head as it is?",
        ),
        Wrong(
            "Gates compete, as keys do.",
            "on",
            slip(gated, "gate[..., None, None]", "gate.softmax(-1)[..., None, None]"),
            "You took a softmax of the gates. What does the formula do with them?",
        ),
        Wrong(
            "A gate is a valve between 0 and 1.",
            "on",
            slip(gated, "gate[..., None, None]", "gate.sigmoid()[..., None, None]"),
            "You bent the gates by a sigmoid. What is it at 1?",
        ),
        Wrong(
            "A gate says how much comes on top.",
            "on",
            slip(gated, "gate[..., None, None]", "(1 + gate[..., None, None])"),
            "A gate of 1 doubles your heads. What is a head times 1?",
        ),
        Wrong(
            "A gate says how much is held back.",
            "on",
            slip(gated, "gate[..., None, None]", "(1 - gate[..., None, None])"),
            "A gate of 1 silences your heads. Which gate does so in the formula?",
        ),
        Wrong(
            "A gate is added to what it opens.",
            "on",
            slip(gated, "head_outputs * gate", "head_outputs + gate"),
            "You add the gate to every number of its head. How does the formula join "
            "the two?",
        ),
        Wrong(
            "The gates come in later.",
            "off",
            slip(gated, "head_outputs * gate[..., None, None]", "head_outputs"),
            "All gates are 0 here, and all heads came through. On which line does your "
            "code use the gate?",
        ),
        Wrong(
            "A head that is off is left as it came.",
            "off",
            slip(
                gated,
                "head_outputs * gate[..., None, None]",
                "head_outputs.where(gate[..., None, None] == 0,"
                " head_outputs * gate[..., None, None])",
            ),
            "Where the gate is 0 you keep the head as it came. What is 0 times a head?",
        ),
        Wrong(
            "Without heads the mean is left.",
            "off",
            slip(
                gated,
                "head_outputs * gate[..., None, None]",
                "head_outputs * gate[..., None, None]"
                " + head_outputs.mean(-2, keepdim=True) * (1 - gate[..., None, None])",
            ),
            "You put the mean over the tokens in its place. That is another way to "
            "ablate; what does the formula leave?",
        ),
        Wrong(
            "The gates are repeated until they fit.",
            "one off",
            slip(
                gated,
                "scaled = head_outputs * gate[..., None, None]\n",
                "scaled = head_outputs\n",
                "merged @ w_o",
                "(merged * gate.repeat(*[1] * (gate.dim() - 1),"
                " head_outputs.shape[-1])[..., None, :]) @ w_o",
            ),
            "repeat deals the gates out number by number. Do the numbers of a head "
            "stand together or apart?",
        ),
        Wrong(
            "The remaining heads make up for one that is off.",
            "one off",
            slip(
                gated,
                "merged @ w_o",
                "merged @ w_o * gate.shape[-1]"
                " / (gate != 0).sum(-1).clamp_min(1)[..., None, None]",
            ),
            "You made the other terms larger, as dropout does. What are their gates?",
        ),
        Wrong(
            "A gate has no sign.",
            "any",
            slip(gated, "gate[..., None, None]", "gate.abs()[..., None, None]"),
            "Your gates have lost their sign. What does a gate of -1 make of a term?",
        ),
        Wrong(
            "A gate is open or shut.",
            "any",
            slip(gated, "gate[..., None, None]", "(gate != 0)[..., None, None]"),
            "Your gates are all 0 or 1. What should a gate of one half do?",
        ),
        Wrong(
            "A gate lies between 0 and 1.",
            "any",
            slip(gated, "gate[..., None, None]", "gate.clamp(0, 1)[..., None, None]"),
            "You cut the gates off at 0 and 1. Does the formula forbid others?",
        ),
        Wrong(
            "Both the head and its block have the gate.",
            "any",
            slip(
                gated,
                "merged @ w_o",
                "merged @ (w_o.unflatten(0, (gate.shape[-1], -1))"
                " * gate.reshape(-1, gate.shape[-1])[0][:, None, None]).flatten(0, 1)",
            ),
            "A gate of 2 makes your term four times as large. How often does the gate "
            "stand in a term?",
        ),
        Wrong(
            "There is always a batch axis.",
            "unbatched",
            slip(gated, "transpose(-3, -2)", "transpose(1, 2)"),
            "Without a batch axis the heads are axis 0. How do you name that axis in "
            "every case?",
        ),
        Wrong(
            "In a loop over heads, head i is [:, i].",
            "unbatched",
            slip(
                gated,
                "scaled.transpose(-3, -2).flatten(-2)",
                "torch.cat([scaled[:, i] for i in range(gate.shape[-1])], dim=-1)",
            ),
            "You take head i along axis 1. Without a batch axis, where is the head? "
            "Count from the end: which index is it?",
        ),
        Wrong(
            "There is one batch axis or none.",
            "batched twice",
            slip(
                gated,
                "scaled.transpose(-3, -2)",
                "scaled.transpose(*((0, 1) if scaled.dim() == 3 else (1, 2)))",
            ),
            "With two batch axes the heads are axis 2. What calls it so in every case?",
        ),
        Wrong(
            "One gate serves the whole batch.",
            "per sequence",
            slip(gated, "gate[..., None, None]", "gate[:, None, None]"),
            "Your two new axes come after the first one. Which index adds them at the "
            "end?",
        ),
        Wrong(
            "The gate of the first sequence is that of all.",
            "per sequence",
            slip(
                gated,
                "gate[..., None, None]",
                "gate.reshape(-1, gate.shape[-1])[0][:, None, None]",
            ),
            "Every sequence has the gate of the first one. Where did the batch axis "
            "go?",
        ),
        Wrong(
            "A gate as long as the batch is one for each sequence.",
            "as many",
            slip(
                gated,
                "gate[..., None, None]",
                "(gate[:, :, None, None] if head_outputs.dim() == 4"
                " and len(gate) == len(head_outputs) else gate[..., None, None])",
            ),
            "Here the gate is (head,), as long as the batch by chance, and you ask it "
            "for a second axis. What tells you how many axes it has?",
        ),
        Wrong(
            "A gate as long as there are heads is one for all.",
            "as many, each",
            slip(
                gated,
                "gate[..., None, None]",
                "(gate[:, None, None] if len(gate) == head_outputs.shape[-3]"
                " else gate[..., None, None])",
            ),
            "Here the gate is (batch, head), and its heads lie along d_v in your code. "
            "Does the length of a gate say how many axes it has?",
        ),
        Wrong(
            "A gate has one axis or two.",
            "per sequence, twice",
            slip(
                gated,
                "gate[..., None, None]",
                "(gate[:, None, None] if gate.dim() == 1 else gate[:, :, None, None])",
            ),
            "Here the gate is (more, batch, head), and its heads lie along d_v in your "
            "code. Which index puts new axes at the end, whatever comes before?",
        ),
        Wrong(
            "Axes of size 1 are of no use.",
            "single",
            slip(gated, "merged @ w_o", "(merged @ w_o).squeeze()"),
            "Your result has lost its axes of size 1. How is a caller to know which "
            "axis is which?",
        ),
    ),
    right=(
        right.gate_by_einsum,
        right.gate_by_loop,
        right.gate_on_merged_heads,
        right.gate_on_contributions,
        right.gate_in_numpy,
    ),
)


def swaps(n, d_model, h, d_k, d_v):
    """Exchange heads 0 and 2 of a module, and count what changes."""
    module = MultiHeadAttention(d_model, h, d_k=d_k, d_v=d_v).requires_grad_(False)
    x, order = torch.randn(n, d_model), torch.arange(h)
    order[[0, 2]] = order[[2, 0]]
    for proj in (module.q_proj, module.k_proj, module.v_proj, module.out_proj):
        nn.init.normal_(proj.bias)

    def swap(t, dim=0):
        return t.unflatten(dim, (h, -1)).index_select(dim, order).flatten(dim, dim + 1)

    swapped = deepcopy(module)
    for proj in (swapped.q_proj, swapped.k_proj, swapped.v_proj):
        proj.weight.copy_(swap(proj.weight))
        proj.bias.copy_(swap(proj.bias))
    forgotten = swapped(x)
    swapped.out_proj.weight.copy_(swap(swapped.out_proj.weight, dim=1))

    def differ(a, b):
        return ((a - b).abs().flatten(1).amax(dim=1) > 1e-4).sum().item()

    before, after = module.trace(x), swapped.trace(x)
    pairs = zip(module.parameters(), swapped.parameters(), strict=True)
    return {
        "outputs": differ(after.output, before.output),
        "maps": differ(after.weights, before.weights),
        "forgotten": differ(forgotten, before.output),
        "numbers": sum((a != b).sum().item() for a, b in pairs),
        "why": "The output adds up one term per head, and a sum does not mind the "
        "order of its terms. All that makes a term, its rows of three projections and "
        "its block of W^O, must move together. So what a head does is not tied to its "
        "number: the same function has it under any other.",
    }


def _module_sizes(draw: Draw) -> Inputs:
    n, d_model, h, d_k, d_v = draw.primes(5, above=2)
    return {"n": n, "d_model": d_model, "h": h, "d_k": d_k, "d_v": d_v}


PERMUTE = Exercise(
    id="08-permute",
    title="Two heads change places",
    kind="measure",
    level=3,
    minutes=20,
    points=4,
    reference=swaps,
    draw=_module_sizes,
    axes={},
    decisive=("n",),
    properties=(
        Property(
            "outputs",
            "how many output rows differ after a whole exchange",
            "Has everything of the two heads moved: rows of three weights, three "
            "biases, and columns of out_proj?",
            observe=entry("outputs"),
        ),
        Property(
            "maps",
            "how many heads have another map than before",
            "Compare trace.weights head by head, before and after. Whose map stands "
            "at number 0 now?",
            observe=entry("maps"),
        ),
        Property(
            "forgotten",
            "how many output rows differ if out_proj stays as it was",
            "Which tokens get something from the two heads, through the wrong block?",
            observe=entry("forgotten"),
        ),
        Property(
            "numbers",
            "how many of the module's numbers are not what they were",
            "Count for one head: rows and biases of three projections, columns of the "
            "fourth. Are all biases drawn at random?",
            observe=entry("numbers"),
        ),
        reason(
            "What would you tell someone who says that head 3 of every model looks at "
            "positions? The worked solution has one answer; compare.",
        ),
    ),
    hints=(
        "For head 0, mark in each of the four weights and four biases what is its own: "
        "rows, columns, or nothing.",
        "A bias of a projection is cut like the rows of its weight. That of out_proj "
        "belongs to no head.",
        "weight.unflatten(0, (h, -1)) gives the rows of each head an axis of their "
        "own: index it with the new order, which makes a copy, and flatten again. For "
        "out_proj.weight do it along axis 1. For the numbers: compare parameter by "
        "parameter, (a != b).sum().",
    ),
    explanation=(
        "No output changes, two maps do. The numbers that moved are those of two "
        "heads, each with `(2 * d_k + d_v) * (d_model + 1)` in the projections and "
        "`d_v * d_model` in W^O. Leave out_proj behind, and every token gets two terms "
        "through the wrong block. A fresh module would hide a forgotten bias of "
        "q_proj, k_proj or v_proj: there all biases are zero."
    ),
    wrong=(
        Wrong(
            "Another order is another function.",
            "outputs",
            slip(swaps, "differ(after.output, before.output)", "n"),
            "All rows differ by your count. Did the columns of out_proj move along, "
            "and the biases?",
        ),
        Wrong(
            "A slice keeps what it held when something else is written there.",
            "outputs",
            slip(swaps, "order[[0, 2]] = order[[2, 0]]", "order[0] = 2"),
            "One map is another one now, and not two: the same head stands at numbers "
            "0 and 2. What did your slice of the one hold, once the other had been "
            "written over it?",
        ),
        Wrong(
            "Two heads, two rows.",
            "outputs",
            slip(swaps, "differ(after.output, before.output)", "2"),
            "A row of the output belongs to a token. To how many tokens does a head "
            "contribute?",
        ),
        Wrong(
            "The same function has the same maps.",
            "maps",
            slip(swaps, "differ(after.weights, before.weights)", "0"),
            "The output is the same. Does it have to be made of the same maps in the "
            "same places?",
        ),
        Wrong(
            "Every map changes a little.",
            "maps",
            slip(swaps, "differ(after.weights, before.weights)", "h"),
            "You found changes in every head. Which rows of q_proj and k_proj make the "
            "map of head 1?",
        ),
        Wrong(
            "Two heads that trade places are one change.",
            "maps",
            slip(swaps, "differ(after.weights, before.weights)", "1"),
            "You count one exchange. At how many numbers does another map stand now?",
        ),
        Wrong(
            "A sum does not mind the order, so W^O can stay.",
            "forgotten",
            slip(swaps, "differ(forgotten, before.output)", "0"),
            "The terms may change their order. Is head 0 times the block of head 2 a "
            "term of the sum?",
        ),
        Wrong(
            "Two heads are wrong, so two rows are.",
            "forgotten",
            slip(swaps, "differ(forgotten, before.output)", "2"),
            "Two terms are wrong in the sum of each token. How many tokens are there?",
        ),
        Wrong(
            "A forgotten bias does no harm.",
            "numbers",
            slip(swaps, "nn.init.normal_(proj.bias)", "nn.init.zeros_(proj.bias)"),
            "That is right but for three biases of each head. Are they drawn at "
            "random, or all zero as in a fresh module? And did you count them?",
        ),
        Wrong(
            "W^O belongs to all heads together.",
            "numbers",
            slip(
                swaps,
                "sum((a != b).sum().item() for a, b in pairs)",
                "2 * (2 * d_k + d_v) * (d_model + 1)",
            ),
            "You count three projections. What did you move in the fourth?",
        ),
        Wrong(
            "One head moves, the other makes room.",
            "numbers",
            slip(
                swaps,
                "sum((a != b).sum().item() for a, b in pairs)",
                "(2 * d_k + d_v) * (d_model + 1) + d_v * d_model",
            ),
            "Those are the numbers of one head. How many heads have moved?",
        ),
        Wrong(
            "The bias of out_proj moves along.",
            "numbers",
            slip(
                swaps,
                "sum((a != b).sum().item() for a, b in pairs)",
                "sum((a != b).sum().item() for a, b in pairs) + d_model",
            ),
            "You count the bias of out_proj as well. Which head does it belong to?",
        ),
        Wrong(
            "The whole module is another one.",
            "numbers",
            slip(
                swaps,
                "sum((a != b).sum().item() for a, b in pairs)",
                "sum(a.numel() for a, _ in pairs)",
            ),
            "You count all parameters. Which heads have kept theirs?",
        ),
        Wrong(
            "It is obvious.",
            "why",
            slip(swaps, '"why": "The', '"why": "A sum." or "The'),
            "What must move together with a head, and why does the sum not notice?",
        ),
    ),
    right=(
        right.swaps_by_slices,
        right.swaps_by_contributions,
        right.swaps_as_tensors,
    ),
)

EXERCISES = (PREDICT, BUG, GATE, PERMUTE)
