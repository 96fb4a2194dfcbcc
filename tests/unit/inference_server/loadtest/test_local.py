"""The load test's own policy: the weights it measures are those that were written."""

from __future__ import annotations

import pytest

from simul.common.checkpoints.meta import WEIGHTS_FILE
from simul.common.client.load.orders import SetUp
from simul.common.config.schema import Config, NetworkConfig
from simul.common.errors import CheckpointError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from tests.support.checkpoints import SMALL, write_checkpoint
from tests.support.late import late

local = late("simul.inference_server.loadtest.local")
SPEC = GameSpec("test/numbers", 3, 2)


def set_up(folder, checkpoint, network=SMALL):
    run_dir = RunDir(folder / "run")
    run_dir.create()
    run_dir.write_config(Config(network=network))
    return local.set_up(SetUp(0, str(run_dir.root), checkpoint=str(checkpoint)), SPEC)


def test_weights_that_are_damaged_or_do_not_fit_are_refused(tmp_path):
    whole = write_checkpoint(tmp_path / "000000001", SPEC, 1)
    assert set_up(tmp_path, whole)().forward_per_sec(2, 0.0) > 0
    with pytest.raises(
        CheckpointError, match=r"does not fit the configured network: .*: expected \[8, 3\], got \[16, 3\]"
    ):
        set_up(tmp_path, whole, NetworkConfig(options={"hidden": 8}))
    with pytest.raises(CheckpointError, match="belongs to another encoder"):
        set_up(tmp_path, write_checkpoint(tmp_path / "000000002", GameSpec("test/numbers", 3, 3), 2))
    data = bytearray((whole / WEIGHTS_FILE).read_bytes())
    data[-1] ^= 1
    (whole / WEIGHTS_FILE).write_bytes(data)
    with pytest.raises(CheckpointError, match="does not have the hash that was written"):
        set_up(tmp_path, whole)
