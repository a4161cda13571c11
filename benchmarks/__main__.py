"""Measure the core against its peers and print each figure beside its budget.

One thread, CPU time, paired rounds in one run: a busy machine shifts both sides
alike. Read a difference below 5 % as a tie and measure again before believing it.
"""

import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import nn

from benchmarks.memory import peak_mib
from benchmarks.peers import FourLinearsSDPA, PackedSDPA, Textbook, TorchMHA
from benchmarks.timing import PASSES, forward, paired_seconds, ratio
from mha_teach import MultiHeadAttention, masks


class Line(NamedTuple):
    """One row of the report."""

    what: str
    measured: str
    budget: str
    ok: bool | None

    def __str__(self) -> str:
        verdict = {True: "ok", False: "over", None: ""}[self.ok]
        row = f"{self.what:<72} {self.measured:>9}  {self.budget:<9} {verdict}"
        return row.rstrip()


def at_most(what: str, measured: float, budget: float, unit: str = "×") -> Line:
    ok = measured <= budget
    return Line(what, f"{measured:.2f} {unit}", f"≤ {budget:g} {unit}", ok)


def at_least(what: str, measured: float, budget: float) -> Line:
    return Line(what, f"{measured:.2f} ×", f"≥ {budget:g} ×", measured >= budget)


def unbounded(what: str, measured: float) -> Line:
    return Line(what, f"{measured:.2f} ×", "", None)


class Traced(nn.Module):
    """The readable path as a module of its own."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)

    def forward(self, x):
        return self.attention.trace(x).output


def fast_path_against_fused_forms() -> Iterator[Line]:
    sizes = {(8, 128, 512, 8): 31, (1, 1024, 768, 12): 11, (1, 4096, 512, 8): 5}
    for (batch, n, d_model, num_heads), rounds in sizes.items():
        x = torch.randn(batch, n, d_model)
        ours = MultiHeadAttention(d_model, num_heads)
        peers = {
            "packed": PackedSDPA(d_model, num_heads),
            "four Linears": FourLinearsSDPA(d_model, num_heads),
        }
        for causal in (False, True):
            mask = masks.causal(n) if causal else None
            for name, one_pass in PASSES.items():
                calls = {"ours": one_pass(ours, x, mask=mask)}
                for peer, module in peers.items():
                    calls[peer] = one_pass(module, x, causal=causal)
                seconds = paired_seconds(calls, rounds)
                worst = max(ratio(seconds, "ours", peer) for peer in peers)
                what = f"forward / best fused form, {(batch, n, d_model, num_heads)}"
                yield at_most(f"{what}, {name}{', causal' * causal}", worst, 1.05)


def fast_path_against_explicit_weights() -> Iterator[Line]:
    for num_heads, budget in {8: 3.2, 16: 4.2}.items():
        x = torch.randn(1, 4096, 512)
        calls = {
            "ours": forward(MultiHeadAttention(512, num_heads), x),
            "textbook": forward(Textbook(512, num_heads), x),
            "torch": forward(TorchMHA(512, num_heads, need_weights=False), x),
        }
        seconds = paired_seconds(calls, rounds=5)
        size = f"(1, 4096, 512, {num_heads}), forward"
        faster = ratio(seconds, "textbook", "ours")
        yield at_least(f"textbook class / forward, {size}", faster, budget)
        faster = ratio(seconds, "torch", "ours")
        yield unbounded(f"nn.MultiheadAttention / forward, no weights, {size}", faster)


def trace_against_torch() -> Iterator[Line]:
    x = torch.randn(1, 1024, 512)
    for (name, one_pass), budget in zip(PASSES.items(), (1.35, 1.05), strict=True):
        calls = {
            "trace": one_pass(Traced(512, 8), x),
            "torch": one_pass(TorchMHA(512, 8, need_weights=True), x),
        }
        seconds = paired_seconds(calls, rounds=15)
        what = f"trace / nn.MultiheadAttention, (1, 1024, 512, 8), {name}"
        yield at_most(what, ratio(seconds, "trace", "torch"), budget)


def peak_memory() -> Iterator[Line]:
    for which, budget in {"forward": 50, "forward+backward": 100}.items():
        peaks = {h: peak_mib(4096, 512, h, which) for h in (8, 16)}
        for num_heads, peak in peaks.items():
            what = f"peak memory, (1, 4096, 512, {num_heads}), {which}"
            if peak is None:
                # q, k, v, the heads and the output, each 4096 · 512 numbers
                counted = 5 * 4096 * 512 * 4 / 2**20
                yield Line(
                    what, "no /proc", f"by count {counted:.0f} MiB forward", None
                )
            else:
                yield at_most(what, peak, budget, "MiB")
        if None not in peaks.values():
            what = f"peak memory of 16 heads / of 8, {which}"
            yield at_most(what, peaks[16] / peaks[8], 1.05)


def import_time() -> Iterator[Line]:
    code = (
        "import time, torch; start = time.process_time(); import mha_teach; "
        "print(time.process_time() - start)"
    )
    seconds = [
        float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)
    ]
    yield at_most("import mha_teach beyond torch", statistics.median(seconds), 0.1, "s")


def main() -> int:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    over = False
    for group in (
        fast_path_against_fused_forms,
        fast_path_against_explicit_weights,
        trace_against_torch,
        peak_memory,
        import_time,
    ):
        for line in group():
            print(line, flush=True)
            over |= line.ok is False
    return int(over)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nInterrupted.")
        sys.exit(130)
