"""Who imports whom inside the package, and what ``import mha_teach`` loads."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mha_teach

PACKAGE = Path(mha_teach.__file__).parent
CORE = {"masks", "cache", "_checks", "_kernels", "attention", "heads", "costs"}
ABOVE = {"models", "model", "training", "tasks", "plots", "widgets", "exercises"}

# "mha_teach" stands for what the package itself re-exports: the core.
MAY_IMPORT = {
    "masks": set(),
    "cache": set(),
    "costs": set(),
    "tasks": {"costs", "masks"},
    "plots": set(),
    "workspace": set(),
    "_checks": {"masks", "cache", "costs"},
    "_kernels": {"masks"},
    "attention": {"masks", "cache", "_checks", "_kernels"},
    "heads": {"masks", "_checks", "attention"},
    "model": {"masks", "cache", "attention"},
    "models": {"masks", "attention"},
    "training": {"masks", "attention", "heads", "model", "costs", "tasks"},
    "widgets": {"costs"},
    "exercises": {"mha_teach", *CORE, "model", "models", "tasks"},
    "__init__": CORE,
    "cli": {"mha_teach", "workspace", *CORE, *ABOVE},
}


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield dotted names; those under TYPE_CHECKING are never imported."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(level=0, module="mha_teach", names=names):
                yield from (f"mha_teach.{alias.name}" for alias in names)
            case ast.ImportFrom(level=0, module=module):
                yield module
            case _:
                yield from imports(node)


def parts_of_the_package(name: str) -> set[str]:
    """Name the parts of the package that a part imports, itself left out."""
    path = PACKAGE / name
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    found = set()
    for file in files:
        for imported in imports(ast.parse(file.read_text("utf-8"))):
            top, _, rest = imported.partition(".")
            if top == "mha_teach":
                part = rest.partition(".")[0]
                found.add(part if part in MAY_IMPORT else "mha_teach")
    return found - {name}


def existing_parts() -> list[str]:
    return sorted(
        path.stem
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    )


@pytest.mark.parametrize("part", existing_parts())
def test_direction(part):
    assert part in MAY_IMPORT, f"say above what mha_teach/{part} may import"
    allowed = MAY_IMPORT[part]
    if part == "__init__":
        allowed = allowed | {"mha_teach"}
    assert parts_of_the_package(part) <= allowed


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda f: f.stem)
def test_nothing_leans_on_the_rest_of_the_house(file):
    tree = ast.parse(file.read_text("utf-8"))
    tops = {name.partition(".")[0] for name in imports(tree)}
    assert not tops & {"chapters", "tests", "tools", "benchmarks", "theme", "book"}


def test_costs_need_the_standard_library_alone():
    tree = ast.parse((PACKAGE / "costs.py").read_text("utf-8"))
    tops = {name.partition(".")[0] for name in imports(tree)}
    assert tops
    assert tops <= set(sys.stdlib_module_names)


def test_the_core_loads_nothing_heavy_beside_torch():
    heavy = {
        "IPython",
        "anywidget",
        "click",
        "ipywidgets",
        "matplotlib",
        "pandas",
        "safetensors",
        "tokenizers",
        "traitlets",
        "transformers",
    }
    code = "import sys, mha_teach; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "mha_teach.attention" in loaded
    assert not heavy & set(loaded)
    assert not {name for name in loaded if name.startswith("torch._inductor.")}
    parts = {name.split(".")[1] for name in loaded if name.startswith("mha_teach.")}
    assert parts == CORE
