"""Exercises of chapter 01: one look-up, from its weights to which key wins."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from mha_teach.exercises import _chapter_01_right as right
from mha_teach.exercises.bank import (
    Draw,
    Exercise,
    Inputs,
    Property,
    Wrong,
    call,
    entry,
    near,
    reason,
    shape,
    sizes_of_pair,
    slip,
)


def weigh(power_2, power_3, v_1, v_2, v_3):
    """Look up among keys whose scores have the powers 1, power_2 and power_3."""
    total = 1 + power_2 + power_3
    return {
        "third": power_3 / total,
        "output": (v_1 + power_2 * v_2 + power_3 * v_3) / total,
        "shifted": power_3 / total,
        "ratio": power_3**2 / 1**2,
        "cold": v_3,
        "hot": (v_1 + v_2 + v_3) / 3,
        "most": v_1,
    }


def _three_keys(draw: Draw) -> Inputs:
    power_2 = draw.one_of(2, 3)
    v_1 = draw.one_of(60, 90)
    powers = {"power_2": power_2, "power_3": 9 - power_2}
    return {**powers, "v_1": v_1, "v_2": 10, "v_3": 20}


WEIGHTS = Exercise(
    id="01-weights",
    title="Weights by hand",
    kind="predict",
    level=1,
    minutes=5,
    points=2,
    reference=weigh,
    draw=_three_keys,
    axes={},
    properties=(
        Property(
            "third",
            "the weight of the third key at temperature 1",
            "What is e to the power of each score? What do the three add up to?",
            observe=entry("third"),
        ),
        Property(
            "output",
            "the output at temperature 1",
            "Multiply each value by its weight. What do the three products add up to?",
            observe=entry("output"),
        ),
        Property(
            "shifted",
            "the weight of the third key after 5 is added to every score",
            "By which factor does each power grow, and by which factor their sum?",
            observe=entry("shifted"),
        ),
        Property(
            "ratio",
            "how many times the first key's weight the third gets at temperature 1/2",
            "What are the scores after the division by 1/2? And their powers?",
            observe=entry("ratio"),
        ),
        Property(
            "cold",
            "where the output goes as the temperature goes to 0",
            "Which key gets everything in the end, and what is its value?",
            observe=entry("cold"),
        ),
        Property(
            "hot",
            "where the output goes as the temperature grows without end",
            "All scores go to 0. What are the weights then?",
            observe=entry("hot"),
        ),
        Property(
            "most",
            "the smallest number that no output can exceed, whatever query and keys",
            "Weights are positive and sum to one. How high can such an average get?",
            observe=entry("most"),
        ),
    ),
    hints=(
        "e to the power of ln 3 is 3. Write down the three powers, and their sum.",
        "A power divided by the sum is a weight. The output is the sum of weight times "
        "value.",
        "Dividing by 1/2 doubles a score, and that squares its power.",
    ),
    explanation=(
        "The powers are 1, `power_2` and `power_3`, so the weights are these three "
        "divided by their sum. Adding 5 multiplies every power by the same number, and "
        "the sum with them: softmax sees differences only. Halving the temperature "
        "doubles the differences and squares the ratios. Cold, the best key takes all; "
        "hot, all keys share evenly. In between and always, the output is an average "
        "of the values and cannot exceed the largest."
    ),
    wrong=(
        Wrong(
            "Shares are in proportion to the scores.",
            "third",
            slip(
                weigh,
                '"third": power_3 / total',
                '"third": torch.tensor(power_3).log()'
                " / torch.tensor(power_2 * power_3).log()",
            ),
            "You divided a score by the sum of the scores. What comes before that?",
        ),
        Wrong(
            "The best key gets everything.",
            "third",
            slip(weigh, '"third": power_3 / total', '"third": 1'),
            "That would be so at temperature 0. What do the other two get at 1?",
        ),
        Wrong(
            "All keys get the same.",
            "third",
            slip(weigh, '"third": power_3 / total', '"third": 1 / 3'),
            "That is an even share. Do the keys score the same?",
        ),
        Wrong(
            "A score of 0 counts for nothing.",
            "third",
            slip(
                weigh,
                '"third": power_3 / total',
                '"third": power_3 / (power_2 + power_3)',
            ),
            "You left the first key out. What is e to the power of 0?",
        ),
        Wrong(
            "The output is the value of the best key.",
            "output",
            slip(
                weigh,
                '"output": (v_1 + power_2 * v_2 + power_3 * v_3) / total',
                '"output": v_3',
            ),
            "That is the value of one key. What do the others put in?",
        ),
        Wrong(
            "The output is the mean of the values.",
            "output",
            slip(
                weigh,
                '"output": (v_1 + power_2 * v_2 + power_3 * v_3) / total',
                '"output": (v_1 + v_2 + v_3) / 3',
            ),
            "In that mean every value counts the same. Do the weights say so?",
        ),
        Wrong(
            "Powers are weights.",
            "output",
            slip(
                weigh,
                "(v_1 + power_2 * v_2 + power_3 * v_3) / total",
                "v_1 + power_2 * v_2 + power_3 * v_3",
            ),
            "That is far beyond every value. By what must the powers be divided?",
        ),
        Wrong(
            "What is added to the scores is added to the powers.",
            "shifted",
            slip(
                weigh,
                '"shifted": power_3 / total',
                '"shifted": (power_3 + 5) / (total + 3 * 5)',
            ),
            "You added 5 to each power. What does adding 5 to a score do to its power?",
        ),
        Wrong(
            "A higher score always means a larger weight.",
            "shifted",
            slip(weigh, '"shifted": power_3 / total', '"shifted": 1'),
            "All scores have grown, and all weights still sum to one. Can all grow?",
        ),
        Wrong(
            "The temperature leaves ratios alone.",
            "ratio",
            slip(weigh, "power_3**2 / 1**2", "power_3"),
            "That is the ratio at temperature 1. What happens to a difference of "
            "scores when both are divided by 1/2?",
        ),
        Wrong(
            "Twice as cold, twice the ratio.",
            "ratio",
            slip(weigh, "power_3**2 / 1**2", "2 * power_3"),
            "It is the difference of the scores that doubles. What does that do to "
            "e to its power?",
        ),
        Wrong(
            "A temperature of 1/2 halves the scores.",
            "ratio",
            slip(weigh, "power_3**2 / 1**2", "power_3**0.5"),
            "You multiplied the scores by 1/2. What does the formula do with T?",
        ),
        Wrong(
            "A cold look-up averages.",
            "cold",
            slip(weigh, '"cold": v_3', '"cold": (v_1 + v_2 + v_3) / 3'),
            "Divide the scores by a tiny number. Do they come closer together?",
        ),
        Wrong(
            "A cold look-up takes the largest value.",
            "cold",
            slip(weigh, '"cold": v_3', '"cold": v_1'),
            "That is the largest value. Do values have a say in the weights?",
        ),
        Wrong(
            "Heat picks the winner.",
            "hot",
            slip(weigh, '"hot": (v_1 + v_2 + v_3) / 3', '"hot": v_3'),
            "Divide the scores by a huge number. Does the best one still stand out?",
        ),
        Wrong(
            "With scores of 0 there is no output.",
            "hot",
            slip(weigh, '"hot": (v_1 + v_2 + v_3) / 3', '"hot": 0'),
            "The scores go to 0. Do the weights, which sum to one?",
        ),
        Wrong(
            "The best key's value is the limit.",
            "most",
            slip(weigh, '"most": v_1', '"most": v_3'),
            "Another query may fit another key. Which value would you like best?",
        ),
        Wrong(
            "In the best case the values add up.",
            "most",
            slip(weigh, '"most": v_1', '"most": v_1 + v_2 + v_3'),
            "For that every weight would have to be 1. What must they sum to?",
        ),
    ),
    right=(
        right.weigh_by_softmax,
        right.weigh_in_floats,
        right.weigh_in_numpy,
    ),
)


def answers(q, k, v, temperature):
    """Answer each query with an average of the values."""
    scores = q @ k.mT / temperature
    powers = scores.exp()
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return weights @ v


def _guests(draw: Draw) -> Inputs:
    n_q, n_k, d_k, d_v = draw.primes(4, above=2)
    return {
        "q": draw.normal(n_q, d_k) / d_k**0.5,
        "k": draw.normal(n_k, d_k),
        "v": draw.normal(n_k, d_v),
        "temperature": draw.one_of(0.3, 0.6, 1.7, 2.2),
    }


def _equal_values(draw: Draw) -> Inputs:
    inputs = _guests(draw)
    inputs["v"][:] = inputs["v"][:1].clone()
    return inputs


def _two_keys(draw: Draw) -> Inputs:
    """Draw queries and keys of length 1; the output is the weight of the first key."""
    n_q, d_k = draw.primes(2, above=2)
    return {
        "q": F.normalize(draw.normal(n_q, d_k), dim=-1),
        "k": F.normalize(draw.normal(2, d_k), dim=-1),
        "v": torch.tensor([[1.0], [0.0]]),
        "temperature": draw.one_of(0.3, 0.6, 1.7, 2.2),
    }


_LN_OF_TWO = (
    "ln(a_1 / a_2) of the two weights, made from what you return; in call 1 at three "
    "times the temperature"
)


def _gap_by(observe: Callable[[Callable, Inputs], Any]) -> Callable:
    """Read off by how much the first key outscores the second, for each query.

    Twice: no fixed number divides the scores of both calls as it should.
    """

    def observe_gaps(function: Callable, inputs: Inputs) -> Tensor:
        hotter = inputs | {"temperature": 3 * inputs["temperature"]}
        found = [observe(function, each) for each in (inputs, hotter)]
        return torch.stack([torch.as_tensor(each)[:, 0].logit() for each in found])

    return observe_gaps


BUG = Exercise(
    id="01-bug",
    title="The answer that depends on the others",
    kind="find the bug",
    level=2,
    minutes=10,
    points=2,
    reference=answers,
    draw=_guests,
    axes={
        "q": "query d_k",
        "k": "key d_k",
        "v": "key d_v",
        "returns": "query d_v",
    },
    properties=(
        Property(
            "shape",
            "one row of width d_v per query",
            "Here are more queries than keys, or fewer. Write down the shape of the "
            "powers and of their sum: which two sizes must agree?",
            observe=shape,
        ),
        Property(
            "rows",
            "equal values come out as they are",
            "Every value is the same here, so any average is that value. What do the "
            "weights of one query add up to?",
            draw=_equal_values,
        ),
        Property(
            "two",
            "two keys: their scores differ by q·(k_1 − k_2) / T",
            "The rows sum to one. What happens to a score before it becomes a share?",
            draw=_two_keys,
            observe=_gap_by(call),
            axes="call query",
            compared=_LN_OF_TWO,
        ),
        Property(
            "lookup",
            "equal to PyTorch's look-up with scale = 1 / T",
            "Keys of length 1 are answered as they should be. What is different "
            "about others?",
        ),
    ),
    hints=(
        "With torch.eye(5) as values the output is the weights. Add them up by rows, "
        "then by columns. Which sums are one?",
        "Print the shape of the sum. Tensors of different shapes are lined up from "
        "the last axis: what does each entry of the sum divide, a row or a column?",
        "sum has an argument that keeps the axis it sums over, with size 1.",
    ),
    explanation=(
        "The sum over the keys has the shape `(n_q,)`. Lined up from the last axis, it "
        "divides column j by the sum of row j, which belongs to another query. "
        "`keepdim=True` keeps the axis, `(n_q, 1)`, and each row is divided by its own "
        "sum. With as many queries as keys nothing raises; with one query nothing is "
        "even wrong, as there is only one sum. So test with sizes that all differ, "
        "and ask with one query alone: its answer must not depend on who else asks. "
        "Scores from 89 on are too large for this code: their powers are infinite. "
        "The next exercise takes care of that; so does PyTorch's own softmax."
    ),
    wrong=(
        Wrong(
            "The sum runs over the wrong axis.",
            "rows",
            slip(answers, "sum(dim=-1, keepdim=True)", "sum(dim=0)"),
            "Now the columns sum to one. Who has one whole to share out, a key or a "
            "query?",
        ),
        Wrong(
            "All weights together make one.",
            "rows",
            slip(answers, "powers.sum(dim=-1, keepdim=True)", "powers.sum()"),
            "You divided everything by one number. How much of that whole does one "
            "query get?",
        ),
        Wrong(
            "A mean is as good as a sum.",
            "rows",
            slip(answers, "powers.sum(dim=-1", "powers.mean(dim=-1"),
            "Your rows sum to the number of keys. How do a mean and a sum differ?",
        ),
        Wrong(
            "The division is not needed.",
            "rows",
            slip(answers, " / powers.sum(dim=-1, keepdim=True)", ""),
            "Powers are positive. What else must a share be?",
        ),
        Wrong(
            "Shares need positive numbers, so drop the signs.",
            "two",
            slip(answers, "scores.exp()", "scores.abs()"),
            "A key that points away scores as high as one that points along. Which "
            "function is positive and keeps the order?",
        ),
        Wrong(
            "Softmax mends everything.",
            "two",
            slip(
                answers,
                "powers / powers.sum(dim=-1, keepdim=True)",
                "powers.softmax(dim=-1)",
            ),
            "Softmax takes powers itself. How often do you take them now?",
        ),
        Wrong(
            "The temperature was the bug.",
            "two",
            slip(answers, " / temperature", ""),
            "Your answers are the same at every temperature. Where did it go?",
        ),
        Wrong(
            "A temperature is a factor.",
            "two",
            slip(answers, "/ temperature", "* temperature"),
            "Your look-up gets softer as the temperature falls. What does the "
            "formula do with T?",
        ),
        Wrong(
            "The temperature is always the 2 of the test.",
            "two",
            slip(answers, "/ temperature", "/ 2"),
            "You divide by one number at every temperature. Which argument tells you "
            "by what to divide?",
        ),
        Wrong(
            "The weights are the answer.",
            "shape",
            slip(answers, "return weights @ v", "return weights"),
            "Those are the weights. Which mean do they make of the values?",
        ),
        Wrong(
            "A column belongs to a query.",
            "shape",
            slip(answers, "return weights @ v", "return (weights @ v).mT"),
            "Your answer is transposed. What should its rows stand for?",
        ),
        Wrong(
            "Only directions should count.",
            "lookup",
            slip(answers, "k.mT", "F.normalize(k, dim=-1).mT"),
            "You made all keys equally long. Is a longer key allowed to score higher?",
        ),
    ),
    right=(
        right.answers_by_softmax,
        right.answers_one_by_one,
        right.answers_fused,
        right.answers_in_numpy,
    ),
    given=slip(answers, "sum(dim=-1, keepdim=True)", "sum(dim=-1)"),
)


def soft_lookup(q, k, v, temperature):
    """Average the rows of v, with weights that no score can make infinite."""
    scores = q @ k.mT / temperature
    gaps = scores - scores.amax(dim=-1, keepdim=True)  # 0 for each row's best key
    powers = gaps.exp()
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return weights @ v, weights


def _large_scores(draw: Draw) -> Inputs:
    """Let query 1 score -300, 300 and 297 at the first keys: exp cannot take that.

    Query 2 scores about -300 at every key.
    """
    inputs = _guests(draw)
    q, k, _, temperature = inputs.values()
    k[:, 0] = 1
    k[:, 1:] = F.normalize(k[:, 1:], dim=-1)
    k[0, 1:], k[2, 1:] = -k[1, 1:], 0.99 * k[1, 1:]
    q[1, 0], q[1, 1:] = 0, 300 * temperature * k[1, 1:]
    q[2, 0] = -300 * temperature
    return inputs


def _row_sums(function: Callable, inputs: Inputs) -> Tensor:
    return torch.as_tensor(entry(1)(function, inputs)).sum(dim=-1)


def _large_scores_of_equal_values(draw: Draw) -> Inputs:
    inputs = _large_scores(draw)
    inputs["v"][:] = inputs["v"][:1].clone()
    return inputs


LOOKUP = Exercise(
    id="01-lookup",
    title="A look-up for scores of any size",
    kind="write",
    level=2,
    minutes=15,
    points=4,
    reference=soft_lookup,
    draw=_guests,
    axes={"q": "query d_k", "k": "key d_k", "v": "key d_v"},
    properties=(
        Property(
            "shape",
            "an output (n_q, d_v) and weights (n_q, n_k), in this order",
            "Return a pair: output, weights. Which shape has each of yours?",
            observe=sizes_of_pair,
            axes="query d_v query key",
        ),
        Property(
            "rows",
            "the weights of each query sum to one, even at scores of 300 and of -300",
            "Is each number that you return as a weight a power, divided by the sum of "
            "the powers in its row? (A nan comes from 0/0 or ∞/∞: in float32, e to the "
            "power of 100 is infinite, and e to the power of -200 is 0.)",
            draw=_large_scores,
            observe=_row_sums,
            axes="query",
            compared="the sum of each row of your weights",
        ),
        Property(
            "average",
            "equal values come out as they are",
            "The weights are shares. What have you done to their sum of values?",
            draw=_large_scores_of_equal_values,
            observe=entry(0),
            axes="query d_v",
        ),
        Property(
            "two",
            "two keys: their scores differ by q·(k_1 − k_2) / T",
            "Follow one score. What happens to it between the dot product and softmax?",
            draw=_two_keys,
            observe=_gap_by(entry(1)),
            axes="call query",
            compared=_LN_OF_TWO,
        ),
        Property(
            "weights",
            "the weights of equation (1), at scores of any size",
            "Queries and keys of length 1 are right. What is different about others?",
            draw=_large_scores,
            observe=entry(1),
            axes="query key",
        ),
        Property(
            "output",
            "an average with these weights",
            "The weights are right. Is the output made from them?",
            draw=_large_scores,
            observe=entry(0),
            axes="query d_v",
        ),
    ),
    hints=(
        "Five lines: scores, powers, their sum in each row, weights, output. Write the "
        "shape of each beside it. keepdim=True keeps the axis that is summed.",
        "In the first exercise 5 was added to all scores. What became of the weights? "
        "What does that allow you to add or subtract?",
        "scores.amax(dim=-1, keepdim=True) is the largest score of each row. Subtract "
        "it, and no power exceeds 1.",
    ),
    explanation=(
        "Subtracting a number from all scores of a row divides all its powers, and "
        "their sum, by the same factor. So it changes no weight. With the largest "
        "score subtracted, the best key has the power 1 and no other exceeds it: "
        "nothing overflows, and the sum is at least 1. What is far below the best may "
        "become 0, and so its weight should. PyTorch's softmax does the same."
    ),
    wrong=(
        Wrong(
            "The answer is the output; nobody needs the weights.",
            "shape",
            slip(soft_lookup, "return weights @ v, weights", "return weights @ v"),
            "That is one tensor. Which two are asked for?",
        ),
        Wrong(
            "First the weights, then what they give.",
            "shape",
            slip(soft_lookup, "weights @ v, weights", "weights, weights @ v"),
            "Both are there. In which order are they asked for?",
        ),
        Wrong(
            "The sum runs over the queries.",
            "rows",
            slip(soft_lookup, "powers.sum(dim=-1,", "powers.sum(dim=0,"),
            "Your columns sum to one. Who shares out one whole, a query or a key?",
        ),
        Wrong(
            "A positive number is a weight.",
            "rows",
            slip(soft_lookup, " / powers.sum(dim=-1, keepdim=True)", ""),
            "Powers are positive. By what must each row be divided?",
        ),
        Wrong(
            "The scores are what a map shows.",
            "rows",
            slip(soft_lookup, "@ v, weights", "@ v, scores"),
            "Your second tensor is the scores. What makes weights of them?",
        ),
        Wrong(
            "An average divides by the number of values.",
            "average",
            slip(soft_lookup, "return weights @ v,", "return weights @ v / len(v),"),
            "The weights sum to one already. What does it do to divide once more?",
        ),
        Wrong(
            "Only the order of the scores counts.",
            "two",
            slip(soft_lookup, " / temperature", ""),
            "Your weights are the same at every temperature. Where did T go?",
        ),
        Wrong(
            "A temperature is a factor.",
            "two",
            slip(soft_lookup, "/ temperature", "* temperature"),
            "Your look-up gets softer as T falls. What does equation (1) do with T?",
        ),
        Wrong(
            "Attention always divides by the root of the width, too.",
            "two",
            slip(
                soft_lookup,
                "/ temperature",
                "/ temperature / q.shape[-1] ** 0.5",
            ),
            "The root of d_k is one choice of T. Which T is asked for here?",
        ),
        Wrong(
            "A score is a cosine.",
            "weights",
            slip(
                soft_lookup,
                "q @ k.mT",
                "q @ F.normalize(k, dim=-1).mT",
            ),
            "You made all keys equally long. Is a longer key allowed to score higher?",
        ),
        Wrong(
            "A score is how near a key is.",
            "weights",
            slip(
                soft_lookup,
                "q @ k.mT",
                "-((q[:, None] - k) ** 2).sum(dim=-1) / 2",
            ),
            "You compare by distance. Equation (2) says which term of it a dot product "
            "leaves out. Which?",
        ),
        Wrong(
            "The value of the best key comes out.",
            "output",
            slip(soft_lookup, "return weights @ v", "return v[scores.argmax(dim=-1)]"),
            "Your weights say that several keys share, your output knows one. Which "
            "product makes it from the weights?",
        ),
        Wrong(
            "exp copes with any score.",
            "rows",
            slip(soft_lookup, " - scores.amax(dim=-1, keepdim=True)", ""),
            "Infinity divided by infinity is nan, not a number. What may be subtracted "
            "from every score of a row without changing a weight?",
        ),
        Wrong(
            "One number will do for all rows.",
            "rows",
            slip(soft_lookup, "scores.amax(dim=-1, keepdim=True)", "scores.amax()"),
            "In other rows every power is 0 now, and 0 / 0 is nan. Whose largest "
            "score should each row subtract?",
        ),
        Wrong(
            "Any score of a row will do to subtract.",
            "rows",
            slip(soft_lookup, "scores.amax(dim=-1, keepdim=True)", "scores[:, :1]"),
            "You subtract a score, or a mean of them, and another one may still lie "
            "hundreds above it. Which score of a row has none above it?",
        ),
        Wrong(
            "The largest score is the one farthest from 0.",
            "rows",
            slip(soft_lookup, "scores.amax(", "scores.abs().amax("),
            "Where all scores are about -300 you subtract 300 more, and every power is "
            "0. Which key of that row should have the power 1?",
        ),
        Wrong(
            "Only the weights have to be safe.",
            "average",
            slip(
                soft_lookup,
                "return weights @ v,",
                "naive = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)\n"
                "    return naive @ v,",
            ),
            "Your weights are right, and the output is nan. Which weights was it made "
            "from?",
        ),
        Wrong(
            "A score that is too large or too small may be cut off.",
            "weights",
            slip(
                soft_lookup,
                "scores - scores.amax(dim=-1, keepdim=True)",
                "scores.clamp(-80, 80)",
            ),
            "Two scores of different size became the same. Does their difference not "
            "count?",
        ),
    ),
    right=(
        right.lookup_by_softmax,
        right.lookup_by_logarithms,
        right.lookup_one_by_one,
        right.lookup_by_package,
        right.lookup_in_numpy,
    ),
)


def nearest(d_k, n_k):
    """Compare the key with the largest dot product with the nearest key."""
    q = torch.randn(10_000, 1, d_k)
    k = torch.randn(10_000, n_k, d_k)  # new keys for each query

    def winners(q, k):
        best = (q * k).sum(dim=-1).argmax(dim=-1)
        near = torch.linalg.vector_norm(q - k, dim=-1).argmin(dim=-1)
        return best, near

    def agreement(q, k):
        best, near = winners(q, k)
        return round((best == near).float().mean().item(), 1)

    best, near = winners(q, k)
    row = torch.arange(len(q))
    length = torch.linalg.vector_norm(k, dim=-1)
    is_longer = length[row, best] > length[row, near]
    return {
        "random": agreement(q, k),
        "unit": agreement(q, k / length[..., None]),
        "longer": is_longer[best != near].float().mean().item(),
        "far": agreement(1000 * q, k),
        "why": "|q - k|² = |q|² + |k|² - 2 q·k: the distance counts a key's length "
        "against it, the dot product does not. If the winner is not the nearest, it "
        "is longer. A long query makes the last term so large that |k|² no longer "
        "matters.",
    }


# From a million queries; the second is for cosines in place of dot products.
_AGREEMENT = {(4, 16): (0.327, 0.677), (8, 16): (0.386, 0.668), (8, 32): (0.291, 0.663)}


def _random_keys(draw: Draw) -> Inputs:
    d_k, n_k = draw.one_of(*_AGREEMENT)
    return {"d_k": d_k, "n_k": n_k}


def _measured(key: str, goals: Callable[[float, float], tuple[float, ...]]) -> Callable:
    """Observe a share, as near as chance and rounding allow to one of some goals.

    They follow from the two shares of ``_AGREEMENT``.
    """
    return near(
        key,
        lambda inputs: goals(*_AGREEMENT[inputs["d_k"], inputs["n_k"]]),
        lambda _: 0.04,
    )


NEAREST = Exercise(
    id="01-nearest",
    title="How often does the nearest win?",
    kind="measure",
    level=3,
    minutes=20,
    points=4,
    reference=nearest,
    draw=_random_keys,
    axes={},
    properties=(
        Property(
            "random",
            "how often the key with the largest dot product is the nearest",
            "Did you draw new keys for each query, and compare two positions: argmax "
            "of the dot products, argmin of the distances?",
            observe=_measured("random", lambda dot, cosine: (dot, cosine)),
        ),
        Property(
            "unit",
            "how often, if all keys have length 1",
            "Which term of equation (2) is the same for all keys now?",
            observe=_measured("unit", lambda dot, cosine: (1.0, dot)),
        ),
        Property(
            "longer",
            "of the cases in which they differ: how often the winner is the longer",
            "Did you count only the queries for which the two keys differ?",
            observe=_measured("longer", lambda dot, cosine: (1.0, 1 - dot, 0.0, 0.5)),
        ),
        Property(
            "far",
            "how often, if every query is 1000 times as long",
            "Which terms of equation (2) grow with the query, and how fast?",
            observe=_measured("far", lambda dot, cosine: (1.0, dot, 0.0)),
        ),
        reason(
            "What would you tell someone who calls attention a search for the nearest "
            "key? The worked solution has one answer; compare.",
        ),
    ),
    hints=(
        "Put a query and two keys on paper, one key near the query, the other far out "
        "beyond it. Which has the larger dot product?",
        "For the reason, write equation (2) once for the winner and once for the "
        "nearest, and subtract.",
        "With q (10000, 1, d_k) and k (10000, n_k, d_k), (q * k).sum(dim=-1) holds all "
        "dot products and torch.linalg.vector_norm(q - k, dim=-1) all distances, "
        "(10000, n_k). length[torch.arange(10_000), best] picks one length in each "
        "row.",
    ),
    explanation=(
        "Let w be the winner and c the nearest key. Then q·w ≥ q·c and |q − w| ≥ "
        "|q − c|. Put both into equation (2): |w|² − |c|² ≥ 2 (q·w − q·c) ≥ 0. So a "
        "winner that is not the nearest is always longer, without exception. With keys "
        "of one length the two agree. And in front of a query 1000 times as long all "
        "keys look equally far away but for their direction, so the two agree again."
    ),
    wrong=(
        Wrong(
            "The largest dot product is the nearest key.",
            "random",
            slip(nearest, '"random": agreement(q, k)', '"random": 1.0'),
            "Always? Then the first explorer of the chapter would be wrong. Measure: "
            "in how many of 10,000 cases?",
        ),
        Wrong(
            "The two have nothing to do with each other.",
            "random",
            slip(nearest, '"random": agreement(q, k)', '"random": 1 / n_k'),
            "That is pure chance. Does a key that points the query's way not tend to "
            "be near?",
        ),
        Wrong(
            "A score is a cosine.",
            "random",
            slip(
                nearest,
                '"random": agreement(q, k)',
                '"random": (winners(q, k / length[..., None])[0] == near)'
                ".float().mean()",
            ),
            "You compared directions only. What does a dot product count besides?",
        ),
        Wrong(
            "It is the queries that must have length 1.",
            "unit",
            slip(
                nearest,
                '"unit": agreement(q, k / length[..., None])',
                '"unit": agreement(F.normalize(q, dim=-1), k)',
            ),
            "The nearest now wins less often than before. Whose length stands in the "
            "way, that of the query or those of the keys?",
        ),
        Wrong(
            "Lengths make no difference.",
            "unit",
            slip(nearest, "agreement(q, k / length[..., None])", "agreement(q, k)"),
            "That is the share without the change. Have the keys length 1?",
        ),
        Wrong(
            "Length is a matter of chance.",
            "longer",
            slip(
                nearest,
                "is_longer[best != near].float().mean().item()",
                "0.5",
            ),
            "An even chance? Look at ten cases in which the two keys differ. Which is "
            "longer in each?",
        ),
        Wrong(
            "The share is that of all queries.",
            "longer",
            slip(nearest, "is_longer[best != near]", "is_longer"),
            "You counted the cases in which both are the same key, too. How many of "
            "the others are there?",
        ),
        Wrong(
            "Shorter keys win.",
            "longer",
            slip(nearest, "length[row, best] > length", "length[row, best] < length"),
            "Which of your two lengths is the winner's, which the nearest key's?",
        ),
        Wrong(
            "The length of a query makes no difference.",
            "far",
            slip(nearest, "agreement(1000 * q, k)", "agreement(q, k)"),
            "The winner stays the same. Does the nearest key?",
        ),
        Wrong(
            "From far away no key is near.",
            "far",
            slip(nearest, "agreement(1000 * q, k)", "0.0"),
            "All keys are far away now, but one is the nearest. Which?",
        ),
        Wrong(
            "Numbers speak for themselves.",
            "why",
            slip(nearest, '"why": "|', '"why": "Long keys." or "|'),
            "The numbers are right. Which term makes them so?",
        ),
    ),
    right=(
        right.nearest_by_knowing,
        right.nearest_by_loop,
        right.nearest_in_numpy,
    ),
)

EXERCISES = (WEIGHTS, BUG, LOOKUP, NEAREST)
