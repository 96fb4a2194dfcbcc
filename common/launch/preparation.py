"""What a run needs before its first role starts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from simul.common.config import Config
from simul.common.launch import ownership
from simul.common.launch.fleet import Command
from simul.common.launch.game_spec import ask_for_spec, refuse_other_encoder
from simul.common.launch.origin import Origin
from simul.common.launch.preflight import check_start
from simul.common.rundir import RunDir


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
    if ownership.end_leftovers(run_dir):
        say("the last supervisor was killed; its processes are gone now")
    check_start(config)
    with ownership.written_or_sentence(run_dir):
        for sentence in run_dir.mend():
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
