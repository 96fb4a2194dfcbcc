"""A server whose process is gone: the learner keeps no weights for it."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, closing

import pytest

from simul.common.protocol.codec import encode
from simul.common.protocol.messages import PROTOCOL, ServerHello
from simul.common.role.run_directory import RunDir
from simul.common.transport import DealerSocket, RouterSocket
from simul.learner.io.credits import CreditAllocator
from simul.learner.io.learner_io import LearnerIO
from simul.learner.io.server_handshake import ServerHandshake
from simul.learner.io.unrolls import UnrollChecker
from tests.support.anonymous import anonymous_files
from tests.support.learner_io_stand import SPEC
from tests.support.waiting import wait_for


@pytest.mark.skipif(sys.platform != "linux", reason="counts anonymous files")
def test_what_a_dead_server_was_told_of_is_released(tmp_path) -> None:
    run_dir = RunDir(tmp_path)
    run_dir.create()
    endpoints = [run_dir.endpoint(name) for name in ("unrolls", "weights")]
    hello = ServerHello(
        protocol=PROTOCOL, spec_fingerprint=SPEC.fingerprint(), token=run_dir.token(), shared_memory=True,
        connection=os.urandom(8).hex(),
    )  # fmt: skip
    with ExitStack() as opened:
        unrolls, weights = (opened.enter_context(RouterSocket(endpoint)) for endpoint in endpoints)
        handshake = ServerHandshake(run_dir.token(), SPEC.fingerprint())
        io = LearnerIO(unrolls, weights, UnrollChecker(SPEC, 0, 1), CreditAllocator(64, 1), handshake)
        opened.enter_context(closing(io))
        io.start()
        io.publish("learner", 0, b"first", ("learner",))
        before = anonymous_files()
        with DealerSocket(endpoints[0]) as its_unrolls, DealerSocket(endpoints[1]) as its_weights:
            for socket in (its_unrolls, its_weights):
                socket.send(encode(hello))
            wait_for(lambda: its_weights.raw.poll(10))  # told, and it will not answer
            io.publish("learner", 1, b"second", ("learner",))
            wait_for(lambda: anonymous_files() > before)
        wait_for(lambda: anonymous_files() <= before)
