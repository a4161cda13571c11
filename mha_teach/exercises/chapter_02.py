"""Exercises of chapter 02: how large a score is, and what its size does."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from mha_teach.exercises import _chapter_02_right as right
from mha_teach.exercises.bank import (
    Draw,
    Exercise,
    Inputs,
    Property,
    Wrong,
    entry,
    near,
    reason,
    shape,
    slip,
)


def scores(d_model, d_k, var_q, var_k):
    """Say how far q·k spreads for independent entries with these variances."""
    spread = (d_k * var_q * var_k) ** 0.5
    return {
        "spread": spread,
        "quadrupled": 2,
        "divisor": d_k**0.5,
        "left": spread / d_k**0.5,
        "limit": 1,
    }


def _widths(draw: Draw) -> Inputs:
    d_k = draw.one_of(36, 49, 121)
    return {
        "d_model": d_k * draw.one_of(8, 12),
        "d_k": d_k,
        "var_q": draw.one_of(4, 9),
        "var_k": draw.one_of(16, 25),
    }


PREDICT = Exercise(
    id="02-predict",
    title="Spreads before you run",
    kind="predict",
    level=1,
    minutes=5,
    points=2,
    reference=scores,
    draw=_widths,
    axes={},
    decisive=("d_k", "var_q", "var_k"),
    properties=(
        Property(
            "spread",
            "the spread of the dot products",
            "What is the variance of one product, and how many of them are added up?",
            observe=entry("spread"),
        ),
        Property(
            "quadrupled",
            "by which factor the spread grows if d_k is quadrupled",
            "By which factor does the variance grow, and what does its root do?",
            observe=entry("quadrupled"),
        ),
        Property(
            "divisor",
            "what scaled dot-product attention divides by",
            "Write the formula down. Which number in it depends on the model?",
            observe=entry("divisor"),
        ),
        Property(
            "left",
            "the spread after that division",
            "Take your spread and your divisor. Which factor is left?",
            observe=entry("left"),
        ),
        Property(
            "limit",
            "where the typical top weight goes as d_k grows without end",
            "What typically happens to the difference between the two best keys, and "
            "what does softmax make of it?",
            observe=entry("limit"),
        ),
    ),
    hints=(
        "The variance of a product of two independent numbers with mean 0 is the "
        "product of their variances.",
        "Independent terms add their variances. The spread is the root of the sum.",
        "The divisor is read off a width. It does not look at the entries.",
    ),
    explanation=(
        "One product has variance var_q · var_k, a dot product adds up d_k of "
        "them, and the spread is the root. The division takes out √d_k and nothing "
        "else: what remains is the size of the entries. Without it differences grow "
        "with √d_k, softmax turns them into ratios, and in the end the typical query "
        "gives one key everything."
    ),
    wrong=(
        Wrong(
            "Spreads add up, as variances do.",
            "spread",
            slip(
                scores,
                "(d_k * var_q * var_k) ** 0.5",
                "d_k * (var_q * var_k) ** 0.5",
            ),
            "You added up spreads. What do independent terms add?",
        ),
        Wrong(
            "The spread is the variance.",
            "spread",
            slip(scores, "(d_k * var_q * var_k) ** 0.5", "d_k * var_q * var_k"),
            "That is the variance of q·k. How does the spread follow from it?",
        ),
        Wrong(
            "A dot product runs over the whole token.",
            "spread",
            slip(scores, "(d_k * var_q", "(d_model * var_q"),
            "You added up d_model products. How wide is a query in one head?",
        ),
        Wrong(
            "A variance is a spread.",
            "spread",
            slip(
                scores,
                "(d_k * var_q * var_k) ** 0.5",
                "d_k**0.5 * var_q * var_k",
            ),
            "The variances stand outside your root. What is the variance of one "
            "product, and of the sum?",
        ),
        Wrong(
            "The entries always have variance 1.",
            "spread",
            slip(scores, "(d_k * var_q * var_k) ** 0.5", "d_k**0.5"),
            "That is right for entries of variance 1. Which ones are given?",
        ),
        Wrong(
            "Four times the terms, four times the spread.",
            "quadrupled",
            slip(scores, '"quadrupled": 2', '"quadrupled": 4'),
            "Four is the factor of the variance. And the spread?",
        ),
        Wrong(
            "The spread depends on the entries alone.",
            "quadrupled",
            slip(scores, '"quadrupled": 2', '"quadrupled": 1'),
            "More products are added up now. Can their sum swing no wider?",
        ),
        Wrong(
            "The divisor is made from the width of the model.",
            "divisor",
            slip(scores, '"divisor": d_k**0.5', '"divisor": d_model**0.5'),
            "Two widths are given. Over which one does a dot product run?",
        ),
        Wrong(
            "The scores are divided by the number of terms.",
            "divisor",
            slip(scores, '"divisor": d_k**0.5', '"divisor": d_k'),
            "That makes a mean of the sum. Its variance is divided by d_k²: by how "
            "much should it be?",
        ),
        Wrong(
            "The divisor is chosen so that the spread is 1.",
            "divisor",
            slip(scores, '"divisor": d_k**0.5', '"divisor": spread'),
            "That divisor would make the spread 1 here. Does the formula know the "
            "variances?",
        ),
        Wrong(
            "After the division the spread is 1.",
            "left",
            slip(scores, "spread / d_k**0.5", "1"),
            "It is 1 if the entries have variance 1. What does the division leave of "
            "theirs?",
        ),
        Wrong(
            "What is left are the variances.",
            "left",
            slip(scores, "spread / d_k**0.5", "var_q * var_k"),
            "That is the variance that is left. And its root?",
        ),
        Wrong(
            "Over many terms everything evens out.",
            "limit",
            slip(scores, '"limit": 1', '"limit": 1 / 8'),
            "That is an even share among eight. Do the scores come closer to each "
            "other as d_k grows?",
        ),
        Wrong(
            "Someone else always keeps a part.",
            "limit",
            slip(scores, '"limit": 1', '"limit": 1 / 2'),
            "The two best keys would differ by nothing then. By how much do their "
            "scores differ when d_k is large?",
        ),
    ),
    right=(
        right.scores_by_variances,
        right.scores_as_tensors,
        right.scores_in_numpy,
    ),
)


def attention(q, k, v):
    """Compute what F.scaled_dot_product_attention computes."""
    k = k.mT
    scores = q @ k / q.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)
    return weights @ v


def _queries_keys_values(draw: Draw) -> Inputs:
    batch, n_q, n_k, d_k, d_v = draw.primes(5)
    return {
        "q": draw.normal(batch, n_q, d_k),
        "k": draw.normal(batch, n_k, d_k),
        "v": draw.normal(batch, n_k, d_v),
    }


def _equal_keys(draw: Draw) -> Inputs:
    inputs = _queries_keys_values(draw)
    inputs["k"][:] = inputs["k"][:, :1].clone()
    return inputs


def _one_against_the_rest(draw: Draw) -> Inputs:
    """Values that show the weight of key 0 in each of their features."""
    inputs = _queries_keys_values(draw)
    inputs["k"][:, 1:] = -inputs["k"][:, :1]
    inputs["q"] /= inputs["q"].shape[-1] ** 0.5
    inputs["v"].zero_()[:, 0] = 1
    return inputs


def _everything_twice(function: Callable, inputs: Inputs) -> Any:
    q, k, v = inputs.values()
    return _change(function(q, k, v), function(q, _twice(k, 1), _twice(v, 1)))


def _a_query_alone(function: Callable, inputs: Inputs) -> Any:
    q, k, v = inputs.values()
    return _change(function(q, k, v)[:, :1], function(q[:, :1], k, v))


def _wider_values(function: Callable, inputs: Inputs) -> Any:
    q, k, v = inputs.values()
    wide = function(q, k, _twice(v, 2))
    return _change(function(q, k, v), wide[..., : v.shape[-1]])


def _score_gaps(function: Callable, inputs: Inputs) -> Tensor:
    """Read off by how much key 0 outscores the others, which are all alike.

    Once as drawn and once twice as wide: no fixed number divides both as it should.
    """
    q, k, v = inputs.values()
    answers = [function(q, k, v), function(_twice(q, 2), _twice(k, 2), v)]
    weight = torch.stack([torch.as_tensor(answer)[..., 0] for answer in answers])
    return weight.logit() + torch.tensor(k.shape[1] - 1).log()


def _twice(tensor: Tensor, dim: int) -> Tensor:
    return torch.cat([tensor, tensor], dim=dim)


def _change(before: Any, after: Any) -> Tensor:
    return torch.as_tensor(after) - torch.as_tensor(before)


_ROOT = "q.shape[-1] ** 0.5"

BUG = Exercise(
    id="02-bug",
    title="A scale that is right by luck",
    kind="find the bug",
    level=2,
    minutes=10,
    points=2,
    reference=attention,
    draw=_queries_keys_values,
    axes={
        "q": "batch query d_k",
        "k": "batch key d_k",
        "v": "batch key d_v",
        "returns": "batch query d_v",
    },
    properties=(
        Property(
            "shape",
            "one row of width d_v per query",
            "Which line changes the number of axes or the width?",
            observe=shape,
        ),
        Property(
            "even",
            "equal keys: the mean of the values",
            "If all keys are alike, what should each of them weigh?",
            draw=_equal_keys,
        ),
        Property(
            "again",
            "every key and value given twice changes nothing",
            "Two of each key get half of the weight each. Which number in your "
            "function grows with the number of keys?",
            observe=_everything_twice,
            compared="your answers with everything twice, minus those without",
        ),
        Property(
            "alone",
            "a query gets the same alone as among others",
            "Which number in your function depends on how many queries there are?",
            observe=_a_query_alone,
            compared="your answer to query 0 alone, minus the one among the others",
        ),
        Property(
            "wide",
            "wider values leave the weights alone",
            "What have the values to do with how well a key fits?",
            observe=_wider_values,
            compared="your answers with wider values, minus those without",
        ),
        Property(
            "scale",
            "scores are q·k / √d_k, at any width",
            "How many products does one dot product add up?",
            draw=_one_against_the_rest,
            observe=_score_gaps,
            axes="call batch query",
            compared="ln of the weight of key 0 over that of another key, made from "
            "what you return; in call 1 with vectors twice as wide",
        ),
    ),
    hints=(
        "The test with seven keys passed, and the one with five fails. What do seven "
        "keys and these vectors have in common?",
        "Write the shape of k after each line.",
        "Give every key and its value twice. The average should stay as it is. Does "
        "it?",
    ),
    explanation=(
        "The bug was in the line of the scores. It reads a width off `k`, but the "
        "line before has turned `k`, and its last axis now counts the keys: the "
        "scores were divided by √n_k. In a test with as many keys as features the two "
        "are equal, and such tests are common. Take sizes that are all different, and "
        "read a width where nothing has been turned."
    ),
    given=slip(attention, _ROOT, "k.shape[-1] ** 0.5"),
    wrong=(
        Wrong(
            "Softmax runs over the wrong axis.",
            "even",
            slip(attention, "softmax(dim=-1)", "softmax(dim=-2)"),
            "Your weights of one key sum to one over the queries. Whose weights "
            "should sum to one?",
        ),
        Wrong(
            "The division belongs behind the softmax.",
            "even",
            slip(
                attention,
                f" / {_ROOT}",
                "",
                "softmax(dim=-1)",
                f"softmax(dim=-1) / {_ROOT}",
            ),
            "Your weights no longer sum to one. What has to be divided, scores or "
            "weights?",
        ),
        Wrong(
            "The root was the bug.",
            "again",
            slip(attention, _ROOT, "k.shape[-1]"),
            "You took the root away, and more keys still make smaller scores. What "
            "does the last axis of k count, after the first line?",
        ),
        Wrong(
            "The scale depends on the size of the whole key matrix.",
            "again",
            slip(attention, _ROOT, "(k.shape[-1] * k.shape[-2]) ** 0.5"),
            "Your divisor holds both sizes of k. Which of them does a dot product "
            "run over?",
        ),
        Wrong(
            "The scale belongs to the queries: to their number.",
            "alone",
            slip(attention, _ROOT, "q.shape[-2] ** 0.5"),
            "You divide by the root of the number of queries. Which axis of q is its "
            "width?",
        ),
        Wrong(
            "d_k and d_v are the same, so v will do.",
            "wide",
            slip(attention, _ROOT, "v.shape[-1] ** 0.5"),
            "You read d_k off the values. Need they be as wide as the keys?",
        ),
        Wrong(
            "One text will do for the batch.",
            "scale",
            slip(attention, "    k = k.mT", "    q, k = q[:1], k[:1]\n    k = k.mT"),
            "The queries and keys of one text make all your weights. Which axis tells "
            "the texts apart?",
        ),
        Wrong(
            "Directions alone should count.",
            "scale",
            slip(
                attention,
                "    k = k.mT",
                "    q, k = (t / t.norm(dim=-1, keepdim=True) for t in (q, k))\n"
                "    k = k.mT",
            ),
            "You make all queries and keys equally long. May a longer key not score "
            "higher?",
        ),
        Wrong(
            "The scores are divided by d_k.",
            "scale",
            slip(attention, _ROOT, "q.shape[-1]"),
            "Your divisor is d_k itself. By how much does the spread of q·k grow "
            "with d_k, and its variance?",
        ),
        Wrong(
            "The vectors of the test are 7 wide, and so are all others.",
            "scale",
            slip(attention, _ROOT, "7**0.5"),
            "You divide by the same number whatever the width is. Which of the tensors "
            "knows how wide a query is?",
        ),
        Wrong(
            "The division was the bug.",
            "scale",
            slip(attention, f" / {_ROOT}", ""),
            "Nothing is divided now. What does PyTorch do if scale is None?",
        ),
    ),
    right=(
        right.attention_fused,
        right.attention_by_package,
        right.attention_by_einsum,
        right.attention_in_numpy,
        right.attention_one_query_at_a_time,
    ),
)


def entropy(weights):
    """Return the mean entropy of a head's rows: (head, query, key) in, (head,) out."""
    tiny = torch.finfo(weights.dtype).tiny  # a log that is finite at 0
    surprise = -weights.clamp_min(tiny).log()
    of_each_query = (weights * surprise).sum(dim=-1)
    return of_each_query.mean(dim=-1)


def _sizes(draw: Draw) -> tuple[int, int, int]:
    head, query, key = draw.primes(3, above=2)
    return head, query, key


def _some_weights(draw: Draw) -> Inputs:
    head, query, key = _sizes(draw)
    sharpness = torch.arange(1.0, head + 1)[:, None, None]
    return {"weights": (draw.normal(head, query, key) * sharpness).softmax(dim=-1)}


def _even_weights(draw: Draw) -> Inputs:
    head, query, key = _sizes(draw)
    return {"weights": torch.full((head, query, key), 1 / key)}


def _two_keys_share(draw: Draw) -> Inputs:
    """Leave so many keys without weight that a millionth for each is seen.

    So few that 1e-8 for each is lost in the rounding, whatever the seed.
    """
    head, query, key = _sizes(draw)
    weights = torch.zeros(head, query, 40 * key)
    weights[..., :2] = 0.5
    return {"weights": weights}


def _each_sure_of_another(draw: Draw) -> Inputs:
    head, query, key = _sizes(draw)
    keys = torch.arange(query) % key
    return {"weights": torch.eye(key)[keys].expand(head, -1, -1).clone()}


ENTROPY = Exercise(
    id="02-entropy",
    title="How undecided is a head?",
    kind="write",
    level=2,
    minutes=15,
    points=4,
    reference=entropy,
    draw=_some_weights,
    axes={"weights": "head query key", "returns": "head"},
    properties=(
        Property(
            "shape",
            "one number per head",
            "Which axes do the sum and the mean take away?",
            observe=shape,
        ),
        Property(
            "even",
            "equal weights: ln of the number of keys",
            "Every weight is 1/n here, and its surprise is ln n. Follow one weight "
            "through your lines: where does it become something else?",
            draw=_even_weights,
        ),
        Property(
            "zeros",
            "two of many keys share and the others have nothing: ln 2",
            "What does your function add for a key of weight 0, and what should it?",
            draw=_two_keys_share,
        ),
        Property(
            "rows",
            "each query sure of a key of its own: 0",
            "No query is undecided here. When do you take the mean over queries: "
            "before the entropy or after it?",
            draw=_each_sure_of_another,
        ),
        Property(
            "heads",
            "sharper heads get smaller numbers, each its own",
            "Take one row with a very small weight, and go through it by hand. Then "
            "take the mean over the rows of its head. Where do you part?",
        ),
    ),
    hints=(
        "Two steps: the entropy of each row, then the mean over the rows of a head. "
        "The first takes away the axis of the keys, the second that of the queries.",
        "In PyTorch 0 · ln 0 is nan. A key without weight should add 0: keep the log "
        "finite with clamp_min, or find a function for x · log y.",
        "Test it on weights whose answer you know: all equal, and one key per row.",
    ),
    explanation=(
        "The sum runs over the keys of one row, the mean over the rows of one head. "
        "A weight of 0 meets a surprise without end, and the product counts as 0, "
        "because w · ln(1/w) goes to 0 with w. `clamp_min` keeps the logarithm finite, "
        "and the gradient too; `torch.where` around an infinite one would leave a "
        "gradient of nan. Large scores make such weights, and so will masks (chapter "
        "4). The mean map of a head is something else: its entropy says how evenly the "
        "head looks on the whole, not how undecided each query is."
    ),
    wrong=(
        Wrong(
            "Entropy comes in bits.",
            "even",
            slip(entropy, ".log()", ".log2()"),
            "Your unit is the bit. Which logarithm gives nats?",
        ),
        Wrong(
            "Entropy is the sum of w ln w.",
            "even",
            slip(entropy, "-weights.clamp", "weights.clamp"),
            "An entropy is never below 0. Which sign has the logarithm of a share?",
        ),
        Wrong(
            "The queries of a head add up.",
            "even",
            slip(entropy, "of_each_query.mean", "of_each_query.sum"),
            "With twice the queries your number doubles. What should become of it?",
        ),
        Wrong(
            "Entropy lies between 0 and 1.",
            "even",
            slip(
                entropy,
                "of_each_query.mean(dim=-1)",
                "of_each_query.mean(dim=-1) / torch.tensor(weights.shape[-1]).log()",
            ),
            "You return a share of the largest possible entropy. Was it asked for?",
        ),
        Wrong(
            "Entropy counts keys.",
            "even",
            slip(
                entropy,
                "of_each_query.mean(dim=-1)",
                "of_each_query.mean(dim=-1).exp()",
            ),
            "You return a number of keys. Which function leads from there to nats?",
        ),
        Wrong(
            "A row is what belongs to one key.",
            "even",
            slip(entropy, ".sum(dim=-1)", ".sum(dim=-2)"),
            "You add up over the queries first. Whose weights sum to one?",
        ),
        *(
            Wrong(
                f"Adding {little} to a weight only keeps the logarithm finite.",
                "even",
                slip(entropy, ".clamp_min(tiny)", f".add({little})"),
                f"You add {little} to every weight, and that changes every logarithm. "
                "How can you spare the weights that are not 0?",
            )
            for little in ("1e-2", "1e-3", "1e-4")
        ),
        Wrong(
            "The surprises of a row add up.",
            "even",
            slip(entropy, "(weights * surprise)", "surprise"),
            "You add up the surprises as they are. How often is each of them met?",
        ),
        Wrong(
            "The keys of a row have a mean.",
            "even",
            slip(entropy, ".sum(dim=-1)", ".mean(dim=-1)"),
            "You divide by the number of keys. Who has counted the surprises already?",
        ),
        Wrong(
            "The formula says it all; a weight of 0 takes care of itself.",
            "zeros",
            slip(entropy, ".clamp_min(tiny)", ""),
            "0 · ln 0 is nan here. What should a key without weight add?",
        ),
        Wrong(
            "A millionth more for each weight does no harm.",
            "zeros",
            slip(entropy, "surprise = ", "weights = weights + 1e-6\n    surprise = "),
            "Each key without weight adds a little here, and there are hundreds of "
            "them. What should one of them add?",
        ),
        Wrong(
            "Entropy is the plain mean of the surprises.",
            "zeros",
            slip(
                entropy,
                ".clamp_min(tiny)",
                "",
                "(weights * surprise).sum(dim=-1)",
                "surprise.mean(dim=-1)",
            ),
            "You count every key alike. How much should the surprise at a key without "
            "weight count?",
        ),
        Wrong(
            "The entropy of a head is that of its mean row.",
            "rows",
            slip(
                entropy,
                "surprise = ",
                "weights = weights.mean(dim=-2, keepdim=True)\n    surprise = ",
            ),
            "You mix the rows first. Does a mix of sure queries look sure?",
        ),
        Wrong(
            "Below some small weight nothing matters.",
            "heads",
            slip(entropy, "clamp_min(tiny)", "clamp_min(0.01)"),
            "You treat every weight below 0.01 as 0.01. Which surprises become too "
            "small?",
        ),
        Wrong(
            "The most undecided query speaks for the head.",
            "heads",
            slip(entropy, "of_each_query.mean", "of_each_query.amax"),
            "You return the largest entropy of each head. And the other queries?",
        ),
        Wrong(
            "The heads of a layer share one number.",
            "heads",
            slip(
                entropy,
                "of_each_query.mean(dim=-1)",
                "of_each_query.mean().expand(len(weights))",
            ),
            "All your heads get the same number. Over which axis should the mean not "
            "run?",
        ),
    ),
    right=(
        right.entropy_by_xlogy,
        right.entropy_by_loops,
        right.entropy_in_numpy,
        right.entropy_by_distribution,
        right.entropy_by_package,
        right.entropy_by_nansum,
    ),
)


def start(d_model, d_k):
    """Measure how the scores of a fresh layer spread, and again once it is doubled."""
    torch.manual_seed(0)
    x = torch.randn(1000, d_model)
    q_proj, k_proj = nn.Linear(d_model, d_k), nn.Linear(d_model, d_k)
    with torch.no_grad():
        q, k = q_proj(x), k_proj(x)
        spread = (q @ k.mT).std().item()
        variance = q.var().item()
        for parameter in (*q_proj.parameters(), *k_proj.parameters()):
            parameter.mul_(2)
        later = (q_proj(x) @ k_proj(x).mT).std().item()
    return {
        "variance": round(variance, 2),
        "spread": round(spread / d_k**0.5, 2),
        "divisor": round(spread, 1),
        "doubled": round(later / spread, 1),
        "why": "The spread of a fresh layer should not depend on how wide its heads "
        "are, and the division sees to that. Which constant it then has matters less: "
        "training can make it larger or smaller, head by head, through the matrices.",
    }


def _layer(draw: Draw) -> Inputs:
    return {"d_model": draw.one_of(128, 160, 192), "d_k": draw.one_of(36, 49, 81)}


def _about(
    key: str, *known: Callable[[int], float], share: float = 0.1
) -> Callable[[Callable, Inputs], Any]:
    """Observe a measured number, as near as chance allows to one that d_k gives."""
    return near(
        key,
        lambda inputs: [exact(inputs["d_k"]) for exact in known],
        lambda goal: share * goal,
    )


START = Exercise(
    id="02-spread",
    title="How a fresh layer starts",
    kind="measure",
    level=3,
    minutes=20,
    points=4,
    reference=start,
    draw=_layer,
    axes={},
    decisive=("d_k",),
    properties=(
        Property(
            "variance",
            "the variance of the entries of q",
            "Did you measure it on the output of the layer, over all tokens and "
            "features?",
            observe=_about("variance", lambda _: 1 / 3, lambda _: 3**-0.5),
        ),
        Property(
            "spread",
            "the spread of the scores, divided by √d_k",
            "Put the variance of q and that of k into equation (1). What is left after "
            "the division?",
            observe=_about(
                "spread",
                lambda _: 1 / 3,
                lambda _: 3**-0.5,
                lambda d_k: d_k**0.5 / 3,
                lambda d_k: d_k**-0.5 / 3,
            ),
        ),
        Property(
            "divisor",
            "what to divide the dot products by for a spread of 1",
            "How far do the undivided dot products spread?",
            observe=_about("divisor", lambda d_k: d_k**0.5 / 3),
        ),
        Property(
            "doubled",
            "by which factor the spread grows if both layers double",
            "What happens to q, to k, and to their product?",
            observe=_about("doubled", lambda _: 4),
        ),
        reason(
            "What would you tell someone who leaves the division out, as training can "
            "scale the layers anyway? The worked solution has one answer; compare.",
        ),
    ),
    hints=(
        "Print the variance of the numbers of q, and that of k. Is it 1, as equation "
        "(1) takes for granted?",
        "Equation (1) with other variances: Var(q·k) = d_k · Var(q_j) · Var(k_j).",
        "With q = q_proj(x), and likewise k, q.var() is the variance of all its "
        "entries, (q @ k.mT).std() the spread of all dot products. To double a layer: "
        "with torch.no_grad(): layer.weight.mul_(2), and the same for its bias.",
    ),
    explanation=(
        "`nn.Linear` draws its matrix evenly between -1/√d_model and 1/√d_model. That "
        "leaves a third of the variance of `x`: its docstring gives the range, and the "
        "variance of an even draw does the rest. So the scores start at a third, not "
        "at 1, and at the same third in every width. The reason in the last entry is "
        "one way to say why that is enough."
    ),
    wrong=(
        Wrong(
            "A linear layer keeps the variance.",
            "variance",
            slip(start, "round(variance, 2)", "1.0"),
            "That is the variance of x. What comes out of the layer?",
        ),
        Wrong(
            "A standard deviation is a variance.",
            "variance",
            slip(start, "round(variance, 2)", "variance**0.5"),
            "That is the standard deviation of q. How do you get the variance?",
        ),
        Wrong(
            "After the division the spread is 1.",
            "spread",
            slip(start, "round(spread / d_k**0.5, 2)", "1.0"),
            "It would be 1 for entries of variance 1. Which variance did you find?",
        ),
        Wrong(
            "The spread is that of the dot products.",
            "spread",
            slip(start, "round(spread / d_k**0.5, 2)", "spread"),
            "That is the spread before the division. What does √d_k leave of it?",
        ),
        Wrong(
            "Only the query counts.",
            "spread",
            slip(start, "round(spread / d_k**0.5, 2)", "variance**0.5"),
            "You took the variance of q alone. What else is in a product?",
        ),
        Wrong(
            "The scores are divided twice, to be safe.",
            "spread",
            slip(start, "round(spread / d_k**0.5, 2)", "spread / d_k"),
            "You divided by d_k. By which number should it be?",
        ),
        Wrong(
            "The divisor is always √d_k.",
            "divisor",
            slip(start, '"divisor": round(spread, 1)', '"divisor": d_k**0.5'),
            "With this divisor you found a spread of a third. Which one gives 1?",
        ),
        Wrong(
            "A third too little needs three times the divisor.",
            "divisor",
            slip(start, '"divisor": round(spread, 1)', '"divisor": 3 * d_k**0.5'),
            "That makes the scores smaller still. Should the divisor grow or shrink?",
        ),
        Wrong(
            "Twice the layers, twice the scores.",
            "doubled",
            slip(start, "round(later / spread, 1)", "2"),
            "Two layers have doubled. How many of them are in a score?",
        ),
        Wrong(
            "The division undoes it.",
            "doubled",
            slip(start, "round(later / spread, 1)", "1"),
            "The divisor is read off a width. How could it notice the layers?",
        ),
        Wrong(
            "The factor is that of the variance.",
            "doubled",
            slip(start, "round(later / spread, 1)", "16"),
            "That is the factor of the variance of a score. And of its spread?",
        ),
        Wrong(
            "Numbers speak for themselves.",
            "why",
            slip(start, '"why": "The', '"why": "It helps." or "The'),
            "The numbers are right. What do they mean for someone who would leave the "
            "division out?",
        ),
    ),
    right=(
        right.start_by_formula,
        right.start_as_tensors,
        right.start_in_numpy,
        right.start_without_bias,
    ),
)

EXERCISES = (PREDICT, BUG, ENTROPY, START)
