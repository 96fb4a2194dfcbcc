"""`python -m simul.common.store`: what `simul up` and `--checkpoint URL` do with a store, in a process of its own.

A store that hangs is ended by ending the process. Prints sentences, one a line; the one after `REASON` explains exit
code 2.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from simul.common.errors import CheckpointError, StoreError
from simul.common.role.lifecycle import StopFlag, Stopped
from simul.common.role.run_directory import RunDir
from simul.common.runtime.terminal_text import print_text
from simul.common.store import REASON, REFUSED
from simul.common.store.fetch import OF_POLICIES, fetch_checkpoint, prepare_store
from simul.common.store.remote import Store

PATIENCE_SEC, LONG_PATIENCE_SEC = 30.0, 600.0  # for a store that cannot be reached
RETRY_SEC = 2.0
INTERRUPTED = 130


def main() -> int:
    """Exit code 0: done; REFUSED: a sentence says why not; 130: a signal came, or the parent is gone."""
    parser = argparse.ArgumentParser(prog="python -m simul.common.store")
    parser.add_argument("--url", required=True)
    parser.add_argument("--run-dir", type=Path, help="prepare the store for this run")
    parser.add_argument("--spec-fingerprint", help="of its game")
    parser.add_argument("--past", action="store_true", help="it plays against past selves")
    parser.add_argument("--resumes", action="store_true", help="the run goes on meanwhile, and needs what is there")
    parser.add_argument(
        "--fetch-to", type=Path, help="instead: fetch a checkpoint without its optimizer into this folder"
    )
    parser.add_argument("--optimizer", action="store_true", help="fetch its optimizer, too")
    parser.add_argument("--parent", type=int, default=0, help="end when this process is gone (0: do not watch)")
    options = parser.parse_args()
    stop = StopFlag(options.parent).install()
    try:
        with stop.interrupting():
            _patiently(options)
    except Stopped:
        return INTERRUPTED
    except (StoreError, CheckpointError) as error:
        _say(f"{REASON}{error}")
        return REFUSED
    except OSError as error:
        place = options.run_dir or options.fetch_to
        _say(f"{REASON}{place} cannot be written: {error.strerror}. Make room, or choose another place.")
        return REFUSED
    return 0


def _patiently(options: argparse.Namespace) -> None:
    """Again for a while where the store cannot be reached. Raises StoreError, CheckpointError, OSError."""
    patience_sec = LONG_PATIENCE_SEC if options.resumes else PATIENCE_SEC
    without = "" if options.resumes or options.fetch_to else ", or start without it: --set store=''"
    deadline = time.monotonic() + patience_sec
    said = False
    while True:
        try:
            store = Store(options.url)
            if options.fetch_to is not None:
                fetch_checkpoint(store, options.fetch_to, _say, () if options.optimizer else OF_POLICIES)
            else:
                run_dir = RunDir(options.run_dir)
                prepare_store(store, run_dir, options.spec_fingerprint, past=options.past, say=_say)
            return
        except StoreError as error:
            if error.refused:
                raise
            if time.monotonic() >= deadline:
                raise StoreError(f"{error} Check address and network{without}") from None
            if not said:
                _say(f"{error} Trying again for {patience_sec:.0f} s.")
                said = True
            time.sleep(RETRY_SEC)


def _say(sentence: str) -> None:
    print_text(" ".join(sentence.split()))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a library's thread that still waits for a dead store does not hold up the end
