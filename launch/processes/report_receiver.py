"""The bound end of the status socket, on which the roles of a run report."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from simul.common.errors import ProtocolError
from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_SUPERVISOR, Report
from simul.common.role.run_directory import RunDir, is_run_token
from simul.common.role.run_sockets import bind_reports

MOST_AT_ONCE = 1000  # a flood of messages does not hold up the supervisor's loop


class ReportReceiver:
    """Receives reports that carry the run's token. Others are refused and counted; the first of each kind is an event.

    Attributes:
        refused: since the start: `unreadable` messages, and reports without this run's token (`wrong_token`).
    """

    def __init__(self, run_dir: RunDir) -> None:
        self.socket = bind_reports(run_dir)
        self.refused: Counter[str] = Counter()
        self._run_dir = run_dir
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)

    @cached_property
    def _token(self) -> str:
        """Read at the first report: a start writes a new token where it finds an empty one."""
        return self._run_dir.token()

    def receive(self) -> tuple[list[Report], list[str]]:
        """(reports of this run, sentences about what was refused) that have arrived. Never blocks."""
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
            if is_run_token(report.token, self._token):
                reports.append(report)
            else:
                words = "a report without this run's token was refused: another process writes to the status socket"
                sentences += self._refuse("wrong_token", words)
        return reports, sentences

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

    def _refuse(self, cause: str, sentence: str) -> list[str]:
        self.refused[cause] += 1
        return [sentence] if self.refused[cause] == 1 else []
