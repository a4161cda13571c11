"""Paired CPU times: rounds rotate A B C / C B A, the median of the ratios counts."""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

Call = Callable[[], object]


def paired_seconds(calls: dict[str, Call], rounds: int) -> dict[str, list[float]]:
    """Return the CPU time of each call in each round, after one call to warm up."""
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for i in range(rounds):
        forth_or_back = 1 if i % 2 == 0 else -1
        for name in list(calls)[::forth_or_back]:
            start = time.process_time()
            calls[name]()
            seconds[name].append(time.process_time() - start)
    return seconds


def ratio(seconds: dict[str, list[float]], name: str, base: str) -> float:
    """Return the median over rounds of one call's time over another's."""
    pairs = zip(seconds[name], seconds[base], strict=True)
    return statistics.median(ours / theirs for ours, theirs in pairs)


def forward(module: nn.Module, x: Tensor, **kwargs) -> Call:
    """Call the module in eval mode, without gradients."""

    def call() -> None:
        module.eval()
        with torch.no_grad():
            module(x, **kwargs)

    return call


def forward_backward(module: nn.Module, x: Tensor, **kwargs) -> Call:
    """Call it in training mode, with gradients of the input and the parameters."""
    x = x.clone().requires_grad_()
    grad = torch.randn_like(x)

    def call() -> None:
        module.train().zero_grad()
        x.grad = None
        module(x, **kwargs).backward(grad)

    return call


PASSES = {"forward": forward, "forward+backward": forward_backward}
