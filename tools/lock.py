"""Write requirements/lock.txt and requirements/test.txt anew from pyproject.toml.

lock.txt holds what a learner needs, test.txt what the tests add to it. PyTorch
stands in torch.txt; its CUDA libraries are left out of both.
"""

import re
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[1] / "requirements"
NOT_LOCKED = re.compile(r"(torch|triton|cuda-|nvidia-)")
HEADER = "# Made by `python3 book.py lock` from pyproject.toml; do not edit.\n"


def resolve(*options):
    """Return the pinned requirements by name, each with its hashes."""
    torch = re.search(r"torch==[\d.]+", (REQUIREMENTS / "torch.txt").read_text())
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml"]
    command += ["--universal", "--python-version=3.11", "--generate-hashes"]
    command += ["--no-header", "--no-annotate", "--upgrade", "--quiet"]
    command += ["--constraint=-", *options]
    lock = subprocess.run(
        command,
        cwd=REQUIREMENTS.parent,
        input=torch.group(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    blocks = re.findall(r"^\S.*\n(?:[ ].*\n)+", lock, flags=re.MULTILINE)
    return [block for block in blocks if not NOT_LOCKED.match(block)]


def main():
    """Resolve twice: without the test tools, and with them on top of the same pins."""
    lock = REQUIREMENTS / "lock.txt"
    learner = resolve()
    lock.write_text(HEADER + "".join(learner))
    with_tests = resolve("--extra=test", f"--constraint={lock}")
    added = [block for block in with_tests if block not in learner]
    (REQUIREMENTS / "test.txt").write_text(HEADER + "".join(added))


if __name__ == "__main__":
    main()
