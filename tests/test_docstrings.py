"""The examples in the core's docstrings run and print what they say."""

import doctest
import importlib

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
