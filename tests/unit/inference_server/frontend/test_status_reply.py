"""What WELCOME promises can be kept."""

from __future__ import annotations

import numpy as np
import pytest

from simul.common.client.steps import pack_step
from simul.common.config.schema import ServerConfig
from simul.common.protocol.codec import MAX_HEADER_BYTES
from simul.common.protocol.decisions import Decision
from simul.common.protocol.specs import GameSpec
from simul.inference_server.frontend.status_reply import MESSAGE_BYTES, limits_of
from simul.inference_server.proxy.framing import Limits
from simul.inference_server.sessions.row_checks import MAX_ROWS

LARGE = GameSpec(name="test/images", observation_size=4 * 84 * 84, num_actions=600)


def _row_bytes(spec: GameSpec) -> int:
    """Of a row of STEP with every tensor, as clients pack it."""
    observation, mask = np.zeros(spec.observation_size), np.ones(spec.num_actions)
    _, tensors = pack_step(1, [Decision(0, 0, 0, 0, observation=observation, mask=mask, temperature=0.5)], spec)
    return sum(tensor.nbytes for tensor in tensors.values())


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_message_of_the_most_rows_is_within_the_most_bytes(dtype) -> None:
    spec = GameSpec("test/images", LARGE.observation_size, LARGE.num_actions, dtype)
    config = ServerConfig(max_rows_of_client=10**6, max_rows_waiting=10**6)
    limits, row = limits_of(config, spec), _row_bytes(spec)
    assert limits["message_bytes"] == MESSAGE_BYTES
    assert limits["rows_per_step"] * row <= MESSAGE_BYTES - MAX_HEADER_BYTES < (limits["rows_per_step"] + 1) * row


def test_small_rows_are_limited_by_their_number_and_one_row_may_always_be_sent() -> None:
    config = ServerConfig(max_rows_of_client=10**6, max_rows_waiting=10**6)
    assert limits_of(config, GameSpec("test/numbers", 12, 5))["rows_per_step"] == MAX_ROWS
    assert limits_of(config, GameSpec("test/huge", 10**8, 5))["rows_per_step"] == 1


def test_half_of_the_rows_are_kept_for_the_workers_of_a_run_and_a_client_has_its_own() -> None:
    for reserved, of_client, without_token in ((0, 20, 100), (8, 20, 50), (8, 80, 80), (8, 200, 100)):
        config = ServerConfig(max_rows_waiting=100, max_rows_of_client=of_client)
        limits = limits_of(config, GameSpec("test/numbers", 12, 5), reserved)
        assert limits["rows_waiting_without_token"] == without_token


def test_a_message_may_hold_one_row_as_long_as_the_proxy_takes_any_of_its_size() -> None:
    large = GameSpec("test/large", 8 << 20, 5)  # float32: 32 MiB
    limits = limits_of(ServerConfig(), large)
    assert limits["rows_per_step"] == 1
    assert limits["message_bytes"] == MAX_HEADER_BYTES + _row_bytes(large)
    assert limits_of(ServerConfig(), GameSpec("test/huge", 10**8, 5))["message_bytes"] == Limits.message_bytes
