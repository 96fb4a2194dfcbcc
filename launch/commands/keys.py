"""`simul keys new`: the CURVE keys of a server that other machines reach."""

from __future__ import annotations

import argparse
from pathlib import Path

from simul.common.runtime.terminal_text import print_text
from simul.launch.option_types import path


def add_keys(keys: argparse.ArgumentParser) -> None:
    """Add its action, and the action's arguments, to a parser."""
    new = keys.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "new", help="make a server's and a client's", description="Make a server's and a client's."
    )
    new.add_argument("folder", nargs="?", type=path, default=Path("keys"), metavar="DIR", help="default: keys")
    new.add_argument("--client", default="client", metavar="NAME", help="whose keys, beside the server's")
    new.set_defaults(run=lambda options: keys_new(options.folder, options.client))


def keys_new(folder: Path, client: str) -> int:
    """Write the key files and print where each belongs. Raises ConfigError."""
    from simul.common.transport import new_keys

    for file in new_keys(folder, client):
        print_text(f"{file}{'  (secret)' if file.suffix == '.key_secret' else ''}")
    print_text(
        f"Server: --set server.curve_keys={folder} --set server.endpoint=tcp://0.0.0.0:5555\n"
        f"Client: copy server.key, {client}.key and {client}.key_secret over; `simul connect --keys DIR` checks them.\n"
        f"A client may connect while its key lies in {folder / 'allowed'}. Remove the file, and its next connection is "
        "refused."
    )
    return 0
