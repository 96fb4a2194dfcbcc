"""`python -m simul.learner --run-dir D --index 0 --run-id R --parent PID`: the learner as a process."""

from __future__ import annotations

import sys

from simul.common.errors import CheckpointError, ConfigError, DivergedError, NothingLearnedError
from simul.common.role.lifecycle import (
    EXIT_ENDS_RUN,
    EXIT_RANK_LOST,
    SAVE_PATIENCE_SEC,
    StopFlag,
    ensure_temporary_folder,
    parse_learner_arguments,
)
from simul.common.role.reports import Reporter
from simul.common.runtime.logs import set_up
from simul.learner.build import open_learner
from simul.learner.ranks import RankLostError


def main() -> int:
    """Exit code 0: stopped; 1: diverged, or could not save; 2: cannot start; EXIT_ENDS_RUN: no restart would help.

    EXIT_RANK_LOST: another rank of this learner is gone.
    """
    arguments, meeting = parse_learner_arguments()
    log = set_up(f"simul-learner-{arguments.index}")
    ensure_temporary_folder()
    stop = StopFlag(arguments.parent, orphan_sec=SAVE_PATIENCE_SEC).install()
    reporter = Reporter(arguments, "learner")
    reporter.send({}, state="starting")
    try:
        with open_learner(arguments, meeting, reporter, stop) as learner:
            return 0 if learner.run() else 1
    except (ConfigError, CheckpointError) as error:
        reporter.send({}, state="failed", event=str(error))
        log.error("%s", error)
        return 2
    except DivergedError as error:
        log.error("%s", error)
        return 1
    except NothingLearnedError as error:
        log.error("%s", error)
        return EXIT_ENDS_RUN
    except RankLostError as error:
        log.error("%s", error)
        return 0 if stop else EXIT_RANK_LOST
    finally:
        reporter.close()


if __name__ == "__main__":
    sys.exit(main())
