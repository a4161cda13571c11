"""The examples in the core's docstrings run and print what they say."""

import doctest
import importlib
from pathlib import Path

import pytest
import torch


@pytest.mark.parametrize("name", ["attention", "costs", "heads", "masks"])
def test_examples(name):
    module = importlib.import_module(f"mha_teach.{name}")
    result = doctest.testmod(module, extraglobs={"torch": torch})
    assert result.attempted >= 3
    assert result.failed == 0


def test_annotations_are_assertions_in_this_test_run():
    # --jaxtyping-packages in pyproject.toml: a transposed score matrix must not pass.
    attention = importlib.import_module("mha_teach.attention")
    with pytest.raises(TypeError, match="weighted_sum"):
        attention.weighted_sum(torch.zeros(11, 5), torch.zeros(5, 11, 7))


def test_every_module_that_states_shapes_has_them_checked(pytestconfig):
    *checked, _ = pytestconfig.getoption("jaxtyping_packages").split(",")
    package = Path(__file__).parents[1] / "mha_teach"
    stating = [
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in package.rglob("*.py")
        if "from jaxtyping import" in path.read_text("utf-8")
    ]
    assert sorted(checked) == sorted(stating)
