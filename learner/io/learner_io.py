"""The learner's sockets as its main loop sees them. Main loop only: the I/O thread runs `io_loop.py`."""

from __future__ import annotations

import threading

from simul.common.transport import RouterSocket
from simul.learner.io.credits import CreditAllocator, CreditSender
from simul.learner.io.intake import Intake
from simul.learner.io.io_loop import IOLoop
from simul.learner.io.receive_queues import SampleQueue, UnrollQueue
from simul.learner.io.samples import SampleChecker
from simul.learner.io.server_handshake import ServerHandshake
from simul.learner.io.shared_state import SharedState
from simul.learner.io.unroll_memory import UnrollMemories
from simul.learner.io.unrolls import UnrollChecker
from simul.learner.io.weight_publisher import WeightPublisher

FINISH_SEC = 60.0


class LearnerIO:
    """Unrolls or samples come in, weights go out. Its thread owns both sockets from `start()` to `close()`.

    With `sample_checker` the run learns from samples and drops unrolls; else the reverse. `weights_socket` None:
    another rank publishes the weights.

    Attributes:
        unrolls, samples: what has arrived.
        publisher: to read from; `publish` gives it weights.
    """

    def __init__(
        self,
        unroll_socket: RouterSocket,
        weights_socket: RouterSocket | None,
        checker: UnrollChecker,
        credits: CreditAllocator,
        handshake: ServerHandshake,
        sample_checker: SampleChecker | None = None,
    ) -> None:
        self._shared = SharedState()
        self.unrolls = UnrollQueue(self._shared)
        self.samples = SampleQueue(self._shared)
        self.publisher = WeightPublisher(weights_socket, handshake)
        self._handshake = handshake
        self._learns_from_samples = sample_checker is not None
        memories = UnrollMemories(checker.layout)
        intake = Intake(
            self.unrolls, self.samples, memories, None if self._learns_from_samples else checker, sample_checker,
            newest_version=lambda: self.publisher.newest_version,
        )  # fmt: skip
        credit_sender = CreditSender(unroll_socket, credits, memories)
        loop = IOLoop(unroll_socket, self._shared, handshake, self.publisher, credit_sender, intake)
        self._thread = threading.Thread(target=loop.run, name="simul-learner-io", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def finish(self) -> None:
        """Stop the thread, after it has sent what was published and received what servers have sent."""
        if self._thread.is_alive():
            self._shared.closing = True
            self._shared.wake()
            self._thread.join(FINISH_SEC)

    def close(self) -> None:
        """Finish, and close everything."""
        self.finish()
        self._shared.close()
        self.publisher.close()

    def publish(
        self, policy: str, version: int, weights: bytes, resident: tuple[str, ...], progress: float = 0.0
    ) -> None:
        """Send a policy's weights to every server, now and after each SERVER_HELLO. `progress`: as in `Weights`."""
        with self._shared.changed:
            self.publisher.set_weights(policy, version, weights, resident, progress)
        self._shared.wake()

    def note_published(self, version: int) -> None:
        """Rank 0 may publish `version` from now on: unrolls of it are expected."""
        with self._shared.changed:
            self.publisher.note_published(version)

    @property
    def version_lag(self) -> int:
        """How many versions the server with the oldest weights is behind the newest; 0 without servers."""
        with self._shared.changed:
            return self.publisher.version_lag

    @property
    def untrusted(self) -> dict[str, int]:
        """Messages of peers without the run's token, by type."""
        with self._shared.changed:
            return dict(self._handshake.untrusted)

    @property
    def what(self) -> str:
        """What the run learns from, plural."""
        return "samples" if self._learns_from_samples else "unrolls"

    @property
    def met_server(self) -> bool:
        """A server was admitted since process start."""
        return self._handshake.met_server

    @property
    def arrived(self) -> int:
        """Unrolls and samples received, dropped ones included."""
        return self.unrolls.counts.received + self.samples.counts.received

    def drain_events(self) -> list[str]:
        """Sentences since the last call."""
        with self._shared.changed:
            sources = (self._shared.events, self.publisher.events, self._handshake.events)
            events = [event for source in sources for event in source]
            for source in sources:
                source.clear()
        return events
