"""Arguments and options that several verbs share."""

from __future__ import annotations

import os
from typing import Annotated, Final, Literal, TypeAlias

import typer

Format: TypeAlias = Literal["libsvm", "vw", "fasttext", "tsv", "csv", "jsonl", "parquet", "arrow"]
AutoFormat: TypeAlias = Literal[
    "auto", "libsvm", "vw", "fasttext", "tsv", "csv", "jsonl", "parquet", "arrow"
]
OnErrorChoice: TypeAlias = Literal["raise", "skip"]

ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")]
DataFile = Annotated[
    str, typer.Argument(metavar="DATA", help="A data file, also gzip or zstd; - is standard input.")
]
Beam = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, max=1024, help="Paths that a row takes.", show_default="the model's"
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        metavar="T",
        min=0.001,
        max=1000.0,
        help="What routers' scores are divided by if a row takes several paths.",
        show_default="the model's",
    ),
]
Jobs = Annotated[int, typer.Option(metavar="N", help="Threads; -1 is all cores.")]
DataFormat = Annotated[
    Format | None,
    typer.Option(
        help="Format of the data; texts may come in another one than that of the training. If "
        "given, first lines are not checked for being of another.",
        show_default="the model's, or told by the file",
    ),
]
_TABLE: Final = "Columns of csv, jsonl, parquet, arrow"
TextColumn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Column of the texts, by name or number from 1; if repeated, their texts are joined, "
        "or have features of their own (train --separate-columns).",
        show_default="as in training, else told by the file",
        rich_help_panel=_TABLE,
    ),
]
NumericColumn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Column of numbers beside the texts, by name or number from 1; repeatable. It implies "
        "--separate-columns.",
        rich_help_panel=_TABLE,
    ),
]
SeparateColumns = Annotated[
    bool,
    typer.Option(
        "--separate-columns",
        help="Each --text-column has features of its own; else texts of a record are joined.",
        rich_help_panel=_TABLE,
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Column of the labels, by name or number from 1.",
        show_default="as in training, else told by the file",
        rich_help_panel=_TABLE,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="csv: the first record names the columns.",
        show_default="as in training, else told by the file",
        rich_help_panel=_TABLE,
    ),
]
Encoder = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Directory of the sentence encoder that the model was trained with (tokenizer.json "
        "and an ONNX file; extra embed).",
    ),
]
OnError = Annotated[
    OnErrorChoice, typer.Option(help="What to do about a line or record that cannot be read.")
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON to standard output.")]


def _hush(quiet: bool) -> bool:
    """Let code be compiled without a note; what compiles is imported later, and looks there."""
    if quiet:
        os.environ.setdefault("THINLEAF_SAY_COMPILING", "0")
    return quiet


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Show no progress and no notes, only results.", callback=_hush
    ),
]


def beam_width(text: str) -> int | Literal["auto"]:
    """Return a number of paths, or that training is to find it."""
    if text == "auto":
        return "auto"
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise ValueError(f"--beam must be a number in 1..1024, or auto, got {text!r}")
    return int(text)


def check_temperature(temperature: float, beam: int | Literal["auto"]) -> None:
    """Refuse a temperature that changes nothing."""
    if temperature != 1.0 and beam == "auto":
        raise ValueError("--temperature is found with --beam auto: leave it out")
    if temperature != 1.0 and beam == 1:
        raise ValueError("--temperature is for several paths: give --beam 2 or more, too")
