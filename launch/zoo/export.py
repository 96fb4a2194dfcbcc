"""`simul zoo export`: an entry out of a run: its weights without the optimizer, and a card of games that it played.

The games are played by the very file that is written, as `simul eval` in a process of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import yaml

from simul.common.checkpoints.folders import new_folder, run_root
from simul.common.checkpoints.meta import (
    CONFIG_FILE,
    META_FILE,
    WEIGHTS_FILE,
    CheckpointMeta,
    checkpoint_folders,
    decode_meta,
    read_verified,
)
from simul.common.checkpoints.zoo import CARD, RESULTS, ZOO
from simul.common.config.automatic import AUTO
from simul.common.config.game_description import TABLE_PLAYER
from simul.common.config.games import game_called
from simul.common.config.loader import load_config
from simul.common.config.opponents import ZOO_PREFIX, opponent_kind
from simul.common.config.schema import LONG_HORIZON, Config
from simul.common.config.setting_lines import setting_lines
from simul.common.config.trust import Trust
from simul.common.errors import ConfigError
from simul.common.role.run_directory import RunDir
from simul.common.role.run_lock import read_json
from simul.common.role.temporary import temporary_folder
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.common.runtime.machine_info import checkout_commit
from simul.common.runtime.private_files import read_regular
from simul.launch.processes.child_command import ChildCommand
from simul.launch.processes.process_group import RoleDied
from simul.launch.processes.role_process import exit_reason, role_environment
from simul.launch.supervisor.checkpoint_files import (
    config_of,
    config_of_meta,
    networks_of,
    newest_checkpoint,
)
from simul.launch.zoo.card import card_facts, card_text, played_games

BFLOAT16, FLOAT32 = "bfloat16", "float32"
FILES = {CARD, RESULTS, META_FILE, WEIGHTS_FILE, CONFIG_FILE}  # of an entry; nothing else may be lost by replacing one
UNKNOWN = "not known: the entry was made of a checkpoint without its run directory or a card"
LICENCE_BEFORE = "; of the weights that it was made of: "
MOST_BYTES_OF_CARD = 1 << 16
NEEDS_A_PROGRAM = ("gtp",)  # scripted players that a card is not measured against unless they are named
OF_POLICIES = ("game", "game_options", "network", "search")  # settings by which a policy plays, and its game's section
HORIZON = "learner.total_decisions="
NEAR = 0.01  # of its decisions: by how much a run misses those at which it stops
Say = Callable[[str], object]


class Terms(msgspec.Struct, frozen=True):
    """What only a person can say of an entry. `licence`: of its weights; `note`: sentences more for the card."""

    licence: str
    note: str = ""


def export(
    run: Path, folder: Path, terms: Terms, *, opponents: Sequence[str] = (), games: int, workers: int = 1,
    precision: str = BFLOAT16, trust: Trust, say: Say,
) -> str:  # fmt: skip
    """Make the entry; returns its card. Nothing is left where it fails.

    Args:
        run: a run directory, or a checkpoint.
        folder: of the entry; an older entry there is replaced.
        opponents: scripted players; none: all of the game that need no other program.
        games: against each opponent, or of a game for one.
        workers: processes that step them.

    Raises:
        ConfigError: a sentence says what to change.
        RoleDied, SimulError: the weights could not be written, or the games not be played.
    """
    if not terms.licence.strip():
        raise ConfigError("An entry states the licence of its weights, which is yours to choose: --licence MIT, say.")
    _check_replaceable(folder)
    checkpoint = newest_checkpoint(run)
    config = config_of(checkpoint, [], trust)
    networks_of([checkpoint], trust)
    meta = decode_meta(checkpoint)
    bots = _opponents(config, meta, opponents)
    with temporary_folder("simul-zoo-") as place:
        measured = place / folder.absolute().name
        measured.mkdir()
        _write_checkpoint(measured, checkpoint, meta, config, precision, place)
        against = f" against each of {', '.join(bots)}" if bots else ""
        say(f"{measured.name} plays {games:,} games{against}")
        try:
            played = _play(measured, bots, games, workers)
            results = played_games(played)
        except ValueError as error:
            raise RoleDied(f"The entry could not be measured: {error}. Nothing was written.", 1) from None
        if unfinished := played["wanted"] - played["episodes"]:
            say(f"{unfinished} games were not played to their end; the card counts the others")
        name = f"{ZOO_PREFIX}{measured.name}" if folder.absolute().parent == ZOO else measured.name
        (measured / RESULTS).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        facts = _facts(decode_meta(measured), config, checkpoint, terms, precision, mirrored=bool(bots))
        card = card_text(name, facts, results, terms.note, _playing(config))
        (measured / CARD).write_text(card, encoding="utf-8")
        try:
            with new_folder(folder) as aside:
                for file in measured.iterdir():
                    (aside / file.name).write_bytes(file.read_bytes())
        except OSError as error:
            raise ConfigError(f"{folder} cannot be written: {error.strerror}. Choose another folder.") from None
    return card


def _playing(config: Config) -> list[str]:
    """The commands that play a game of it."""
    player = game_called(config.game).player
    return ["simul play"] * bool(player) + ["simul watch"] * (player == TABLE_PLAYER)


def _check_replaceable(folder: Path) -> None:
    """Raises ConfigError where something else than an entry would be replaced, or nothing can be written."""
    if folder.is_symlink():
        raise ConfigError(f"{folder} is a link: name the folder that it leads to.")
    above = next(each for each in folder.absolute().parents if os.path.lexists(each))
    try:
        with tempfile.TemporaryDirectory(dir=above):
            pass
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}. Choose another folder.") from None
    if not folder.exists():
        return
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    others = sorted(names - FILES)
    if others or (names and not names >= {CARD, META_FILE}):  # without a card it is a checkpoint, or a user's folder
        raise ConfigError(
            f"{folder} is no entry of a zoo: there is {[*others, *sorted(names)][0]}. Choose a folder that does not "
            "exist, or an older entry, which is replaced."
        )


def _opponents(config: Config, meta: CheckpointMeta, named: Sequence[str]) -> list[str]:
    """Raises ConfigError for one that the game does not have."""
    game = game_called(config.game)
    if (config.game_section.seats() or meta.spec.seats) == 1:
        if named:
            raise ConfigError(f"The game {config.game_title} has one seat and no opponents; leave --opponent out.")
        return []
    if named:
        return [opponent_kind(name, game.scripted) for name in named]
    return [kind for kind in game.scripted if kind not in NEEDS_A_PROGRAM]


def _write_checkpoint(
    folder: Path, checkpoint: Path, meta: CheckpointMeta, config: Config, precision: str, aside: Path
) -> None:
    """Weights, the settings that meta.json does not hold, and meta.json. Raises CheckpointError, RoleDied."""
    weights = read_verified(checkpoint, meta, WEIGHTS_FILE)
    files = {WEIGHTS_FILE: weights if precision == FLOAT32 else _lowered(weights, aside)}
    if settings := _settings_beyond(meta, config):
        files[CONFIG_FILE] = yaml.safe_dump(settings, sort_keys=False).encode()
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    kept = msgspec.structs.replace(meta, files=hashes, milestone=True)
    for name, data in {**files, META_FILE: msgspec.json.format(msgspec.json.encode(kept))}.items():
        (folder / name).write_bytes(data)


def _settings_beyond(meta: CheckpointMeta, config: Config) -> dict[str, Any]:
    """By which the policy plays, where meta.json alone would say others; else {}."""

    def settings(of: Config) -> dict[str, Any]:
        keys = [*OF_POLICIES, *([of.game] if of.game in Config.__struct_fields__ else [])]
        tree = msgspec.to_builtins(of)
        return {**{key: tree[key] for key in keys}, "learner": {"algorithm": of.learner.algorithm}}

    wanted = settings(config)
    return {} if wanted == settings(config_of_meta(meta)) else wanted


def _lowered(weights: bytes, aside: Path) -> bytes:
    """In bfloat16, by a process that imports torch. Raises RoleDied."""
    file, low = aside / "weights.float32", aside / "weights.bfloat16"
    file.write_bytes(weights)
    line = [sys.executable, "-P", "-m", "simul.common.nets.bfloat16", str(file), str(low)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=role_environment(1))
    if done.returncode:
        raise RoleDied(f"The weights could not be written ({exit_reason(done.returncode)}):\n{done.stderr[-4000:]}", 1)
    return low.read_bytes()


def _play(folder: Path, bots: Sequence[str], games: int, workers: int) -> Mapping[str, Any]:
    """What `simul eval --json` prints, also where games are missing. Raises ConfigError, SimulError."""
    line = ["eval", "--json", "--trust", "--checkpoint", str(folder), "--games", str(games), "--workers", str(workers)]
    line += [word for bot in bots for word in ("--opponent", bot)]  # --trust: `export` has checked the run's own
    command = ChildCommand([*line, *["--no-round-robin"] * (len(bots) > 1)], progress=False, result=True)
    command.wait()
    if command.stopped_early:
        raise RoleDied("The games were interrupted. Nothing was written.", 130)
    if not command.result.strip():
        command.check()
    return dict(json.loads(command.result))


def _facts(
    meta: CheckpointMeta, config: Config, checkpoint: Path, terms: Terms, precision: str, *, mirrored: bool
) -> list[tuple[str, str]]:  # fmt: skip
    """`meta`: of the entry, whose weights are those that were measured."""
    run = RunDir(run_root(checkpoint))
    source = {} if run.has_started() else _card_beside(checkpoint)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    exported_from = f"{checkpoint.name}, whose card says command, licence and origin"
    return [
        ("game", meta.spec.described()),
        ("network", f"{meta.network.name}, {json.dumps(meta.network.options)}, weights in {precision}"),
        ("trained", f"{meta.decisions:,} decisions, seed {meta.seed}, until {meta.time[:10]}"),
        ("command", _command(config, meta, run) if run.has_started() else source.get("command", UNKNOWN)),
        ("made with", _made_with(meta, run, source)),
        *[("exported from", exported_from)] * bool(source),
        ("weights", f"SHA-256 {meta.files[WEIGHTS_FILE]}"),
        ("measured", f"{today}, greedy{', mirrored games where the game has seeds' * mirrored}, on this very file"),
        ("licence", _licence(terms.licence, source)),
        ("origin", source.get("origin") or _origin(config, run, meta)),
    ]


def _card_beside(checkpoint: Path) -> dict[str, str]:
    """What the card of an entry that is exported again says; {} where there is none."""
    try:
        return card_facts(read_regular(checkpoint / CARD, MOST_BYTES_OF_CARD, links=False).decode())
    except (OSError, UnicodeDecodeError):
        return {}


def _licence(chosen: str, source: Mapping[str, str]) -> str:
    """That of the entry, and that of the weights which it was made of, where they differ."""
    before = source.get("licence", "")
    if not before or before == chosen:
        return chosen
    return before if before.startswith(f"{chosen}{LICENCE_BEFORE}") else f"{chosen}{LICENCE_BEFORE}{before}"


def _made_with(meta: CheckpointMeta, run: RunDir, source: Mapping[str, str]) -> str:
    """Versions, the commit of the training where it is known, and that of the export."""
    packages = {"simul": importlib.metadata.version("simul"), **meta.packages}
    made = [f"{name} {version}" for name, version in packages.items() if name in ("simul", "torch")]
    known = re.search(r"(?<!export )commit (\w+)", source.get("made with", ""))
    trained = known[1] if known else str(_versions(run).get("commit", ""))
    commits = {"commit": trained, "export commit": checkout_commit()}
    return ", ".join([*made, *(f"{name} {commit}" for name, commit in commits.items() if commit)])


def _command(config: Config, meta: CheckpointMeta, run: RunDir) -> str:
    """`simul up CONFIG --set ...` that begins such a run, with the settings that decide what is learned.

    A run that was stopped and resumed has the settings of its last start; its horizon is of its first, unless that was
    moved (`--new-horizon`): then checkpoints of before tell the first one.
    """
    configuration = game_called(config.game).configuration
    if not configuration:
        return "`simul up` with a configuration of its maker's"
    first = _first_start(run, meta) or meta
    share = config.learned_share(config.game_section.seats() or meta.spec.seats)
    changed = _changes(configuration, config)
    stop, total = round(first.decisions / share), config.learner.total_decisions
    if total == AUTO and (not first.horizon or first.decisions <= (1 + NEAR) * first.horizon):
        stop = round(first.horizon / share) if first.horizon != LONG_HORIZON else 0  # `auto` makes the horizon of it
    else:
        if first.horizon not in (0, total):
            changed = [*(line for line in changed if not line.startswith(HORIZON)), f"{HORIZON}{first.horizon}"]
        if abs(stop - config.stop_after_decisions) <= NEAR * stop:
            stop = config.stop_after_decisions
    if stop:
        changed.append(f"stop_after_decisions={stop}")
    resumed = ""
    if first is not meta:
        more = f"{HORIZON}{meta.horizon} (--new-horizon)"
        resumed = f", resumed with {more} until {meta.decisions:,} decisions had been learned from"
    return f"`simul up {configuration}{''.join(f' --set {shlex.quote(line)}' for line in changed)}`{resumed}"


def _changes(configuration: str, config: Config) -> list[str]:
    """Settings of learning that make those of `config` out of a shipped configuration.

    Also those that it has already, where another one moves them: a start value set alone lowers its final value.
    """
    wanted, changed = setting_lines(_settings_of_learning(config)), list[str]()
    for _ in range(2):
        made = set(setting_lines(_settings_of_learning(load_config(configuration, changed))))
        changed += [line for line in wanted if line not in made]
    return changed


def _first_start(run: RunDir, meta: CheckpointMeta) -> CheckpointMeta | None:
    """The last checkpoint of the oldest schedules, where those of `meta` end at another number of decisions."""
    older = []
    for folder in reversed(checkpoint_folders(run.checkpoints)):  # oldest first
        with contextlib.suppress(OSError, *DECODE_ERRORS):
            if (found := decode_meta(folder)).version < meta.version and found.horizon not in (0, meta.horizon):
                older.append(found)
    return [each for each in older if each.horizon == older[0].horizon][-1] if older else None


def _settings_of_learning(config: Config) -> dict[str, Any]:
    """Those that decide what is learned, by section; `server` and `workers` only say how fast."""
    tree = msgspec.to_builtins(config)
    keys = [*OF_POLICIES, config.game, "opponents", "learner", "replay", "seed"]
    return {key: tree[key] for key in keys if key in tree}


def _origin(config: Config, run: RunDir, meta: CheckpointMeta) -> str:
    """What the weights began as, and what went into them."""
    if not run.has_started():
        return f"{UNKNOWN}; {_ingredients(config, run)}"
    began = run.read_origin()
    shares = {kind: share for kind, share in config.opponents.shares().items() if share}
    seats = config.game_section.seats() or meta.spec.seats
    of_games = "its own games" if seats == 1 else "its games against " + ", ".join(
        f"{kind} ({share:g})" for kind, share in shares.items()
    )  # fmt: skip
    weights = f"the weights of {Path(began).name}, whose licence and origin hold, too" if began else "random weights"
    return f"learned by {config.learner.algorithm} from {weights}, and from {of_games}; {_ingredients(config, run)}"


def _ingredients(config: Config, run: RunDir) -> str:
    """The game's code and data, with versions and licences."""
    game = game_called(config.game)
    versions = _versions(run)
    found = [f"{name} {versions.get(name, '')}".strip() + f" ({_licence_of(name)})" for name in game.packages]
    if ":" in config.game:
        found.append(f"the game {config.game} (see its maker for a licence)")
    return "; ".join([f"game: {', '.join(found) or 'part of Simul (MIT)'}", *[f"data: {game.data}"] * bool(game.data)])


def _versions(run: RunDir) -> dict[str, Any]:
    """Of packages and the checkout, at the end of the run's last start."""
    versions = read_json(run, "summary.json").get("versions")
    return versions if isinstance(versions, dict) else {}


def _licence_of(package: str) -> str:
    """As its metadata states it, in one line."""
    try:
        facts = importlib.metadata.metadata(package)
    except importlib.metadata.PackageNotFoundError:
        return "licence unknown"
    stated = facts["License-Expression"] or facts["License"] or ""  # None where it has none
    return str(stated).strip().partition("\n")[0] or "licence unknown"
