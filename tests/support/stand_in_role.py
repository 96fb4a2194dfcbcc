"""A stand-in for any role, so that the supervisor is tested with real processes and without the real roles.

`python stand_in_role.py ROLE --run-dir D ...`. What it does besides reporting is set by files in the run directory:
`sentence-ROLE` (exit 2 with its text; also beside the run directory), `crash-ROLE` (traceback), `deaf-ROLE`
(ignores every request to stop), `unready-ROLE` (never says that it is ready), `ends-ROLE` (ends the run, with its
text), `stop-ROLE-INDEX` (hangs before its first report, by a SIGSTOP), `killed-ROLE-INDEX` (dies where it is asked to
stop, by a SIGKILL), `checkpoints/version` (the learner resumes from it).
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time

import msgspec

from simul.common.protocol.specs import GameSpec
from simul.common.role.lifecycle import EXIT_ENDS_RUN, STOP_SIGNAL, StopFlag, add_role_arguments, role_arguments
from simul.common.role.reports import Reporter


def main() -> int:
    role = sys.argv.pop(1)
    parser = argparse.ArgumentParser()
    add_role_arguments(parser)
    parser.add_argument("--print-spec", action="store_true")
    parser.add_argument("--checkpoint")
    parser.add_argument("--server", type=int)
    parser.add_argument("--meeting")
    parser.add_argument("--episodes", type=int, default=0)
    parser.add_argument("--pairings")
    parser.add_argument("--greedy", action="store_true")
    options = parser.parse_args()
    arguments = role_arguments(options)
    root = arguments.run_dir.root
    if options.print_spec:
        print(msgspec.json.encode(GameSpec("test/stand-in", 4, 2)).decode())
        return 0
    for folder in (root, root.parent):
        if (folder / f"sentence-{role}").exists():
            print((folder / f"sentence-{role}").read_text(), file=sys.stderr)
            return 2
    if (root / f"crash-{role}").exists():
        raise RuntimeError("a fault of the stand-in")
    stop = StopFlag(arguments.parent).install()
    if (root / f"deaf-{role}").exists():
        for number in (signal.SIGTERM, STOP_SIGNAL):
            signal.signal(number, signal.SIG_IGN)
        stop = StopFlag(arguments.parent)
        stop.watch_parent()
    if (root / f"stop-{role}-{arguments.index}").exists():
        os.kill(os.getpid(), signal.SIGSTOP)
    host = None
    if role == "env_worker" and not options.episodes:  # stands for the simulator host
        host = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    reporter = Reporter(arguments, role)
    if (saved := root / "checkpoints" / "version").exists() and role == "learner":
        reporter.send({}, event=f"Resumed from checkpoint {saved.read_text()} (1,234 decisions learned).")
    began = time.monotonic()
    while not stop:
        if (ends := root / f"ends-{role}").exists() and (words := ends.read_text()):  # written whole
            print(words, file=sys.stderr)
            return EXIT_ENDS_RUN
        if reporter.due(time.monotonic()):
            state = "starting" if (root / f"unready-{role}").exists() else "ready"
            reporter.send(figures(role, time.monotonic() - began), state=state)
        if options.episodes:
            played = {"finished": options.episodes, "started": options.episodes, "alive": 0}
            wins = options.episodes * 3 // 4
            results = {"0/p1": {"wins": wins, "losses": options.episodes - wins - 1, "ties": 1}}
            returns = {"mean": 10.0, "count": options.episodes}
            reporter.send({"episodes": played, "results": results, "returns": returns}, state="stopped")
            reporter.close()
            return 0
        time.sleep(0.02)
    if (root / f"killed-{role}-{arguments.index}").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    if role == "learner":
        (root / "checkpoints" / "version").write_text("7")
    if host is not None:
        host.communicate()
    last = figures(role, time.monotonic() - began, over=True)
    if role == "learner":
        last["unsaved_updates"] = 0
    reporter.send(last, state="stopped")
    reporter.close()
    return 0


def figures(role: str, seconds: float, over: bool = False) -> dict:
    return {**_counters(role, seconds, over), "stage_sec": stage_sec(role, seconds), "loop_sec": seconds}


def stage_sec(role: str, seconds: float) -> dict:
    """Its loop works a tenth of the time, but that of a worker nine tenths."""
    working, share = {"inference_server": ("forward", 0.1), "learner": ("update", 0.1)}.get(role, ("step", 0.9))
    return {working: share * seconds, "wait": (1 - share) * seconds}


def _counters(role: str, seconds: float, over: bool) -> dict:
    done = int(seconds * 1000)
    if role == "inference_server":
        return {
            "decisions": done, "batches": done // 10, "batch_histogram": {"8": done // 10}, "policy_version": 1,
            "messages": done // 5, "latency_us": {"p50": 800.0, "p99": 2000.0},
            "steps": {"seen": done, "sent": done // 2, **_rest(over, "open", "dropped", done - done // 2)},
            "unrolls": {"completed": 1, "sent": 0, "waiting": 0, "dropped": {"shutdown": 1}},
        }  # fmt: skip
    if role == "learner":
        return {"policy_version": 1, "unrolls": {"received": 0, "learned": 0, "waiting": 0, "dropped": {"stale": 0}}}
    return {
        "decisions": done,
        "answered": done - 8,
        "refused": {"ERR_ORDER": 8},
        "episodes": {"started": done // 100 + 4, "finished": done // 100, **_rest(over, "alive", "aborted", 4)},
        "results": {"random": {"wins": done // 200, "losses": done // 100 - done // 200, "ties": 0}},
    }


def _rest(over: bool, still: str, ended: str, n: int) -> dict:
    """What is `still` under way, and `ended` when the role stops."""
    return {still: 0, ended: {"shutdown": n}} if over else {still: n, ended: {}}


if __name__ == "__main__":
    sys.exit(main())
