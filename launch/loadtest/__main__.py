"""`python -m simul.launch.loadtest`, which `simul loadtest` runs in the foreground."""

from __future__ import annotations

import sys

from simul.common.errors import CheckpointError, ConfigError, SimulError
from simul.common.role.lifecycle import StopFlag, Stopped
from simul.common.runtime.terminal_text import LINES, printable
from simul.launch.loadtest.options import make_output_folder, parse


def main() -> int:
    """Exit code 0: measured; 1: failed; 2: the arguments or the environment must change, a sentence says how."""
    try:
        options = parse(None)
        with StopFlag(options.parent).install().interrupting():
            make_output_folder(options.out)
            from simul.launch.loadtest.run import run  # imports matplotlib: bad arguments are reported first

            return run(options)
    except (ConfigError, CheckpointError) as error:
        sys.stderr.write(printable(f"simul: {error}\n", LINES))
        return 2
    except SimulError as error:
        sys.stderr.write(printable(f"simul: {error}\n", LINES))
        return int(getattr(error, "exit_code", 1))
    except (Stopped, KeyboardInterrupt):
        return 130


if __name__ == "__main__":
    sys.exit(main())
