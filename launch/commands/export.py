"""`simul export`: a checkpoint's policy as a file that answers without Simul."""

from __future__ import annotations

import argparse
from pathlib import Path

from simul.common.errors import ConfigError
from simul.launch.option_types import add_trust, checkpoint, path


def add_export(export: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    export.add_argument(
        "--checkpoint", type=checkpoint, required=True, metavar="D",
        help="a checkpoint, a run directory, zoo:NAME, or the URL of a checkpoint in a store",
    )  # fmt: skip
    export.add_argument("--format", choices=("onnx",), default="onnx", help="(default: %(default)s)")
    export.add_argument(
        "--out", type=path, default=Path("policy.onnx"), metavar="FILE", help="it is replaced (default: %(default)s)"
    )
    add_trust(export)
    export.set_defaults(run=_export)


def _check_out(file: Path) -> None:
    """Raises ConfigError, before the export, which takes its time, for a name at which no file can be put."""
    if not file.absolute().parent.is_dir():
        raise ConfigError(f"--out {file}: there is no folder {file.absolute().parent}. Make it, or name another place.")
    if file.is_symlink() or (file.exists() and not file.is_file()):
        kind = "a link" if file.is_symlink() else "a folder" if file.is_dir() else "no regular file"
        raise ConfigError(f"--out {file}: expected the name of a file, new or to be replaced; this is {kind}.")


def _export(options: argparse.Namespace) -> int:
    from simul.launch.processes.role_process import run_in_foreground
    from simul.launch.supervisor.checkpoint_files import newest_checkpoint
    from simul.launch.supervisor.store_process import local_checkpoints

    _check_out(options.out)
    with local_checkpoints([options.checkpoint]) as (found,):
        arguments = [str(newest_checkpoint(found)), str(options.out), *(["--trust"] if options.trust else [])]
        return run_in_foreground("simul.common.nets.onnx_file", arguments)
