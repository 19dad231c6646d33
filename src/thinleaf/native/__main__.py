"""``python -m thinleaf.native`` prints the directory of ``thinleaf.h``, for compilers."""

from __future__ import annotations

from pathlib import Path

if __name__ == "__main__":
    print(Path(__file__).parent)
