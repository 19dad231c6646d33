"""What importing the library costs, and that public names exist."""

from __future__ import annotations

import subprocess
import sys

import pytest

import thinleaf
from thinleaf.model import tree


def modules_after(statement: str) -> set[str]:
    """Return the names of all modules that a fresh interpreter holds after a statement."""
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("heavy", ["numba", "ray", "torch"])
def test_importing_is_light(heavy):
    assert heavy not in modules_after("import thinleaf")


@pytest.mark.parametrize("heavy", ["scipy.sparse", "sklearn"])
def test_a_model_is_loaded_without(heavy):
    """A process that answers single rows imports the compiler, and little else."""
    assert heavy not in modules_after("import thinleaf\nthinleaf.load")


def test_public_names_exist():
    for name in getattr(thinleaf, "__all__", ()):
        assert getattr(thinleaf, name) is not None
    assert set(getattr(thinleaf, "__all__", ())) <= set(dir(thinleaf))


def test_the_tree_is_public():
    assert thinleaf.Tree is tree.Tree


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError):
        thinleaf.no_such_name  # noqa: B018
