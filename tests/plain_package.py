"""The package as users import it: without assertions on its annotations."""

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType


@contextlib.contextmanager
def plain_package() -> Iterator[ModuleType]:
    """Import ``mha_teach`` anew without jaxtyping's hook, in place of the checked one.

    With the hook an argument that breaks an annotation never reaches our own check,
    and ``torch.compile`` would trace the assertions.
    """
    checked = {name: sys.modules.pop(name) for name in _loaded()}
    finders = list(sys.meta_path)
    sys.meta_path[:] = [f for f in finders if "jaxtyping" not in type(f).__module__]
    try:
        yield importlib.import_module("mha_teach")
    finally:
        sys.meta_path[:] = finders
        for name in _loaded():
            del sys.modules[name]
        sys.modules.update(checked)


def _loaded() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] == "mha_teach"]
