"""A server that runs anyway, and what it tells any client of itself while it is loaded."""

from __future__ import annotations

import time
from types import TracebackType

from simul.common.client.client import InferenceClient
from simul.common.protocol.specs import GameSpec
from simul.common.transport import ClientKeys
from simul.inference_server.loadtest.heard import Heard

ASK_EVERY_SEC = 0.1


class RunningServer:
    """A client that asks for STATUS and sends no rows: `with RunningServer(endpoint, spec, keys) as server:`."""

    def __init__(self, endpoint: str, spec: GameSpec, keys: ClientKeys | None, connect_sec: float) -> None:
        self.endpoint = endpoint
        self.heard = Heard()
        self._client = InferenceClient(endpoint, name="loadtest-status", spec=spec, keys=keys)
        self._connect_sec = connect_sec
        self._asked_at = -1e9

    def __enter__(self) -> RunningServer:
        """Raises InferenceError where it does not let us in."""
        try:
            self._client.connect(self._connect_sec)
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def listen(self) -> None:
        """Take in its figures, and ask for the next. Raises InferenceError where it refuses us from now on."""
        now = time.perf_counter()
        figures = self._client.poll().figures
        if figures is not None:
            self.heard.add(now, {"decisions": figures.decisions, "batches": figures.batches})
        if now - self._asked_at >= ASK_EVERY_SEC:
            self._asked_at = now
            self._client.ask_status()
