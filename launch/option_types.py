"""Types of command-line options, for argparse: a value, or ArgumentTypeError with a sentence."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import NamedTuple

from simul.common.errors import ConfigError

MOST = 10**9  # games, processes, ...: what files of results hold


def path(text: str) -> Path:
    """A path. Refuses empty text, usually an unset shell variable, which would mean the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("expected a path, got ''")
    return Path(text)


def address(text: str) -> str:
    """Where to listen. Refuses empty text, usually an unset shell variable, which the system takes for any address."""
    if not text:
        raise argparse.ArgumentTypeError("expected an address or a name of this machine, such as 127.0.0.1; got ''")
    return text


def checkpoint(text: str) -> Path | str:
    """As `local_checkpoint`, or the URL of a store or of a checkpoint in it, as text."""
    return text if "://" in text else local_checkpoint(text)


class SearchedCheckpoint(NamedTuple):
    """A checkpoint as `checkpoint` gives it, and settings of the section `search`, K=V, that it plays with."""

    place: Path | str
    search: tuple[str, ...] = ()


def searched_checkpoint(text: str) -> SearchedCheckpoint:
    """`checkpoint`, or `CHECKPOINT#K=V,K=V`. A path that exists, and a URL without a `=` there, is taken as it is."""
    place, mark, settings = text.partition("#")
    of_url = "://" in text and "=" not in settings
    if not mark or of_url or os.path.lexists(text):
        return SearchedCheckpoint(checkpoint(text))
    words = tuple(settings.split(","))
    if not all(re.fullmatch(r"[a-z_]+=[A-Za-z0-9_.-]+", word) for word in words):
        raise argparse.ArgumentTypeError(
            f"expected CHECKPOINT#K=V,... with settings of the section search, such as simulations=16 of a policy that "
            f"learned by search, else worlds=60; got {text!r}"
        )
    return SearchedCheckpoint(checkpoint(place), words)


def local_checkpoint(text: str) -> Path:
    """The path of a checkpoint or of a run directory; that of a shipped policy for zoo:NAME. Refuses a URL."""
    from simul.common.checkpoints.zoo import zoo_folder  # only here: it needs msgspec, too heavy for a command line

    if "://" in text:
        raise argparse.ArgumentTypeError(
            f"expected a checkpoint on this machine, or zoo:NAME, got {text}; the URL of a store is for `simul up "
            "--from`, and --checkpoint of `simul eval`, `serve`, `play`, `watch` and `export`"
        )
    try:
        return zoo_folder(text) or path(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_run(parser: argparse.ArgumentParser, default: str) -> None:
    """Add `--run-dir DIR`, and the same as an argument: `simul status runs/x`. `named_run` reads them."""
    parser.add_argument("run_named", nargs="?", type=path, metavar="RUN", help=f"a run directory (default: {default})")
    parser.add_argument("--run-dir", type=path, metavar="RUN", help="the same")


def add_trust(parser: argparse._ActionsContainer) -> None:
    """Add `--trust`."""
    parser.add_argument(
        "--trust", action="store_true",
        help="run the code and programs that the run directory, checkpoint or replay names, also where others made it",
    )  # fmt: skip


def named_run(options: argparse.Namespace) -> Path | None:
    """The run directory given in one of the two ways; None where there is none. Raises ConfigError for two."""
    given: list[Path] = [root for root in (options.run_named, options.run_dir) if root is not None]
    if len(given) > 1:
        raise ConfigError(f"Expected one run directory, got {given[0]} and --run-dir {given[1]}: give one of the two.")
    return given[0] if given else None


def count(text: str) -> int:
    """A whole number from 1 to `MOST`, which files of results hold."""
    if not text.isdecimal() or not text.strip("0"):
        raise argparse.ArgumentTypeError(f"expected a whole number, at least 1; got {text!r}")
    if len(text) > 20 or int(text) > MOST:
        raise argparse.ArgumentTypeError(f"expected a whole number, at most {MOST:,}; got one of {len(text)} digits")
    return int(text)


def whole_number(text: str) -> int:
    """A whole number, 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number >= 0, got {text!r}")
    return int(text)


def port(text: str) -> int:
    """A port of TCP; 0: a free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)
