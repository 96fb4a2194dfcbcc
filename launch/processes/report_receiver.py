"""The bound end of the status socket, on which the roles of a run report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property

from simul.common.errors import ProtocolError
from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_SUPERVISOR, Report
from simul.common.role.run_directory import RunDir, is_run_token
from simul.common.role.run_sockets import bind_reports

MOST_AT_ONCE = 1000  # a flood of messages does not hold up the supervisor's loop


class ReportReceiver:
    """Receives reports of the processes of this start. Others are refused and counted; the first of each kind is said.

    Attributes:
        refused: since the start: `unreadable` messages, reports without this run's token (`wrong_token`), and those of
            processes that another start has left (`other_start`).
    """

    def __init__(self, run_dir: RunDir, is_own: Callable[[Report], bool]) -> None:
        """`is_own`: whether this start has started the process, by role, index and run_id."""
        self.socket = bind_reports(run_dir)
        self.refused: Counter[str] = Counter()
        self._run_dir, self._is_own = run_dir, is_own
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)

    @cached_property
    def _token(self) -> str:
        """Read at the first report: a start writes a new token where it finds an empty one."""
        return self._run_dir.token()

    def receive(self) -> tuple[list[Report], list[str]]:
        """(reports of this start, sentences about what was refused) that have arrived. Never blocks."""
        reports: list[Report] = []
        sentences: list[str] = []
        for _ in range(MOST_AT_ONCE):
            if (frames := self.socket.receive()) is None:
                break
            try:
                report, _ = self._codec.decode(frames)
            except ProtocolError as error:
                sentences += self._refuse("unreadable", f"a report could not be decoded: {error}")
                continue
            if not is_run_token(report.token, self._token):
                words = "a report without this run's token was refused: another process writes to the status socket"
                sentences += self._refuse("wrong_token", words)
            elif not self._is_own(report):
                words = f"reports of process {report.pid} ({report.role}) of another start are left out"
                sentences += self._refuse("other_start", words)
            else:
                reports.append(report)
        return reports, sentences

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

    def _refuse(self, cause: str, sentence: str) -> list[str]:
        self.refused[cause] += 1
        return [sentence] if self.refused[cause] == 1 else []
