"""The notices of a run: which event makes one, and what it says."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from simul.common.config.schema import Config
from simul.common.role.run_directory import RunDir
from simul.common.role.temporary import temporary_folder
from simul.launch.monitoring.notices.notifier import (
    MOST_CHARACTERS,
    Address,
    Notice,
    NoticeKind,
    NoticeSender,
    Notifier,
    Picture,
    TokenBucket,
)
from simul.launch.monitoring.snapshot import Snapshot
from simul.launch.monitoring.view.figure_texts import (
    format_evaluation,
    format_number,
    format_rate,
    format_results,
    format_version,
)
from simul.launch.processes.role_process import kill_session, low_priority, role_environment

DRAW_LIMIT_SEC = 120.0
WON = "evaluation/win_rate/"
STORE = {  # by `store_state` of the learner
    "ok": "The store can be reached again, and has everything.",
    "unreachable": "The store cannot be reached. Training goes on; checkpoints are kept here until it is back.",
    "taken_over": "A newer run has taken over the store. Training goes on; checkpoints are kept here alone.",
}


class RunNotices:
    """Says what happens to a run at `addresses`, of which there may be none. No method but `close` waits or raises."""

    def __init__(self, config: Config, run_dir: RunDir, addresses: Sequence[Address] = ()) -> None:
        self._config = config
        self._root = run_dir.root
        self._every = config.notice_every_decisions
        self._reached = 0.0  # milestones
        self._store_state = "ok"
        self._ending = threading.Event()
        headline = f"Simul {run_dir.root.name} on {socket.gethostname()}"
        now = time.monotonic()
        self._notifier = Notifier([NoticeSender(address, headline, TokenBucket(now)) for address in addresses])

    def post(self, kind: NoticeKind, text: str, draw: Callable[[], Picture] | None = None) -> None:
        """Send a notice of any kind, such as STORE_LOST. Callable from any thread."""
        self._notifier.post(Notice(kind, text, draw))

    def started(self, decisions: float) -> None:
        """Every role is ready; `decisions` of the run's earlier starts."""
        self._reached = decisions // self._every if self._every else 0.0
        begin = f"resumed at {decisions:,.0f} decisions" if decisions else "a new run"
        self.post(
            NoticeKind.START, f"{self._config.game}, {begin}, env workers: {self._config.workers.count}\n{self._root}"
        )

    def update(self, snapshot: Snapshot) -> None:
        """Called about once a second while the run trains: a milestone may be reached, the store lost or back."""
        reached = snapshot.run_decisions // self._every if self._every else 0.0
        if reached > self._reached:
            self._reached = reached
            draw = CurvePicture(self._root, self._ending) if "csv" in self._config.metrics else None
            self.post(NoticeKind.MILESTONE, milestone_text(snapshot, reached * self._every), draw)
        state = snapshot.learner.get("store_state")
        if state and state != self._store_state:  # a learner that starts again says nothing at first
            self._store_state = state
            self.post(NoticeKind.STORE_BACK if state == "ok" else NoticeKind.STORE_LOST, STORE[state])

    def stopped(self, summary: str, *, clean: bool) -> None:
        """The run has ended; `clean`: every process by itself."""
        end = "" if clean else "\nA process did not end cleanly, see simul-supervisor.log."
        self.post(NoticeKind.STOP, summary[: MOST_CHARACTERS - len(end)] + end)

    def failed(self, error: Exception) -> None:
        """The run ends because of `error`, whose text ends with the last words of the process that died."""
        self.post(NoticeKind.CRASH, last_words(str(error) or type(error).__name__))

    def take_problems(self) -> list[str]:
        """Sentences since the last call: which notices could not be sent, and why."""
        return self._notifier.take_problems()

    def close(self, hurry: Callable[[], bool]) -> list[str]:
        """Send what waits, within `notices.FINISH_SEC`; once `hurry()` is true no longer. Returns sentences."""
        self._ending.set()
        return self._notifier.close(hurry)


def last_words(text: str) -> str:
    """The first line, and as much of the end as MOST_CHARACTERS allow."""
    if len(text) <= MOST_CHARACTERS:
        return text
    first, _, rest = text.partition("\n")
    first = first[: MOST_CHARACTERS // 2]
    return f"{first}\n...\n{rest[len(first) + 5 - MOST_CHARACTERS :]}"


def milestone_text(snapshot: Snapshot, decisions: float) -> str:
    """Where the run is, its last evaluation, and the recent results while it trains."""
    minutes, seconds = divmod(int(snapshot.training_sec), 60)
    lines = [
        f"{decisions:,.0f} decisions, {minutes // 60}:{minutes % 60:02}:{seconds:02} of training over all starts",
        f"decisions/s {format_rate(snapshot, snapshot.decisions_per_sec)}, policy_version {format_version(snapshot)}",
        *_evaluation(snapshot),
        *(f"{label} {text}".strip() for label, text in format_results(snapshot.workers) if text != "-"),
    ]
    return "\n".join(lines)[:MOST_CHARACTERS]


def _evaluation(snapshot: Snapshot) -> Iterator[str]:
    figures = snapshot.figures
    if not (score := format_evaluation(figures)):
        return
    yield f"last evaluation {score} (policy_version {format_number(figures.get('evaluation/policy_version'))})"
    for name, won in figures.items():
        if name.startswith(WON):
            opponent = name.removeprefix(WON)
            low, high = (figures.get(f"evaluation/win_rate_{end}/{opponent}", won) for end in ("low", "high"))
            yield f"won against {opponent} {won:.1%} (95% interval {low:.1%} to {high:.1%})"


class CurvePicture:
    """The learning curves as a PNG, drawn by `simul plot` when first called for, and once.

    A process of its own with low priority: matplotlib would stay in the supervisor's memory. It is killed when `ending`
    is set.
    """

    def __init__(self, root: Path, ending: threading.Event) -> None:
        self._root = root
        self._ending = ending
        self._drawing = threading.Lock()
        self._drawn: Picture | None = None

    def __call__(self) -> Picture:
        """The picture; every address gets the same one."""
        with self._drawing:
            if self._drawn is None:
                self._drawn = self._draw()
            return self._drawn

    def _draw(self) -> Picture:
        try:
            with temporary_folder("simul-picture-") as folder:
                out = folder / "curves.png"
                problem = self._run([
                    sys.executable, "-P", "-m", "simul.launch.cli", "--stop-at-eof",
                    "plot", str(self._root), "--out", str(out),
                ])  # fmt: skip
                return Picture(b"", problem) if problem else Picture(out.read_bytes())
        except OSError as error:  # no room, or no process could be started
            return Picture(b"", str(error.strerror or error))

    def _run(self, line: Sequence[str]) -> str:
        """Run until it ends; "", or why it failed. It ends when its standard input does, so with this process."""
        with subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=role_environment(1),
            start_new_session=sys.platform != "win32",
        ) as process:  # fmt: skip
            with contextlib.suppress(psutil.Error):
                psutil.Process(process.pid).nice(low_priority())
            deadline = time.monotonic() + DRAW_LIMIT_SEC
            while process.poll() is None:
                if self._ending.wait(0.1) or time.monotonic() > deadline:
                    kill_session(process)
                    return "the run ended meanwhile" if self._ending.is_set() else "drawing it took too long"
            assert process.stderr is not None
            complaints = process.stderr.read().decode(errors="replace").strip().splitlines()
            return "" if process.returncode == 0 else complaints[-1] if complaints else "simul plot failed"
