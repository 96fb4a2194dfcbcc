"""Where the game of `simul play` or `simul watch` comes from: a checkpoint, a run that is active, or its name."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from simul.common.checkpoints.zoo import zoo_folder
from simul.common.config.games import game_called
from simul.common.config.loader import command_line_trust, load_game
from simul.common.config.schema import Config
from simul.common.config.trust import NOTHING, Trust
from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import active_runs, choose_run
from simul.launch.monitoring.view.output import complain
from simul.launch.processes.role_process import role_command
from simul.launch.supervisor.checkpoint_files import config_of, newest_checkpoint, spec_of
from simul.launch.supervisor.game_spec import ask_for_spec
from simul.launch.zoo.entries import entries_of_game


class Origin(NamedTuple):
    """Where the game comes from: a checkpoint, a run that is active, or only its name.

    Attributes:
        what: for messages, such as `checkpoint PATH`.
        entry: `zoo:NAME` where the zoo has the policy and the command line does not name it; "": elsewhere.
        trust: what the command line trusts.
    """

    config: Config
    what: str
    checkpoint: Path | None = None
    run: RunDir | None = None
    trust: Trust = NOTHING
    entry: str = ""

    def served(self) -> Path:
        """The checkpoint. Raises ConfigError where there is none."""
        if self.checkpoint is None:
            raise ConfigError(f"The {self.what} has no policy; name a --checkpoint.")
        return self.checkpoint

    def say_who_plays(self) -> None:
        """Print that the zoo's entry plays, which the command line does not name."""
        if self.entry:
            complain(f"no --checkpoint: {self.entry} plays (`simul zoo show {self.entry}` says how strong it is)\n")


def find_origin(
    game: str | None, checkpoint: Path | None, run_dir: Path | None, overrides: Sequence[str], *, trust: bool = False,
    from_zoo: bool = False,
) -> Origin:  # fmt: skip
    """The game, and who has its policy: the checkpoint, else the run, else the zoo.

    Args:
        trust: the user trusts what the checkpoint or the run names to run.
        from_zoo: a game without a checkpoint gets the zoo's entry that observes it, where there is one.

    Raises RoleDied where the game cannot be asked what it observes; ConfigError where there is neither a checkpoint,
    nor a game, nor a run that is active, and where something is not trusted.
    """
    named = command_line_trust(overrides, game or "", trust=trust)
    if checkpoint is not None:
        folder = newest_checkpoint(checkpoint)
        config = config_of(folder, overrides, named)
        if game is not None:
            check_same_game(config, game, f"checkpoint {folder}")
        return Origin(config, f"checkpoint {folder}", checkpoint=folder, trust=named)
    if game is not None and run_dir is None:
        config = load_game(game, overrides)
        entries = entries_of_game(config) if from_zoo else []
        entry = next((name for name in entries if _observes(name, config)), None)
        return (
            _of_zoo(entry, config, overrides, named) if entry else Origin(config, f"configuration {game}", trust=named)
        )
    run = choose_run(run_dir, active_only=True, instead=", or name a --checkpoint, or a --game")
    if overrides:
        raise ConfigError(
            f"--set changes nothing of the run in {run.root}, which is active: leave it out, or name a --checkpoint."
        )
    config = run.read_trusted_config(named)[0]
    if game is not None:
        check_same_game(config, game, f"run in {run.root}")
    return Origin(config, f"run in {run.root}", run=run, trust=named)


def _observes(name: str, config: Config) -> bool:
    """Whether the entry `zoo:NAME` was trained for the observations and actions of `config`. Raises as `ask_for_spec`.

    The game is asked only where settings that are about play are not those of the entry.
    """
    folder = zoo_folder(name)
    assert folder is not None
    if _settings_of_play(config_of(folder, [])) == _settings_of_play(config):
        return True
    return spec_of(folder).fingerprint() == ask_for_spec(config, role_command).fingerprint()


def _settings_of_play(config: Config) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(config.game_section)
    beside = game_called(config.game).beside_play
    return {key: value for key, value in plain.items() if key not in beside}


def _of_zoo(name: str, config: Config, overrides: Sequence[str], trust: Trust) -> Origin:
    """`name`: `zoo:NAME`, an entry that plays the game of `config`, with its own network and search."""
    folder = zoo_folder(name)
    assert folder is not None
    own = config_of(folder, overrides, trust)
    config = msgspec.structs.replace(config, network=own.network, learner=own.learner, search=own.search)
    return Origin(config, f"policy {name}", checkpoint=folder, trust=trust, entry=name)


def check_origin(checkpoint: object, run_dir: Path | None, policy: str | None) -> None:
    """Raises ConfigError where a checkpoint and a running server are named. `policy`: of the server, if it is named."""
    other = "--run-dir" if run_dir is not None else "--policy" if policy is not None else ""
    if checkpoint is not None and other:
        raise ConfigError(f"{other} names a server that runs, and --checkpoint is served anew: leave one of them out.")


def active_run_of(game: str | None) -> Path | None:
    """The one active run below runs/ that plays `game`, else None. Raises ConfigError for an unknown game."""
    if game is None:
        return None
    wanted = load_game(game).game_title
    found = []
    for run in active_runs():
        with suppress(ConfigError):  # it starts, and has no configuration yet
            found += [run.root] * (run.read_config().game_title == wanted)
    return found[0] if len(found) == 1 else None


def check_same_game(config: Config, game: str, what: str) -> None:
    """Raises ConfigError where `what`, such as `checkpoint PATH`, is of another game."""
    if (wanted := load_game(game).game_title) != (own := config.game_title) and game != config.game:
        raise ConfigError(f"The {what} plays {own}, not {wanted}. Leave --game out.")


def refuse_options(options: argparse.Namespace, names: Mapping[str, str], whose: str, origin: Origin) -> None:
    """Raises ConfigError where an option is given that has no meaning for the game of `origin`."""
    given = [option for name, option in names.items() if not _is_left_out(getattr(options, name))]
    if given:
        verb = "is" if len(given) == 1 else "are"
        raise ConfigError(f"{', '.join(given)} {verb} {whose}; the {origin.what} plays {origin.config.game}.")


def _is_left_out(value: object) -> bool:
    return value is None or value is False or value == []  # and 0 is given
