"""Train the models behind chapter 05: ``python -m tools.why_many_heads``.

Writes chapters/artifacts/why_many_heads.json and its card, why_many_heads.md. Takes
about ten minutes of processor time. Task, loop and measure are those of heads_grid.py.
"""

import json
import platform
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from math import log
from multiprocessing import get_context
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mha_teach import MultiHeadAttention
from mha_teach.training import LookupModel, answer_loss, share_right, train
from tools.heads_grid import (
    BATCH_SIZE,
    D_MODEL,
    FOLDER,
    LONGER_STEPS,
    POSITIONS,
    SEEDS,
    STEPS,
    SYMBOLS,
    TEST_SEED,
    TEST_SIZE,
    batch_loss,
    exam,
    summary,
)

ARTIFACT, CARD = FOLDER / "why_many_heads.json", FOLDER / "why_many_heads.md"

HEADS = (1, 2, 4, 8, 16, 32, 64)
WIDTH, HEADS_OF_THAT_WIDTH = 16, (1, 2, 4, 8, 16)
HIDDEN = 64
# Of two different symbols, at weights ½, ½, each answer is right by halves.
LEAST_LOSS = (1 - 1 / len(SYMBOLS)) * log(2)


def heads_and_a_linear_map(num_heads: int, d_k: int) -> LookupModel:
    return LookupModel(
        num_heads, d_k, d_v=d_k, d_model=D_MODEL, num_symbols=len(SYMBOLS)
    )


def heads_and_a_network(num_heads: int, d_k: int) -> LookupModel:
    model = heads_and_a_linear_map(num_heads, d_k)
    model.readout = nn.Sequential(
        nn.Linear(D_MODEL, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, model.readout.out_features),
    )
    return model


class SecondLayer(nn.Module):
    """The last token asks twice; what it was told the first time is added to it."""

    def __init__(self, num_heads: int, d_k: int):
        super().__init__()
        self.layers = nn.ModuleList(
            MultiHeadAttention(D_MODEL, num_heads, d_k=d_k, bias=False)
            for _ in range(2)
        )
        self.readout = nn.Linear(D_MODEL, 2 * len(SYMBOLS))

    def forward(
        self, x: Float[Tensor, "batch n d_model"]
    ) -> Float[Tensor, "batch answer symbol"]:
        asking = x[:, -1:]
        for attention in self.layers:
            asking = asking + attention(asking, x)
        return self.readout(asking.squeeze(1)).unflatten(-1, (2, -1))


MODELS: dict[str, Callable[[int, int], nn.Module]] = {
    "linear": heads_and_a_linear_map,
    "network": heads_and_a_network,
    "second layer": SecondLayer,
}


class Setting(NamedTuple):
    model: str
    num_heads: int
    d_k: int
    steps: int


EQUAL = [("linear", h, D_MODEL // h) for h in HEADS]
FIXED = [("linear", h, WIDTH) for h in HEADS_OF_THAT_WIDTH]
OTHERS = [("network", 1, D_MODEL), ("second layer", 1, D_MODEL // 2)]
SETTINGS = [
    Setting(*sizes, steps)
    for sizes in sorted({*EQUAL, *FIXED, *OTHERS})
    for steps in (STEPS, LONGER_STEPS)
]


def trained(setting: Setting, seed: int) -> nn.Module:
    generator = torch.manual_seed(seed)  # draws the first weights, then the batches
    model = MODELS[setting.model](setting.num_heads, setting.d_k)
    train(model, batch_loss, steps=setting.steps, generator=generator)
    return model


def attention_parameters(setting: Setting) -> int:
    model = MODELS[setting.model](setting.num_heads, setting.d_k)
    return sum(
        parameter.numel()
        for module in model.modules()
        if isinstance(module, MultiHeadAttention)
        for parameter in module.parameters()
    )


@torch.no_grad()
def measured(model: nn.Module) -> dict[str, float | list[float]]:
    """Return the shares of questions and of each symbol named rightly, and the loss."""
    test = exam()
    logits = model(test.x)
    each = (logits.argmax(dim=-1) == test.answer).float().mean(dim=0).tolist()
    return {
        "accuracy": round(share_right(logits, test.answer), 4),
        "each": [round(share, 4) for share in each],
        "loss": round(answer_loss(logits, test.answer).item(), 4),
    }


def runs(setting: Setting) -> dict:
    found = [measured(trained(setting, seed)) for seed in SEEDS]
    return {
        **setting._asdict(),
        "parameters": attention_parameters(setting),
        **{name: [one[name] for one in found] for name in found[0]},
    }


def artifact(records: list[dict]) -> dict:
    return {
        "task": {
            "d_model": D_MODEL,
            "positions": POSITIONS,
            "symbols": len(SYMBOLS),
            "seeds": list(SEEDS),
        },
        "runs": records,
    }


def table(records: list[dict], rows: list[tuple[str, int, int]]) -> str:
    """Write mean [lowest, highest] of both lengths of training, one row a model."""
    found = {tuple(r[field] for field in Setting._fields): r for r in records}
    lines = [
        f"| readout | h | d_k = d_v | parameters | {STEPS} steps "
        f"| {LONGER_STEPS:,} steps |",
        "|---" * 6 + "|",
    ]
    for model, num_heads, d_k in rows:
        short, long = (
            found[model, num_heads, d_k, steps] for steps in (STEPS, LONGER_STEPS)
        )
        lines.append(
            f"| {model} | {num_heads} | {d_k} | {short['parameters']:,} "
            f"| {summary(short['accuracy'])} | {summary(long['accuracy'])} |"
        )
    return "\n".join(lines)


def table_of_symbols(records: list[dict]) -> str:
    """Write how often one head and a linear readout name each symbol rightly."""
    lines = [
        "| d_k = d_v | steps | the symbol right more often | the other | loss |",
        "|---" * 5 + "|",
    ]
    for run in records:
        if run["model"] == "linear" and run["num_heads"] == 1:
            pairs = [sorted(pair) for pair in run["each"]]
            other, best = (summary(list(shares)) for shares in zip(*pairs, strict=True))
            shares = f"{best} | {other} | {summary(run['loss'])}"
            lines.append(f"| {run['d_k']} | {run['steps']:,} | {shares} |")
    return "\n".join(lines)


def card(records: list[dict]) -> str:
    size = ARTIFACT.stat().st_size / 1000
    return f"""# The trained models of chapter 5

{len(SETTINGS)} settings of small models, each trained from {len(SEEDS)} seeds: what
[chapter 5](../05_why_many_heads.ipynb) says about training.

| | |
|---|---|
| command | `python -m tools.why_many_heads`, about ten minutes of processor time |
| seeds | {", ".join(map(str, SEEDS))}; test {TEST_SEED} |
| versions | torch {torch.__version__}, Python {platform.python_version()}, \
{platform.system()} {platform.machine()} |
| size | {size:.0f} kB |
| licence | CC BY 4.0 |

## Task and training

They are those of the [models behind Heads](heads_grid.md): {POSITIONS} positions hold
one of {len(SYMBOLS)} symbols each, and the last token asks for two of them, in order.
A blind guess gets both right once in {len(SYMBOLS) ** 2} times; one look-up and a
guess, once in {len(SYMBOLS)}. Each run takes {STEPS} or {LONGER_STEPS:,} batches of
{BATCH_SIZE} new questions, with Adam and a one-cycle learning rate up to 0.006. The
seed fixes the first weights and the batches. d_model is {D_MODEL}.

- **linear**: one layer of attention, in which the last token asks, and a linear
  readout (`mha_teach.training.LookupModel`).
- **network**: the same, but the readout is a small network: a linear map to {HIDDEN}
  numbers, ReLU, a linear map.
- **second layer**: the last token asks in one layer, what it is told is added to it,
  and it asks again in a second layer; then a linear readout.

The tables hold the share of {TEST_SIZE:,} new questions, the same for all models, of
which both answers are right: mean of the seeds [lowest, highest]. *Parameters* are
those of the attention, without the readout.

## More heads at equal parameters

{table(records, EQUAL)}

## More heads of one width

{table(records, FIXED)}

## One head, and something else

{table(records, OTHERS)}

## What they say, and what they do not

One head with a linear readout fails at both widths and at both lengths of training,
and worse after the longer one. It comes to name one of the two symbols nearly always,
and the other little more often than by chance, once in {len(SYMBOLS)}. Training
lowers the loss, the mean cross-entropy of both answers in nats, and so does this: with
weights ½, ½ nothing gets it below {LEAST_LOSS:.2f}, since two different symbols are
then as likely in one order as in the other.

{table_of_symbols(records)}

Two heads of width {WIDTH} have half the parameters of one head of width {D_MODEL}, and
do not fail. With very narrow heads, 32 and 64 at equal parameters, what rises from
{STEPS} to {LONGER_STEPS:,} steps was a matter of patience. One head is enough where a
network follows it, or a second layer. All of this holds for this task, not for heads in
general.

## What the file holds

- `task`: sizes and seeds.
- `runs`: for each setting `model`, `num_heads`, `d_k` (d_v is the same), `steps`,
  `parameters`, and for each seed `accuracy`, of both symbols, `each`, of the first and
  of the second, and `loss`.
"""


def main() -> None:
    # A sum split over more threads may round differently.
    one_thread = {"initializer": torch.set_num_threads, "initargs": (1,)}
    with ProcessPoolExecutor(mp_context=get_context("spawn"), **one_thread) as workers:
        records = list(workers.map(runs, SETTINGS))
    text = json.dumps(artifact(records), indent=1, sort_keys=True)
    ARTIFACT.write_text(text + "\n", encoding="utf-8", newline="\n")
    CARD.write_text(card(records), encoding="utf-8", newline="\n")
    for rows in (EQUAL, FIXED, OTHERS):
        print(table(records, rows), end="\n\n")


if __name__ == "__main__":
    main()
