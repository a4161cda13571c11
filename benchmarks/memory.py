"""Peak memory of one call, in a child process: ``python -m benchmarks.memory``."""

import os
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks.timing import PASSES
from mha_teach import MultiHeadAttention

CLEAR, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
# Each freed tensor goes back at once: the mark shows what is alive, not what is kept.
RETURN_AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "65536"}


def peak_mib(n: int, d_model: int, num_heads: int, which: str) -> float | None:
    """Return the peak above the built module, None where /proc cannot tell.

    A child's own high-water mark is used: ``ru_maxrss`` is inherited and misleads.
    """
    if not CLEAR.exists():
        return None
    command = [sys.executable, "-m", "benchmarks.memory"]
    sizes = map(str, (n, d_model, num_heads))
    result = subprocess.run(
        [*command, *sizes, which],
        env=os.environ | RETURN_AT_ONCE,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(result.stdout)


def measure(n: int, d_model: int, num_heads: int, which: str) -> float:
    """Return the same for this process."""
    torch.set_num_threads(1)
    module = MultiHeadAttention(d_model, num_heads)
    PASSES[which](module, torch.randn(1, 2, d_model))()  # loads the kernels
    module.zero_grad()
    call = PASSES[which](module, torch.randn(1, n, d_model))
    CLEAR.write_text("5")  # resets the high-water mark
    before = _high_water_kib()
    call()
    return (_high_water_kib() - before) / 1024


def _high_water_kib() -> int:
    line = next(s for s in STATUS.read_text().splitlines() if s.startswith("VmHWM"))
    return int(line.split()[1])


if __name__ == "__main__":
    *sizes, which = sys.argv[1:]
    print(measure(*map(int, sizes), which))
