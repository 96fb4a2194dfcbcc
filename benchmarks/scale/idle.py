"""Connections that do nothing but PING: `python -m benchmarks.scale.idle`. Says `ready`; ends when stdin is closed."""

from __future__ import annotations

import argparse
import select
import sys
from pathlib import Path

from simul.common.client.columns import ColumnClient
from simul.common.role.run_directory import RunDir
from simul.common.transport import client_keys

LOOK_SEC = 0.1


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--endpoint", default="", help="default: the run's own, past the proxy")
    parser.add_argument("--keys", type=Path, help="folder of the CURVE keys")
    options = parser.parse_args()
    run_dir = RunDir(options.run_dir)
    spec, keys = run_dir.read_spec(), client_keys(options.keys) if options.keys else None
    endpoint = options.endpoint or run_dir.own_endpoint("")
    clients = [
        ColumnClient(endpoint, name=f"{options.name}-{number}", spec=spec, keys=keys) for number in range(options.count)
    ]
    for client in clients:
        client.connect()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not select.select([sys.stdin], [], [], LOOK_SEC)[0]:
        for client in clients:
            client.poll()
    for client in clients:
        client.close()


if __name__ == "__main__":
    main()
