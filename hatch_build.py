"""Builds the extension around ``thinleaf.h`` into wheels, where there is a C compiler.

Without one, or with ``THINLEAF_NO_EXTENSION=1``, the wheel is pure Python and numba predicts.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

sys.path.insert(0, str(Path(__file__).parent / "src"))


class ExtensionHook(BuildHookInterface[Any]):
    """Compiles one C file; what goes wrong with that is a note, and no error."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the extension to a wheel, or put it where an editable install looks for it."""
        from thinleaf.native._build import HERE, NoExtensionError, build

        if os.environ.get("THINLEAF_NO_EXTENSION", "0") == "1":
            return
        self._folder = tempfile.TemporaryDirectory()
        try:
            made = build(HERE if version == "editable" else Path(self._folder.name))
        except (NoExtensionError, OSError) as error:
            self.app.display_warning(f"thinleaf is built without its extension: {error}")
            return
        if version != "editable":
            build_data["force_include"][str(made)] = f"thinleaf/native/{made.name}"
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{next(iter(platform_tags()))}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
