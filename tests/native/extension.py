"""The extension as its sources are now, whether or not it was built into the installed package."""

from __future__ import annotations

import sys
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests.native.compiled import folder
from thinleaf.native._build import NoExtensionError, build

NAME = "thinleaf.native._compiled"

FIRST = """
import os, sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
os.environ["THINLEAF_NATIVE"] = "1"
found = spec_from_file_location({name!r}, {path!r}, loader=ExtensionFileLoader({name!r}, {path!r}))
sys.modules[{name!r}] = module_from_spec(found)
found.loader.exec_module(sys.modules[{name!r}])
"""
"""What a program begins with that uses this extension."""


@cache
def extension() -> Path:
    """Return the file of the extension; the test is left out if it cannot be built."""
    try:
        return build(folder())
    except NoExtensionError as error:
        pytest.skip(str(error))


def use_extension() -> None:
    """Let ``thinleaf.native`` find it in this process."""
    if NAME not in sys.modules:
        path = str(extension())
        spec = spec_from_file_location(NAME, path, loader=ExtensionFileLoader(NAME, path))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[NAME] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[NAME])


def program(text: str) -> str:
    """Return a program that uses it."""
    return FIRST.format(name=NAME, path=str(extension())) + text
