"""What a run needs before its first role starts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from simul.common.config.run_directory import RunDir
from simul.common.config.schema import Config
from simul.common.launch.supervisor import run_lock
from simul.common.launch.supervisor.game_spec import ask_for_spec, refuse_other_encoder
from simul.common.launch.supervisor.origin import Origin
from simul.common.launch.supervisor.preflight import check_start
from simul.common.launch.supervisor.process_group import Command


def prepare(
    config: Config,
    run_dir: RunDir,
    command: Command,
    origin: Origin | None,
    say: Callable[[str], None],
    stopped: Callable[[], bool],
) -> None:
    """Write the resolved configuration and the game spec, and bring in the checkpoint that the run begins with.

    Raises:
        ConfigError, RoleDied: a sentence says why the run cannot start.
        StartStopped: `stopped()` became true.
    """
    if run_lock.end_leftovers(run_dir):
        say("the last supervisor was killed; its processes are gone now")
    check_start(config)
    with run_lock.written_or_sentence(run_dir):
        for sentence in run_dir.repair():
            say(sentence)
        config = msgspec.structs.replace(config, run_dir=str(run_dir.root))
        spec = ask_for_spec(config, command, stopped)
        try:
            if origin is not None:
                say(origin.bring(spec, config.network.name))
            refuse_other_encoder(run_dir, spec, config)
            run_dir.write_config(config)
            run_dir.write_spec(spec)
        except BaseException:
            if origin is not None:
                origin.take_back()
            raise
