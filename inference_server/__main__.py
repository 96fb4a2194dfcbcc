"""`python -m simul.inference_server`: the server as a process."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

import torch

from simul.common.errors import CheckpointError, ConfigError, SimulError
from simul.common.role.lifecycle import StopFlag, add_role_arguments, ensure_temporary_folder, role_arguments
from simul.common.role.reports import Reporter
from simul.common.runtime import logs
from simul.common.runtime.terminal_text import LINES, printable
from simul.inference_server.build import build_server
from simul.inference_server.ops.fd_limit import raise_limit
from simul.inference_server.proxy.framing import Limits

# Threads beside the loop (weights, policies, figures) hand the interpreter back within this time; the default is 5 ms.
SWITCH_SEC = 0.0005


def main() -> int:
    """Exit code 0 after a clean stop, 2 after an error of configuration or checkpoint, printed as a sentence."""
    parser = argparse.ArgumentParser(prog="python -m simul.inference_server")
    add_role_arguments(parser)
    parser.add_argument("--checkpoint", type=Path, help="serve these frozen weights, without a learner")
    options = parser.parse_args()
    arguments = role_arguments(options)
    log = logs.set_up(f"simul-inference-{arguments.index}")
    ensure_temporary_folder()
    raise_limit()
    sys.setswitchinterval(SWITCH_SEC)
    try:
        stop = StopFlag(arguments.parent).install()
        reporter = Reporter(arguments, "inference_server")
        limits = Limits(connections=2 * arguments.run_dir.read_config().server.max_clients)
        server = build_server(arguments, options.checkpoint, reporter, stop, log, proxy=limits)
        if server is not None:
            gc.collect()
            gc.freeze()
            with torch.inference_mode():  # once, not around every batch
                server.run(stop)
            server.close()
        reporter.close()
    except (ConfigError, CheckpointError) as error:
        log.error("%s", printable(str(error), LINES))  # after the traceback of a network, as the last words
        return 2
    except SimulError as error:
        log.error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
