"""The command `simul`. Imports no role."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence

from simul.common.errors import ConfigError, SimulError


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: done; 1: something failed; 2: a sentence says what to change."""
    try:
        return _run(arguments)
    except ConfigError as error:
        _complain(error)
        return 2
    except SimulError as error:
        _complain(error)
        return int(getattr(error, "exit_code", 1))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of stdout, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _run(arguments: Sequence[str] | None) -> int:
    from simul.launch.command_line import parse  # here: Ctrl-C meanwhile is no traceback

    os.umask(os.umask(0) | 0o022)  # no other user writes to what Simul and its processes make
    options = parse(arguments)
    if options is None:
        return 2
    if options.stop_at_eof:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background
        threading.Thread(target=_stop_at_eof, daemon=True).start()
    return int(options.run(options))


def _complain(error: SimulError) -> None:
    from simul.launch.monitoring.view.output import complain

    complain(f"simul: {error}\n")


def _stop_at_eof() -> None:
    """The process that owns this one holds the other end of standard input, and has ended."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
