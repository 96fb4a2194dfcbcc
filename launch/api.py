"""The Python API: the commands as functions. Each starts the same processes as the command of its name.

```python
import simul

with simul.train("cartpole", stop_after_decisions=100_000) as run:
    summary = run.wait()                       # shows progress; Ctrl-C ends the run as on the command line
print(simul.evaluate(run.run_dir, episodes=100)["mean_return"])
```
"""

from __future__ import annotations

import atexit
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from simul.common.config.games import GAMES
from simul.common.config.loader import DEFAULT_MODE, config_from_tree, load_config
from simul.common.config.named_class import name_of_callable
from simul.common.config.rule_checks import MODULE_CLASS
from simul.common.config.setting_lines import plain_values, setting_lines
from simul.common.config.value_checks import describe_value
from simul.common.errors import ConfigError, SimulError
from simul.common.role.temporary import temporary_folder
from simul.common.runtime.private_files import read_regular, written_since
from simul.launch.processes.child_command import ChildCommand

TRAINED = (
    "Expected a YAML file, the name of a shipped configuration such as cartpole, its sections as a dict, or a game's "
    "class or function itself"
)
ARGUMENTS = "the arguments"  # which a command line calls --set


def train(
    config: str | Path | Mapping[str, Any] | Callable[..., Any] = "pokemon",
    *,
    mode: str = DEFAULT_MODE,
    run_dir: str | Path | None = None,
    origin: str | Path | None = None,
    progress: bool = True,
    trust: bool = False,
    **overrides: Any,
) -> Run:
    """Start a training run, as `simul up` does, and return at once.

    Args:
        config: a YAML file, the name of a shipped one such as `pokemon` or `cartpole`, its sections as a dict, or the
            game itself: a class, or a function that returns an environment, at the top level of a module that the
            run's processes can import from the working directory. Its run lies in runs/NAME, and all other settings
            are defaults or `overrides`.
        mode: a section of the file's `modes`, such as `test` or `quick`.
        run_dir: where the run lies; default: `run_dir` of the configuration. A run that lies there is resumed.
        origin: a checkpoint or a run directory whose weights a new run begins with.
        progress: print the run's lines.
        trust: also take weights of an `origin` that names code of others as its network.
        overrides: settings above the configuration's: `workers={"count": 2}, seed=3`.

    Raises:
        ConfigError: the configuration is wrong; names every problem at once. Or `config` is nothing of the above, or
            the game that was passed cannot be imported by its name: a lambda, a function inside another one, a
            notebook's own.
    """
    _check_kind(config)
    if callable(config):
        game = name_of_callable(config)
        config = {"game": game, "run_dir": f"runs/{game.partition(':')[2]}"}
    changes = setting_lines(overrides)
    arguments = ["--plain", "--mode", mode, *["--trust"] * trust]
    opened = ExitStack()
    if isinstance(config, Mapping):
        checked = config_from_tree(plain_values(config), "the dict", changes, mode, ARGUMENTS)
        path = opened.enter_context(temporary_folder("simul-config-")) / "config.yaml"
        path.write_text(yaml.safe_dump(plain_values(config)), encoding="utf-8")
        atexit.register(opened.close)
    else:
        checked = load_config(config, changes, mode, given_in=ARGUMENTS)
        path = Path(config)
    root = Path(run_dir if run_dir is not None else checked.run_dir).absolute()
    if origin is not None:
        arguments += ["--from", str(origin)]
    for change in changes:
        arguments += ["--set", change]
    command = ChildCommand(["up", str(path), "--run-dir", str(root), *arguments], progress)
    return Run(command, root, opened)


class Run:
    """A training run in its own processes. A context manager: the run is stopped at the end of the block."""

    def __init__(self, command: ChildCommand, run_dir: Path, opened: ExitStack) -> None:
        """`opened`: closed when the run has ended."""
        self.run_dir = run_dir
        self._command = command
        self._opened = opened
        self._started_at = time.time()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._command.stop()
        self._opened.close()
        if kind is None:
            self._command.check()

    @property
    def running(self) -> bool:
        """Whether the run goes on."""
        return self._command.running

    def status(self) -> dict[str, Any]:
        """The figures of status.json, as `simul status --json` prints them; {} before the first."""
        return self._read_json("status.json")

    def wait(self) -> dict[str, Any]:
        """Wait for the end of the run; its summary.json, {} where it stopped before it was ready.

        Ctrl-C stops the run, a second one at once.

        Raises:
            ConfigError: the run did not start; its text says why.
            SimulError: the run failed.
        """
        self._command.wait()
        self._opened.close()
        self._command.check()
        return self._read_json("summary.json")

    def stop(self) -> dict[str, Any]:
        """Drain, save and end, as Ctrl-C does; the run's summary.json. Raises SimulError."""
        self._command.stop()
        return self.wait()

    def _read_json(self, name: str) -> dict[str, Any]:
        """A file of this run; {} before it is written. An older run in the same directory left one, too."""
        path = self.run_dir / name
        try:
            return dict(json.loads(read_regular(path))) if written_since(path, self._started_at) else {}
        except FileNotFoundError:
            return {}


def _check_kind(config: object) -> None:
    """Raises ConfigError where `train` cannot take `config`."""
    if isinstance(config, str) and MODULE_CLASS.match(config) and not Path(config).exists():
        game, _, name = config.partition(":")
        use = f"Import it, `from {game} import {name}`, and call train({name})."
        if game in GAMES and (variant := GAMES[game].variant):
            use = f"Call train({GAMES[game].configuration!r}, {game}={{{variant!r}: {name!r}}})."
        raise ConfigError(f"{TRAINED}; got the name of a game, {config!r}. {use}")
    if config == "" or not (isinstance(config, str | Path | Mapping) or callable(config)):
        raise ConfigError(f"{TRAINED}; got {describe_value(config)}. Pass one of these, such as train('cartpole').")


def evaluate(
    *checkpoints: str | Path,
    opponents: str | Sequence[str] = (),
    episodes: int = 100,
    workers: int = 1,
    replays: str | Path | None = None,
    replay_player: str = "own",
    mirror: bool = True,
    progress: bool = True,
    trust: bool = False,
    **overrides: Any,
) -> dict[str, Any]:
    """Play `episodes` greedy games with frozen weights, as `simul eval --json` does; its figures.

    Args:
        checkpoints: checkpoints or run directories; several, with the opponents: everybody plays everybody else.
        opponents: scripted opponents by name.
        replays: a folder in which every episode is written: Pokémon as log and page, Gymnasium as JSON and video.
        replay_player: `own`: pages that contain their player, or videos; `showdown`: pages that load its web site's
            player; `none`: neither.
        mirror: every battle is played twice, with the seats exchanged.
        overrides: settings, such as evaluation={"openings": 8}. "RUN#simulations=16" has a search of its own.
        trust: run what the checkpoints name (module:Class), also where you did not make them here.

    Raises:
        ConfigError: a checkpoint or a setting is refused.
        KeyboardInterrupt: it was interrupted, and has ended.
        SimulError: the evaluation failed.
    """
    arguments = ["eval", "--json", "--battles", str(episodes), "--workers", str(workers), *["--trust"] * trust]
    for checkpoint in checkpoints:
        arguments += ["--checkpoint", str(checkpoint)]
    for opponent in (opponents,) if isinstance(opponents, str) else opponents:
        arguments += ["--opponent", opponent]
    if replays is not None:
        arguments += ["--replays", str(replays), "--replay-player", replay_player]
    if not mirror:
        arguments.append("--no-mirror")
    for change in setting_lines(overrides):
        arguments += ["--set", change]
    command = ChildCommand(arguments, progress, result=True)
    command.wait()
    command.check()
    if command.stopped_early:
        raise KeyboardInterrupt
    return dict(json.loads(command.result))


def serve(
    checkpoint: str | Path,
    *,
    endpoint: str | None = None,
    curve_keys: str | Path | None = None,
    progress: bool = True,
    trust: bool = False,
    **overrides: Any,
) -> Server:
    """Serve a checkpoint on its own, as `simul serve` does; returns when clients may connect.

    `trust`: run what the checkpoint names (module:Class), also where you did not make it here.

    Raises:
        ConfigError: a checkpoint or a setting is refused.
        SimulError: the server did not start.
    """
    arguments = ["serve", "--plain", "--checkpoint", str(checkpoint), *["--trust"] * trust]
    if endpoint is not None:
        arguments += ["--endpoint", endpoint]
    if curve_keys is not None:
        arguments += ["--curve-keys", str(curve_keys)]
    for change in setting_lines(overrides):
        arguments += ["--set", change]
    command = ChildCommand(arguments, progress)
    try:
        line = command.wait_for_line(" endpoint ")
    except BaseException:  # Ctrl-C while it starts
        command.stop()
        raise
    if line is None:
        command.wait()
        command.check()
        raise SimulError(f"The server ended before it was ready:\n{command.last_lines()}")
    return Server(command, line.partition(" endpoint ")[2].split(";")[0])


class Server:
    """A served checkpoint. `endpoint`: where clients connect. A context manager: stopped at the end of the block."""

    def __init__(self, command: ChildCommand, endpoint: str) -> None:
        self.endpoint = endpoint
        self._command = command

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Whether clients are served."""
        return self._command.running

    def wait(self) -> None:
        """Serve until Ctrl-C. Raises SimulError where the server failed."""
        self._command.wait()
        self._command.check()

    def stop(self) -> None:
        """Answer what has arrived, then end."""
        self._command.stop()
