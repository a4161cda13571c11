"""The command ``mha-teach``, beside the package: to import that would load PyTorch."""

import runpy
from pathlib import Path


def main() -> None:
    """Run ``mha_teach/cli.py`` by itself."""
    package = Path(__file__).resolve().with_name("mha_teach")
    runpy.run_path(str(package / "cli.py"), run_name="__main__")
