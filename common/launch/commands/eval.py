"""`simul eval`: exactly N greedy games of checkpoints and bots, through a server with frozen weights and no learner."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from simul.common.config.loader import load_config
from simul.common.config.matchups import Contestant, Pairing, encode_pairings, round_robin, share_out
from simul.common.config.opponents import SCRIPTED, opponent_kind
from simul.common.config.run_directory import RunDir
from simul.common.config.schema import Config
from simul.common.launch.evaluation.checkpoint import config_of, newest_checkpoint
from simul.common.launch.evaluation.eval_runner import Match
from simul.common.launch.evaluation.matrix import matrix_of, table_of
from simul.common.launch.evaluation.result import in_words, result_of
from simul.common.launch.supervisor.process_group import Command
from simul.common.launch.supervisor.processes import role_command
from simul.common.launch.supervisor.signals import Signals
from simul.common.launch.supervisor.temporary import temporary_folder
from simul.common.protocol.errors import ConfigError
from simul.common.runtime.installation import ROOT

FOR_BOTS = ROOT / "configs" / "pokemon.yaml"  # where no checkpoint brings a configuration
TABLE_COLUMNS = 30  # per contestant; a pipe has no width of its own


def evaluate(
    checkpoints: Sequence[Path], *, opponents: Sequence[str] = (), episodes: int, workers: int = 1,
    overrides: Sequence[str] = (), as_json: bool = False, replays: Path | None = None, mirror: bool = True,
    command: Command = role_command,
) -> int:  # fmt: skip
    """Play, print, and return the exit code: one checkpoint alone or against one opponent, or everybody against
    everybody else, with or without a checkpoint among them. Raises ConfigError, RoleDied.
    """
    if episodes < 1 or workers < 1:
        raise ConfigError("--battles and --workers must be at least 1.")
    bots = [opponent_kind(name, SCRIPTED) for name in opponents]
    folders = [newest_checkpoint(checkpoint) for checkpoint in checkpoints]
    for named, option in ((bots, "--opponent"), (folders, "--checkpoint")):
        if len(set(named)) < len(named):
            raise ConfigError(f"{option} names the same one twice.")
    if not folders and len(bots) < 2:
        raise ConfigError(
            "Name a --checkpoint. Pokémon's bots play without one, two of them or more: "
            f"--opponent {' --opponent '.join(SCRIPTED)}."
        )
    config = config_of(folders[0], overrides) if folders else load_config(FOR_BOTS, overrides)
    _check_game(config, len(folders), bots)
    each = ["--greedy", *(["--replays", str(replays.absolute())] if replays is not None else [])]
    served = {"learner" if not index else f"eval/{index}": folder for index, folder in enumerate(folders)}
    contestants = [
        *(Contestant(label, policy=policy) for label, policy in zip(labels_of(folders), served)),
        *(Contestant(bot, bot=bot) for bot in bots),
    ]
    pairings = round_robin(contestants, episodes, mirrored=mirror and draws_seeds(config))
    workers = min(workers, (episodes + 1) // 2 if pairings else episodes)
    signals = Signals()
    signals.install()
    try:
        with temporary_folder("simul-eval-") as folder:
            match = Match(RunDir(folder), config, signals, command, quiet=as_json)
            if len(folders) == 1 and len(bots) <= 1:
                pairing = pairings[0] if bots else None
                return _single(match, folders[0], pairing, episodes, workers, each, as_json)
            return _matrix(match, served, contestants, pairings, workers, each, as_json)
    finally:
        signals.restore()


def draws_seeds(config: Config) -> bool:
    """Whether teams and dice follow from our seeds; False where a Showdown server draws them."""
    return config.pokemon.transport == "ipc"


def _check_game(config: Config, checkpoints: int, bots: Sequence[str]) -> None:
    if config.game == "pokemon" and checkpoints == 1 and not bots:
        raise ConfigError(f"Name an opponent, or a second --checkpoint: --opponent {', '.join(SCRIPTED)}.")
    if config.game != "pokemon" and (bots or checkpoints > 1):
        name = config.gymnasium.id if config.game == "gymnasium" else config.game
        raise ConfigError(f"The game {name} has no opponents; leave --opponent out, and name one --checkpoint.")


def _single(
    match: Match, folder: Path, pairing: Pairing | None, episodes: int, workers: int, each: list[str], as_json: bool
) -> int:
    if pairing is not None:
        arguments = _arguments([pairing], workers, each)
    else:
        shares = [episodes // workers + (index < episodes % workers) for index in range(workers)]
        arguments = [["--episodes", str(share), *each] for share in shares]
    figures = match.play({"learner": folder}, arguments, episodes)
    result = result_of(figures, pairing, episodes, checkpoint=folder, version=match.versions.get("learner"))
    sys.stdout.write((msgspec.json.encode(result).decode() if as_json else in_words(result)) + "\n")
    return 0 if result["episodes"] == episodes else 1


def _matrix(
    match: Match, served: dict[str, Path], contestants: Sequence[Contestant], pairings: Sequence[Pairing],
    workers: int, each: list[str], as_json: bool,
) -> int:  # fmt: skip
    battles = sum(pairing.battles for pairing in pairings)
    figures = match.play(served, _arguments(pairings, workers, each), battles)
    matrix = matrix_of(figures, contestants, pairings, served, match.versions)
    if as_json:
        sys.stdout.write(msgspec.json.encode(matrix).decode() + "\n")
    else:
        width = None if sys.stdout.isatty() else TABLE_COLUMNS * (len(contestants) + 1)
        Console(width=width).print(table_of(matrix))
    return 0 if all(pair["battles"] == pair["wanted"] for pair in matrix["pairs"]) else 1


def _arguments(pairings: Sequence[Pairing], workers: int, each: list[str]) -> list[list[str]]:
    """Of every worker."""
    return [
        ["--episodes", str(sum(part.battles for part in share)), "--pairings", encode_pairings(share), *each]
        for share in share_out(pairings, workers)
    ]


def labels_of(folders: Sequence[Path]) -> list[str]:
    """Short names of checkpoints, each once: `RUN@VERSION`, or the folder's name."""
    labels: list[str] = []
    for folder in folders:
        of_run = folder.parent.name == "checkpoints"
        label = f"{folder.parent.parent.name}@{folder.name.lstrip('0') or '0'}" if of_run else folder.name
        label = label.replace("|", "-").replace("/", "-")  # it goes into the protocol's lines
        taken = labels.count(label) or sum(other.startswith(f"{label}#") for other in labels)
        labels.append(f"{label}#{taken + 1}" if taken else label)
    return labels
