"""Breaking the package on purpose turns the tests and the notebooks red."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
UNIT_TESTS = ("tests/test_module.py",)
NOTEBOOK = ("--nbval", "chapters/07_multi_head_attention.ipynb")
QUICK_NOTEBOOK = ("--nbval", "chapters/06_split_and_merge.ipynb")


class Sabotage(NamedTuple):
    """One change to ``attention.py``: a line that works, and one that runs."""

    right: str
    wrong: str


SABOTAGES = {
    "no scale": Sabotage(
        "return (q * (q.shape[-1] ** -0.5 if scale is None else scale)) @ k.mT",
        "return q @ k.mT",
    ),
    "inverted mask": Sabotage(
        "scores.masked_fill(~mask & attends_somewhere,",
        "scores.masked_fill(mask & attends_somewhere,",
    ),
    "merge without transpose": Sabotage(
        "return x.transpose(-3, -2).flatten(-2)",
        "return x.reshape(x.shape[0], x.shape[2], -1)",
    ),
    "softmax over queries": Sabotage(
        "return scores.softmax(dim=-1).masked_fill(",
        "return scores.softmax(dim=-2).masked_fill(",
    ),
    "K used as V": Sabotage(
        "self.split_heads(self.v_proj(value), self.num_kv_heads)",
        "self.split_heads(self.k_proj(value), self.num_kv_heads)",
    ),
    "key heads tiled": Sabotage(
        "return x.repeat_interleave(self.num_heads // self.num_kv_heads, dim=1)",
        "return x.repeat(1, self.num_heads // self.num_kv_heads, 1, 1)",
    ),
}
QUICK = ["no scale", "inverted mask", "merge without transpose"]


def a_copy(folder: Path, sabotage: Sabotage | None) -> Path:
    """Copy what the tests need, with one change to the package or none."""
    generated = shutil.ignore_patterns("__pycache__", ".hypothesis", "node_modules")
    for name in ("mha_teach", "tests", "tools", "chapters"):
        shutil.copytree(ROOT / name, folder / name, ignore=generated)
    shutil.copy(ROOT / "pyproject.toml", folder)
    if sabotage is not None:
        attention = folder / "mha_teach" / "attention.py"
        text = attention.read_text("utf-8")
        assert text.count(sabotage.right) == 1, "attention.py no longer says this"
        changed = text.replace(sabotage.right, sabotage.wrong)
        attention.write_text(changed, "utf-8")
    return folder


def run_tests(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


def assert_green(result: subprocess.CompletedProcess) -> None:
    assert result.returncode == 0, result.stdout + result.stderr


def assert_red(result: subprocess.CompletedProcess) -> None:
    """Demand a failed test; an import or usage error would not do."""
    assert result.returncode == 1, result.stdout + result.stderr
    assert " 1 failed" in result.stdout


def test_unit_tests_are_green_on_a_faithful_copy(tmp_path):
    assert_green(run_tests(a_copy(tmp_path, None), *UNIT_TESTS))


@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in SABOTAGES
    ],
)
def test_unit_tests_turn_red(name, tmp_path):
    assert_red(run_tests(a_copy(tmp_path, SABOTAGES[name]), *UNIT_TESTS))


@pytest.mark.slow
@pytest.mark.parametrize("notebook", [NOTEBOOK, QUICK_NOTEBOOK], ids=["07", "06"])
def test_the_notebook_is_green_on_a_faithful_copy(notebook, tmp_path):
    assert_green(run_tests(a_copy(tmp_path, None), *notebook))


@pytest.mark.parametrize("name", QUICK)
def test_the_quick_notebook_turns_red(name, tmp_path):
    assert_red(run_tests(a_copy(tmp_path, SABOTAGES[name]), *QUICK_NOTEBOOK))


@pytest.mark.slow
@pytest.mark.parametrize("name", SABOTAGES)
def test_the_notebook_turns_red(name, tmp_path):
    assert_red(run_tests(a_copy(tmp_path, SABOTAGES[name]), *NOTEBOOK))
