"""A start that is refused leaves the run directory as it was."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from simul.common.config.games.pokemon import PokemonConfig
from simul.common.config.schema import Config
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.common.role.run_directory import RunDir
from simul.launch.processes.process_group import RoleDied
from simul.launch.processes.restart_policy import MOST_FAILED_STARTS
from simul.launch.supervisor.game_spec import StartStopped, ask_for_spec, check_same_encoder
from tests.support.checkpoints import write_small_checkpoint

SPEC = GameSpec(name="test", observation_size=3, num_actions=2)
OTHER = GameSpec(name="test", observation_size=3, num_actions=2, encoder_version=2)


def _checkpoint(run_dir: RunDir, version: int, spec: GameSpec = SPEC) -> Path:
    return write_small_checkpoint(run_dir.checkpoints / f"{version:09d}", version, spec=spec)


def test_the_newest_readable_checkpoint_decides(tmp_path) -> None:
    run_dir = RunDir(tmp_path)
    check_same_encoder(run_dir, SPEC, Config())  # a fresh run
    _checkpoint(run_dir, 1, OTHER)
    with pytest.raises(ConfigError, match=f"{OTHER.fingerprint()}.*{SPEC.fingerprint()}"):
        check_same_encoder(run_dir, SPEC, Config())
    _checkpoint(run_dir, 2)
    (_checkpoint(run_dir, 3) / "meta.json").write_text("torn {")
    check_same_encoder(run_dir, SPEC, Config())


def test_what_was_set_otherwise_is_named(tmp_path) -> None:
    run_dir = RunDir(tmp_path)
    _checkpoint(run_dir, 1, OTHER)
    run_dir.write_config(Config(game="pokemon", pokemon=PokemonConfig(damage_attackers=0)))
    with pytest.raises(ConfigError, match=r"Changed since then: pokemon\.damage_attackers is 3, was 0\. Choose"):
        check_same_encoder(run_dir, SPEC, Config(game="pokemon"))
    (run_dir.root / "config.yaml").write_text("game: {torn")
    with pytest.raises(ConfigError, match=r"\(test, encoder version 1, \d+ numbers observed\). Choose"):
        check_same_encoder(run_dir, SPEC, Config(game="pokemon"))


HANGS = """
import sys, time
print("simul-notice: the game has not returned from Mine.reset\\033[31m for 15 s: mine.py:7", file=sys.stderr)
print("other words", file=sys.stderr, flush=True)
time.sleep(600)
"""


def test_a_sentence_of_the_worker_that_is_asked_is_said_while_it_is_waited_for():
    said: list[str] = []
    with pytest.raises(StartStopped):
        ask_for_spec(Config(), lambda role: [sys.executable, "-c", HANGS], stopped=lambda: bool(said), say=said.append)
    assert said == ["the game has not returned from Mine.reset\\u001b[31m for 15 s: mine.py:7"]


def test_a_game_that_ends_its_process_is_asked_again_and_named_where_it_always_does(tmp_path) -> None:
    count = tmp_path / "asked"

    def asked(ends: int) -> GameSpec:
        """Of a game that ends the process so many times."""
        count.write_bytes(b"")
        program = (
            f"import os; file = open({str(count)!r}, 'ab'); file.write(b'x'); file.close()\n"
            f"if os.path.getsize({str(count)!r}) <= {ends}: os._exit(7)\n"
            f"print({msgspec.json.encode(SPEC).decode()!r})"
        )
        return ask_for_spec(Config(game="mine:Game"), lambda role: [sys.executable, "-c", program])

    assert asked(2) == SPEC
    with pytest.raises(RoleDied, match=r"The game mine:Game could not be loaded: .* 5 times .* \(exit code 7\)"):
        asked(MOST_FAILED_STARTS)
