"""A local Showdown server until Ctrl-C: `simul showdown` starts this module."""

from __future__ import annotations

import argparse
import sys
import time

from simul.common.errors import EnvError, SimulError
from simul.common.role.lifecycle import StopFlag, Stopped
from simul.common.runtime.terminal_text import LINES, print_text, printable
from simul.env_worker.games.pokemon.install.folder import check_simulator
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.showdown.local_server import LocalServer, local_server

LOOK_SEC = 0.2


def main() -> int:
    """Exit code 0: stopped by Ctrl-C; 2: an error, printed as a sentence."""
    parser = argparse.ArgumentParser(prog="simul showdown")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--parent", type=int, default=0)
    options = parser.parse_args()
    stop = StopFlag(options.parent).install()
    try:
        check_simulator()
        with stop.interrupting(), local_server(find_node().path, options.port) as server:
            server.be_first_user()
            print_text(invitation(server))
            while server.alive():
                time.sleep(LOOK_SEC)
            raise EnvError(f"the Showdown server has ended by itself:\n{server.log_tail()}")
    except Stopped:
        return 0
    except SimulError as error:
        sys.stderr.write(printable(f"simul showdown: {error}\n", LINES))
        return 2


def invitation(server: LocalServer) -> str:
    """Where it listens, and how a poke-env player joins."""
    return (
        "A Showdown server runs on this machine. It asks for no accounts: any name will do. Ctrl-C stops it.\n"
        f"  browser    {server.page}\n"
        f"  websocket  {server.url}\n"
        f'  poke-env   server_configuration=ServerConfiguration("{server.url}", "")\n'
        f"  simul      simul play --checkpoint RUN --server 127.0.0.1:{server.port} --accept 1"
    )


if __name__ == "__main__":
    sys.exit(main())
