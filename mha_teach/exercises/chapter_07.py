"""Exercises of chapter 07: the module, and the freedom to choose h and d_k."""

import torch

from mha_teach import MultiHeadAttention
from mha_teach.exercises import _chapter_07_right as right
from mha_teach.exercises.bank import (
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


def shapes(batch, n, d_model, h, d_k):
    """Say what comes out of MultiHeadAttention(d_model, h, d_k=d_k, bias=False)."""
    return {
        "q": (batch, h, n, d_k),
        "weights": (batch, h, n, n),
        "output": (batch, n, d_model),
        "parameters": 4 * d_model * h * d_k,
        "more": 0,
    }


def _setting(draw: Draw) -> Inputs:
    batch, n, h = draw.primes(3)
    d_k = draw.one_of(4, 6)
    d_model = h * draw.one_of(5, 8)
    return {"batch": batch, "n": n, "d_model": d_model, "h": h, "d_k": d_k}


SHAPES = Exercise(
    id="07-shapes",
    title="Shapes before you run",
    kind="predict",
    level=1,
    minutes=5,
    points=2,
    reference=shapes,
    draw=_setting,
    axes={},
    properties=(
        Property(
            "q",
            "the shape of q",
            "Where does the head axis go, and how wide is one query in one head?",
            observe=entry("q"),
            axes="batch head query d_k",
        ),
        Property(
            "weights",
            "the shape of the weights",
            "Who weighs whom? Name the four things that one weight belongs to.",
            observe=entry("weights"),
            axes="batch head query key",
        ),
        Property(
            "output",
            "the shape of the output",
            "The output is added to x in a Transformer block. Which shape allows it?",
            observe=entry("output"),
            axes="batch n d_model",
        ),
        Property(
            "parameters",
            "the number of parameters",
            "Write the shape of each of the four matrices. What do they add up to?",
            observe=entry("parameters"),
        ),
        Property(
            "more",
            "what twice the heads of half the width add",
            "In your sum, where does h stand without d_k?",
            observe=entry("more"),
        ),
    ),
    hints=(
        "Follow x (batch, n, d_model) through the four steps of the chapter: project, "
        "split, attend, merge. Write the shape after each.",
        "The projection W^Q is (d_model, h·d_k). Splitting cuts its last axis into h "
        "pieces and moves the head axis beside the batch.",
        "W^O leads back from h·d_v to d_model. Here d_v = d_k.",
    ),
    explanation=(
        "d_model is what comes in and goes out; h·d_k is how wide it is in between. "
        "They need not be equal: W^Q, W^K and W^V lead in, W^O leads out. All four "
        "depend on h and d_k through the product alone, so twice the heads of half "
        "the width cost no parameter more."
    ),
    wrong=(
        Wrong(
            "Heads are a way of speaking; q stays in one piece.",
            "q",
            slip(shapes, '"q": (batch, h, n, d_k)', '"q": (batch, n, h * d_k)'),
            "That is q before it is split. Which axis does the split add, and where?",
        ),
        Wrong(
            "d_k is always d_model / h.",
            "q",
            slip(shapes, '"q": (batch, h, n, d_k)', '"q": (batch, h, n, d_model // h)'),
            "d_model / h is the usual choice of d_k. Which one was made here?",
        ),
        Wrong(
            "The heads share one map of weights.",
            "weights",
            slip(shapes, "(batch, h, n, n)", "(batch, n, n)"),
            "A layer with one map: how would it differ from a layer with one head?",
        ),
        Wrong(
            "A weight belongs to a feature.",
            "weights",
            slip(shapes, "(batch, h, n, n)", "(batch, h, n, d_k)"),
            "That is the shape of q. A query and a key make one score: what is left "
            "of d_k after their dot product?",
        ),
        Wrong(
            "The merged heads are the output.",
            "output",
            slip(shapes, "(batch, n, d_model)", "(batch, n, h * d_k)"),
            "That is how wide the merged heads are. Which matrix is still to come?",
        ),
        Wrong(
            "The four matrices are always d_model by d_model.",
            "parameters",
            slip(shapes, "4 * d_model * h * d_k", "4 * d_model**2"),
            "They are square when h·d_k = d_model. Is it so here?",
        ),
        Wrong(
            "Queries, keys and values are all that is learnt.",
            "parameters",
            slip(shapes, "4 * d_model", "3 * d_model"),
            "That counts W^Q, W^K and W^V. What leads back to d_model?",
        ),
        Wrong(
            "Each projection has a bias.",
            "parameters",
            slip(shapes, "4 * d_model", "d_model + 3 * h * d_k + 4 * d_model"),
            "You counted a bias for each matrix. Does this module have biases?",
        ),
        Wrong(
            "More heads mean more parameters.",
            "more",
            slip(shapes, '"more": 0', '"more": 4 * d_model * h * d_k'),
            "You doubled the count. There are twice the heads: how wide is each?",
        ),
    ),
    right=(
        right.shapes_by_running,
        right.shapes_as_lists,
        right.shapes_as_tensors,
    ),
)


def rebuilt(x, in_proj_weight, in_proj_bias, out_weight, out_bias, h):
    """Compute what nn.MultiheadAttention computes, from its own four tensors."""
    w_q, w_k, w_v = in_proj_weight.chunk(3)
    b_q, b_k, b_v = in_proj_bias.chunk(3)
    q, k, v = x @ w_q.T + b_q, x @ w_k.T + b_k, x @ w_v.T + b_v
    q, k, v = (y.unflatten(-1, (h, -1)).transpose(1, 2) for y in (q, k, v))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    head_outputs = (weights @ v).transpose(1, 2).flatten(2)
    return head_outputs @ out_weight.T + out_bias


def _torch_tensors(draw: Draw) -> Inputs:
    batch, n, h, d_k = draw.primes(4)
    d_model = h * d_k
    return {
        "x": draw.normal(batch, n, d_model),
        "in_proj_weight": draw.normal(3 * d_model, d_model) / d_model**0.5,
        "in_proj_bias": draw.normal(3 * d_model),
        "out_weight": draw.normal(d_model, d_model) / d_model**0.5,
        "out_bias": draw.normal(d_model),
        "h": h,
    }


def _zero_tokens(draw: Draw) -> Inputs:
    inputs = _torch_tensors(draw)
    inputs["x"].zero_()
    inputs["out_weight"].copy_(torch.eye(inputs["x"].shape[-1]))
    return inputs


def _equal_scores(draw: Draw) -> Inputs:
    inputs = _torch_tensors(draw)
    d_model = inputs["x"].shape[-1]
    inputs["in_proj_weight"][: 2 * d_model] = 0
    inputs["in_proj_bias"].zero_()
    return inputs


def _equal_scores_before_w_o(draw: Draw) -> Inputs:
    inputs = _equal_scores(draw)
    inputs["out_weight"].copy_(torch.eye(inputs["x"].shape[-1]))
    return inputs


_THREE = "x @ w_q.T + b_q, x @ w_k.T + b_k, x @ w_v.T + b_v"
_UNTURNED = "x @ w_q + b_q, x @ w_k + b_k, x @ w_v + b_v"

BUG = Exercise(
    id="07-bug",
    title="The weights that almost fit",
    kind="find the bug",
    level=2,
    minutes=10,
    points=2,
    reference=rebuilt,
    draw=_torch_tensors,
    axes={
        "x": "batch n d_model",
        "in_proj_weight": "3·d_model d_model",
        "in_proj_bias": "3·d_model",
        "out_weight": "d_model d_model",
        "out_bias": "d_model",
        "returns": "batch n d_model",
    },
    properties=(
        Property(
            "shape",
            "one row of width d_model per token",
            "Which line changes the number of axes or the width?",
            observe=shape,
        ),
        Property(
            "biases",
            "x = 0 and W^O the identity: only biases are left",
            "Only two biases are left, that of the values and out_bias. Are both in "
            "your output, from the right third, and in their order?",
            draw=_zero_tokens,
        ),
        Property(
            "values",
            "equal scores and W^O the identity: the mean of the values",
            "With equal scores only the values count. Which third of in_proj_weight "
            "makes them, and how does nn.Linear use its weight?",
            draw=_equal_scores_before_w_o,
        ),
        Property(
            "output",
            "equal scores: the mean of the values, times W^O",
            "The values are right. What happens to them after the merge?",
            draw=_equal_scores,
        ),
        Property(
            "torch",
            "equal to nn.MultiheadAttention",
            "Values and W^O are right, so the weights are not. Which two tensors make "
            "the scores, what divides them, and along which axis runs softmax?",
        ),
    ),
    hints=(
        "Every line has the right shape, so shapes will not help. Send in something "
        "whose answer you know: x = 0, or weights that make all scores equal.",
        "Print nn.Linear(2, 3).weight.shape. How does a row x of width 2 become one of "
        "width 3? Now read each line that stands for an nn.Linear.",
        "When is x @ w possible although x @ w.T is meant?",
    ),
    explanation=(
        "The bug was in the third line: `x @ w` where `x @ w.T` is meant, three times. "
        "PyTorch keeps the weight of a linear map as (out, in) and multiplies by its "
        "transpose. Here in = out = d_model, so forgetting the transpose raises no "
        "error and changes no shape. A test on shapes cannot see it. A test against "
        "the library can, and so can one input whose answer you know."
    ),
    given=slip(rebuilt, _THREE, _UNTURNED),
    wrong=(
        Wrong(
            "The paper's projections have no bias, so none is needed.",
            "biases",
            slip(rebuilt, _THREE, "x @ w_q.T, x @ w_k.T, x @ w_v.T"),
            "With x = 0 your values are 0. What does nn.MultiheadAttention add?",
        ),
        Wrong(
            "Each head keeps its own queries, keys and values together.",
            "values",
            slip(
                rebuilt,
                "in_proj_weight.chunk(3)",
                "in_proj_weight.unflatten(0, (h, 3, -1)).transpose(0, 1).flatten(1, 2)",
            ),
            "You read the rows as head by head. In which order does "
            "nn.MultiheadAttention stack them?",
        ),
        Wrong(
            "The module adds its input, as a block does.",
            "values",
            slip(rebuilt, "+ out_bias", "+ out_bias + x"),
            "You add x to what attention returns. Which part of a block adds it, the "
            "module or what stands around it?",
        ),
        Wrong(
            "A batch has one output.",
            "values",
            slip(
                rebuilt,
                "(weights @ v)",
                "(weights @ v).mean(0, keepdim=True).expand_as(v)",
            ),
            "All sentences get the same output. Over which axis did you take a mean "
            "that keeps them apart?",
        ),
        Wrong(
            "The scale was the bug.",
            "values",
            slip(rebuilt, _THREE, _UNTURNED, " / q.shape[-1] ** 0.5", ""),
            "Your values are still those of the code as given. How does nn.Linear use "
            "its weight?",
        ),
        Wrong(
            "Queries and keys meet each other; only they need the transpose.",
            "values",
            slip(rebuilt, "x @ w_v.T", "x @ w_v"),
            "Queries and keys are not looked at here. Is W^V stored in another way "
            "than W^Q?",
        ),
        Wrong(
            "The transpose on the last line was the bug.",
            "output",
            slip(rebuilt, "out_weight.T", "out_weight"),
            "out_proj is an nn.Linear too. How does it use its weight?",
        ),
        Wrong(
            "The packed order is keys, queries, values.",
            "torch",
            slip(
                rebuilt,
                "w_q, w_k, w_v = in_proj_weight.chunk(3)",
                "w_k, w_q, w_v = in_proj_weight.chunk(3)",
            ),
            "Your scores are those of each key asking each query. Which third of the "
            "rows asks?",
        ),
        Wrong(
            "Only the values are ever multiplied by a transpose.",
            "torch",
            slip(rebuilt, _THREE, "x @ w_q + b_q, x @ w_k + b_k, x @ w_v.T + b_v"),
            "The values are mended. Which projections share their line?",
        ),
    ),
    right=(
        right.rebuilt_by_torch,
        right.rebuilt_by_heads,
        right.rebuilt_fused,
    ),
)


def mha(x, w_q, w_k, w_v, w_o, h):
    """Attend in h heads: x (batch, n, d_model) in, (batch, n, d_model) out."""

    def split(y):
        return y.unflatten(-1, (h, -1)).transpose(1, 2)  # (batch, head, n, width)

    q, k, v = split(x @ w_q), split(x @ w_k), split(x @ w_v)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    head_outputs = scores.softmax(dim=-1) @ v
    return head_outputs.transpose(1, 2).flatten(2) @ w_o


def _matrices(draw: Draw) -> Inputs:
    sizes = draw.primes(6)
    h = max(sizes)
    sizes.remove(h)
    batch, n, d_model, d_k, d_v = sizes
    return _drawn(draw, batch, n, d_model, h, d_k, d_v)


def _drawn(draw, batch, n, d_model, h, d_k, d_v) -> Inputs:
    return {
        "x": draw.normal(batch, n, d_model),
        "w_q": draw.normal(d_model, h * d_k) / d_model**0.5,
        "w_k": draw.normal(d_model, h * d_k) / d_model**0.5,
        "w_v": draw.normal(d_model, h * d_v) / d_model**0.5,
        "w_o": draw.normal(h * d_v, d_model) / (h * d_v) ** 0.5,
        "h": h,
    }


def _equal_widths(draw: Draw) -> Inputs:
    batch, n, *others = draw.primes(5)
    h, d_model, d_k = sorted(others)  # so that d_model // h is never d_k
    return _drawn(draw, batch, n, d_model, h, d_k, d_k)


def _lone_token(draw: Draw) -> Inputs:
    batch, d_model, h, d_k = draw.primes(4)
    return _drawn(draw, batch, 1, d_model, h, d_k, d_k)


def _equal_keys(draw: Draw) -> Inputs:
    inputs = _equal_widths(draw)
    inputs["w_k"].zero_()
    return inputs


def _equal_keys_and_heads(draw: Draw) -> Inputs:
    inputs = _equal_keys(draw)
    w_v, h = inputs["w_v"], inputs["h"]
    inputs["w_v"] = w_v[:, : w_v.shape[1] // h].repeat(1, h)
    return inputs


def _equal_values(draw: Draw) -> Inputs:
    inputs = _equal_widths(draw)
    inputs["x"][..., 0] = 1
    inputs["w_v"][1:] = 0
    return inputs


def _two_tokens(draw: Draw) -> Inputs:
    """Two one-hot tokens; output feature 0 is the weight on token 0 in head 0."""
    d_model, h, d_k = draw.primes(3, above=2)
    inputs = _drawn(draw, 1, 2, d_model, h, d_k, d_k)
    inputs["x"].copy_(torch.eye(2, d_model))
    sizes = 1 + draw.normal(2, 1).clamp(-1, 1) / 5
    sizes[1] *= -1
    for name in ("w_q", "w_k"):
        inputs[name].zero_()[:2] = sizes / d_k**0.5
    for name in ("w_v", "w_o"):
        inputs[name].zero_()[0, 0] = 1
    return inputs


def _opposite_heads(draw: Draw) -> Inputs:
    """Two tokens as above, with scores too large for any scale to show in weights."""
    inputs = _two_tokens(draw)
    d_k = inputs["w_q"].shape[1] // inputs["h"]
    signs = torch.tensor([[1.0], [-1.0]])
    inputs["w_k"].zero_()[:2, ::d_k] = signs
    inputs["w_q"].zero_()[:2, ::d_k] = 80 * d_k * signs
    inputs["w_q"][:, d_k:] *= -1
    return inputs


def _score_gaps(function, inputs):
    """Read off by how much token 0 outscores token 1, for each query."""
    weight = torch.as_tensor(function(*inputs.values()))[0, :, 0]
    return weight.logit()


_CUTS_TO_THE_USUAL_WIDTH = (
    "y.unflatten(-1, (h, x.shape[-1] // h))",
    "y.view(*y.shape[:2], h, x.shape[-1] // h)",
    "y[..., : x.shape[-1] // h * h].unflatten(-1, (h, -1))",
)

MHA = Exercise(
    id="07-mha",
    title="Multi-head attention from four matrices",
    kind="write",
    level=2,
    minutes=15,
    points=4,
    reference=mha,
    draw=_matrices,
    axes={
        "x": "batch n d_model",
        "w_q": "d_model h·d_k",
        "w_k": "d_model h·d_k",
        "w_v": "d_model h·d_v",
        "w_o": "h·d_v d_model",
        "returns": "batch n d_model",
    },
    properties=(
        Property(
            "shape",
            "one row of width d_model per token",
            "Say what each axis of your result stands for. Which step of the formula "
            "is missing, or came too early?",
            draw=_equal_widths,
            observe=shape,
        ),
        Property(
            "alone",
            "a lone token attends to itself: x W^V W^O",
            "With one token every weight is 1. Is yours? What is left then, and do all "
            "heads meet W^O in their order?",
            draw=_lone_token,
        ),
        Property(
            "split",
            "equal keys and heads: each token gets the mean of its sequence",
            "W^K is zero here, so all scores are. Are yours? If so, which tokens does "
            "your head 0 hold?",
            draw=_equal_keys_and_heads,
        ),
        Property(
            "merge",
            "equal keys: the mean of each head, side by side, times W^O",
            "The heads are right one by one. In which order do they stand when W^O "
            "meets them?",
            draw=_equal_keys,
        ),
        Property(
            "rows",
            "equal values come out as they are",
            "Every value is the same here, so any average is that value. What do the "
            "weights of one query add up to?",
            draw=_equal_values,
        ),
        Property(
            "several",
            "in head 0 a token attends to itself, in every other head to the other",
            "Which columns of W^Q and W^K decide the weights of head 0?",
            draw=_opposite_heads,
        ),
        Property(
            "scale",
            "two tokens score by q·k / √d_k",
            "How many products does one score add up?",
            draw=_two_tokens,
            observe=_score_gaps,
            axes="query",
            compared="ln of the weight of token 0 over that of token 1, made from what "
            "you return",
        ),
        Property(
            "heads",
            "equal to a loop over heads",
            "Write head i on its own, with columns i·d_k to (i+1)·d_k of W^Q. Where "
            "do the two part?",
        ),
    ),
    hints=(
        "Five steps, one or two lines each: project, split, score, softmax and "
        "average, merge and project. Write the shape after each as a comment.",
        "Split: cut the last axis into (h, d_k), then move the head axis beside the "
        "batch. Cutting into (h, n) straight away gives the right shape and mixes "
        "tokens.",
        "Merge is split backwards: move the head axis back, then join the last two. "
        "The scale comes from q after the split: q.shape[-1].",
    ),
    explanation=(
        "One matrix product makes all heads at once; unflatten and transpose give "
        "each head an axis of its own, and the same two steps backwards put the heads "
        "side by side for W^O. Nothing in the function needs h·d_k = d_model, nor "
        "d_v = d_k."
    ),
    wrong=(
        *(
            Wrong(
                "d_k is always d_model / h.",
                "shape",
                slip(mha, "y.unflatten(-1, (h, -1))", cut),
                "h·d_k need not be d_model. From which tensor can you read d_k?",
            )
            for cut in _CUTS_TO_THE_USUAL_WIDTH
        ),
        Wrong(
            "The merged heads are the output.",
            "shape",
            slip(mha, "flatten(2) @ w_o", "flatten(2)"),
            "The last axis is h·d_v wide. What leads back to d_model?",
        ),
        Wrong(
            "Keys and values are the same thing.",
            "alone",
            slip(mha, "split(x @ w_v)", "split(x @ w_k)"),
            "W^V leaves no trace in your output. Which matrix says what a token "
            "passes on?",
        ),
        Wrong(
            "One matrix is enough for queries and keys.",
            "split",
            slip(mha, "split(x @ w_k)", "split(x @ w_q)"),
            "W^K is zero here, and your scores are not. Which matrix makes your keys?",
        ),
        Wrong(
            "Splitting is only a matter of shape.",
            "split",
            slip(
                mha,
                "y.unflatten(-1, (h, -1)).transpose(1, 2)",
                "y.reshape(len(y), h, y.shape[1], -1)",
            ),
            "Your first head sees the first tokens only. Which two axes have to "
            "change places, rather than be cut anew?",
        ),
        Wrong(
            "Merging is only a matter of shape.",
            "merge",
            slip(mha, "transpose(1, 2).flatten(2)", "reshape(*x.shape[:2], -1)"),
            "In memory your heads lie one after the other, tokens inside. Which order "
            "does W^O expect?",
        ),
        Wrong(
            "The heads are averaged.",
            "alone",
            slip(mha, "@ w_o", "@ w_o / h"),
            "Your output is h times too small. Does the formula average the heads, or "
            "lay them side by side?",
        ),
        Wrong(
            "Softmax runs over the heads.",
            "alone",
            slip(mha, "softmax(dim=-1)", "softmax(dim=1)"),
            "Your weights sum to one over the heads; over what should they?",
        ),
        Wrong(
            "Softmax runs over the batch.",
            "alone",
            slip(mha, "softmax(dim=-1)", "softmax(dim=0)"),
            "Your weights sum to one over the batch; over what should they?",
        ),
        Wrong(
            "Softmax runs over the queries.",
            "rows",
            slip(mha, "softmax(dim=-1)", "softmax(dim=-2)"),
            "Your weights sum to one for each key. Along which axis do the keys of "
            "one query lie?",
        ),
        Wrong(
            "Heads are a way of speaking; one wide head does the same.",
            "several",
            slip(mha, "y.unflatten(-1, (h, -1)).transpose(1, 2)", "y[:, None]"),
            "Your output does not change with h. Where do you use h?",
        ),
        Wrong(
            "Scaling is a detail of training.",
            "scale",
            slip(mha, " / q.shape[-1] ** 0.5", ""),
            "Your scores are √d_k times too large. Which step of the formula keeps "
            "their spread near one?",
        ),
        Wrong(
            "Scores are divided by the root of d_model.",
            "scale",
            slip(mha, "q.shape[-1] ** 0.5", "x.shape[-1] ** 0.5"),
            "You divide by √d_model. How many products does the score of one head "
            "add up?",
        ),
        Wrong(
            "Scores are divided by the root of all heads' width.",
            "scale",
            slip(mha, "q.shape[-1] ** 0.5", "w_q.shape[1] ** 0.5"),
            "You divide by √(h·d_k). How many products does the score of one head add "
            "up?",
        ),
        Wrong(
            "Scores are divided by the root of d_v.",
            "heads",
            slip(mha, "q.shape[-1] ** 0.5", "v.shape[-1] ** 0.5"),
            "You divide by √d_v. Which width does a dot product of a query and a key "
            "run over?",
        ),
        Wrong(
            "Scores are divided by d_k.",
            "scale",
            slip(mha, "q.shape[-1] ** 0.5", "q.shape[-1]"),
            "You divide by d_k. The variance of a score is d_k; what is its spread?",
        ),
        Wrong(
            "The heads share one map of weights.",
            "several",
            slip(mha, "softmax(dim=-1)", "softmax(dim=-1).mean(1, keepdim=True)"),
            "Your heads all use the same weights. Whose queries and keys decide the "
            "weights of head i?",
        ),
        Wrong(
            "Head i takes every h-th column.",
            "heads",
            slip(
                mha,
                "unflatten(-1, (h, -1)).transpose(1, 2)",
                "unflatten(-1, (-1, h)).permute(0, 3, 1, 2)",
                "transpose(1, 2).flatten(2)",
                "permute(0, 2, 3, 1).flatten(2)",
            ),
            "Your head 0 reads columns 0, h, 2h and so on. Which columns of W^Q "
            "belong to head 0?",
        ),
        Wrong(
            "d_v is always d_k.",
            "heads",
            slip(mha, "(h, -1)", "(h, w_q.shape[1] // h)"),
            "d_v need not be d_k. From which tensor can you read d_v?",
        ),
        Wrong(
            "Queries and keys may change places.",
            "heads",
            slip(mha, "q @ k.mT", "k @ q.mT"),
            "Your scores are transposed. Does row i belong to the token that asks, or "
            "to the one that is asked?",
        ),
    ),
    right=(
        right.mha_by_loop,
        right.mha_by_einsum,
        right.mha_fused,
        right.mha_by_module,
        right.mha_in_numpy,
    ),
)


def ranks(n, d_model, h, d_k):
    """Measure the rank of a head's scores and weights, then halve d_k."""
    x = torch.randn(n, d_model, dtype=torch.float64)

    def trace(h, d_k):
        return MultiHeadAttention(d_model, h, d_k=d_k).double().trace(x)

    wide, narrow = trace(h, d_k), trace(2 * h, d_k // 2)
    rank = torch.linalg.matrix_rank
    return {
        "scores": rank(wide.scores[0]).item(),
        "weights": rank(wide.weights[0]).item(),
        "half": rank(narrow.scores[0]).item(),
        "why": "A score adds up d_k products, so a head's n by n table of scores adds "
        "up d_k tables of rank one. Softmax bends each entry by itself and so lifts "
        "the rank of the weights, but it starts from a table of a poorer family.",
    }


def _rank_setting(draw: Draw) -> Inputs:
    n, d_model, h = draw.one_of(11, 13), draw.one_of(20, 26), draw.one_of(2, 3)
    return {"n": n, "d_model": d_model, "h": h, "d_k": draw.one_of(4, 6)}


RANK = Exercise(
    id="07-rank",
    title="What a small d_k takes away",
    kind="measure",
    level=3,
    minutes=20,
    points=4,
    reference=ranks,
    draw=_rank_setting,
    axes={},
    decisive=("n", "d_k"),
    properties=(
        Property(
            "scores",
            "the rank of one head's scores",
            "Scores are q @ k.mT. How many columns has q?",
            observe=entry("scores"),
        ),
        Property(
            "weights",
            "the rank of its weights",
            "Did you measure it in float64, on trace.weights of one head?",
            observe=entry("weights"),
        ),
        Property(
            "half",
            "the rank of the scores at half the d_k",
            "Twice the heads share the same width. How wide is one of them?",
            observe=entry("half"),
        ),
        reason(
            "What would you tell someone who proposes d_k = 1 and as many heads as "
            "features? The worked solution has one answer; compare.",
        ),
    ),
    hints=(
        "Print the rank of a random (n, n) matrix, then that of a product of (n, 2) "
        "and (2, n). What sets the second?",
        "How many columns has the q of one head? And for the reason: what does a map "
        "lose that must be built from few products, and which step after it can bend "
        "it, entry by entry?",
        "torch.linalg.matrix_rank(trace.scores[0]) is the rank of head 0; make the "
        "module and x float64 first.",
    ),
    explanation=(
        "The reason in the last entry is one way to say it. With h·d_k held fixed, "
        "more heads are more tables of scores, each of a lower rank. It is one account "
        "of why models with a very small d_k do worse, though they lose no parameter: "
        "Bhojanapalli et al. (2020), Low-Rank Bottleneck in Multi-head Attention "
        "Models."
    ),
    wrong=(
        Wrong(
            "A random n by n matrix has rank n, so scores do.",
            "scores",
            slip(ranks, "rank(wide.scores[0]).item()", "n"),
            "That is full rank. Are the scores n·n free numbers, or a product of two "
            "narrow matrices?",
        ),
        Wrong(
            "The rank is that of all heads together.",
            "scores",
            slip(ranks, "rank(wide.scores[0]).item()", "h * d_k"),
            "You gave the width of all heads together. Which part of it does one head "
            "use?",
        ),
        Wrong(
            "All heads at once make one answer.",
            "scores",
            slip(ranks, "rank(wide.scores[0]).item()", "rank(wide.scores).tolist()"),
            "One number, of one head. Which axis of trace.scores tells the heads "
            "apart?",
        ),
        Wrong(
            "Softmax cannot raise the rank.",
            "weights",
            slip(ranks, "rank(wide.weights[0]).item()", "d_k"),
            "That is the rank of the scores. Is exp, entry by entry, a linear map?",
        ),
        Wrong(
            "Each head keeps its rank, whatever its width.",
            "half",
            slip(ranks, "rank(narrow.scores[0]).item()", "d_k"),
            "That is the rank before the split was made finer. How wide is a head now?",
        ),
        Wrong(
            "More heads mean a higher rank.",
            "half",
            slip(ranks, "rank(narrow.scores[0]).item()", "2 * d_k"),
            "You doubled it with the heads. Look at one head: did it gain or lose "
            "columns?",
        ),
        Wrong(
            "Numbers speak for themselves.",
            "why",
            slip(ranks, '"why": "A', '"why": "Fewer." or "A'),
            "The numbers are right. What do they mean for someone who has to choose h "
            "and d_k?",
        ),
    ),
    right=(
        right.ranks_by_counting,
        right.ranks_as_tensors,
        right.ranks_by_singular_values,
    ),
)

EXERCISES = (SHAPES, BUG, MHA, RANK)
