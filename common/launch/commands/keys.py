"""`simul keys new`: the CURVE keys of a server that other machines reach."""

from __future__ import annotations

import sys
from pathlib import Path

from simul.common.transport import new_keys


def keys_new(folder: Path, client: str) -> int:
    """Make them and say what belongs where. Raises ConfigError."""
    for path in new_keys(folder, client):
        sys.stdout.write(f"{path}{'  (secret)' if path.suffix == '.key_secret' else ''}\n")
    sys.stdout.write(
        f"Server: --set server.curve_keys={folder} --set server.endpoint=tcp://0.0.0.0:5555\n"
        f"Client: copy server.key, {client}.key and {client}.key_secret over; `simul connect --keys DIR` checks them.\n"
        f"Whose key lies in {folder / 'allowed'} may connect; remove the file, and the next connection is refused.\n"
    )
    return 0
