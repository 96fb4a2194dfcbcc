"""The bound end of the status socket: what the roles of a run report."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from simul.common.config.run_directory import RunDir
from simul.common.config.run_token import is_run_token
from simul.common.protocol.codec import Codec
from simul.common.protocol.errors import ProtocolError
from simul.common.protocol.messages import TO_SUPERVISOR, Report
from simul.common.transport import PullSocket

MOST_AT_ONCE = 1000  # a flood of messages does not hold up the supervisor's loop


class ReportReceiver:
    """Reports that carry the run's token. Other messages are refused and counted; the first of a kind is an event.

    Attributes:
        refused: `unreadable` messages, and reports of a `stranger`, since the start.
    """

    def __init__(self, run_dir: RunDir) -> None:
        self.socket = PullSocket(run_dir.endpoint("status"))
        self.refused: Counter[str] = Counter()
        self._run_dir = run_dir
        self._codec: Codec[Report] = Codec(TO_SUPERVISOR)

    @cached_property
    def _token(self) -> str:
        """Read when the first report has come: a start makes a token anew that it finds empty."""
        return self._run_dir.token()

    def receive(self) -> tuple[list[Report], list[str]]:
        """What has arrived: reports of this run, and sentences about what was refused. Never blocks."""
        reports: list[Report] = []
        sentences: list[str] = []
        for _ in range(MOST_AT_ONCE):
            if (frames := self.socket.receive()) is None:
                break
            try:
                report, _ = self._codec.decode(frames)
            except ProtocolError as error:
                sentences += self._refuse("unreadable", f"a report was not understood: {error}")
                continue
            if is_run_token(report.token, self._token):
                reports.append(report)
            else:
                words = "a report without this run's token was refused: another process writes to the status socket"
                sentences += self._refuse("stranger", words)
        return reports, sentences

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()

    def _refuse(self, cause: str, sentence: str) -> list[str]:
        self.refused[cause] += 1
        return [sentence] if self.refused[cause] == 1 else []
