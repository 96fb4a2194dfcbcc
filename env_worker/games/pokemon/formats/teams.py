"""Teams: files checked by the simulator before anything is played, and the pool of those that a format draws."""

from __future__ import annotations

import difflib
import hashlib
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from poke_env.data import GenData, to_id_str

from simul.common.errors import ConfigError
from simul.common.runtime.private_files import read_regular
from simul.env_worker.games.pokemon.formats.spec import generation, is_doubles
from simul.env_worker.games.pokemon.host.backend import BattleBackend
from simul.env_worker.games.pokemon.tables.tracker_tables import makes_a_pokemon

WIDTH = 256  # teams that may be drawn at a time; the host keeps four times as many


class TeamPool:
    """Teams are numbered, and a seed names each. Battle n draws two of WIDTH, from 2 n / uses on.

    Only for formats whose drawn teams a host keeps: elsewhere nothing would be saved by it.

    Args:
        seed: of the worker.
        uses: battles that a team plays on average.
    """

    def __init__(self, seed: str, uses: int) -> None:
        self._seed = seed
        self._uses = uses

    def seeds(self, battle: int, rng: random.Random) -> tuple[list[int], list[int]]:
        """Seeds of a battle's two teams, never the same; four 16-bit numbers each."""
        oldest = 2 * battle // self._uses
        first, second = rng.sample(range(oldest, oldest + WIDTH), 2)
        return self._seed_of(first), self._seed_of(second)

    def _seed_of(self, team: int) -> list[int]:
        digest = hashlib.blake2b(f"{self._seed}/team/{team}".encode(), digest_size=8).digest()
        return [int.from_bytes(digest[at : at + 2], "little") for at in range(0, 8, 2)]


SHOWN = 3  # problems of teams that an error message quotes
ALIKE = 0.5  # of difflib's ratios
_TITLE = re.compile(r"^===.*===\s*$", re.MULTILINE)  # between the teams of a Showdown backup
_REASONS = {
    "rules": "has custom rules that the simulator refuses: {rules}",
    "players": "is not for two players",
    "kind": "is played neither in singles nor in doubles",
    "name": "is played in doubles, which its name does not say: that is not supported",
    "species": "has species of its own, which no observation describes",
    "size": "gives out teams of more than six Pokemon, of which no observation describes more",
    "draws": "draws teams of its own: {key} would have no effect, leave it empty",
    "teams": "gives out no teams of its own: name a file or a folder of teams with pokemon.teams",
}


class TeamText(NamedTuple):
    """One team in the export format, and the file it came from."""

    source: str
    text: str


def read_teams(where: str, key: str = "pokemon.teams") -> list[TeamText]:
    """Teams in a file (one, or a Showdown backup of many), or in every .txt file of a folder. Raises ConfigError."""
    if not where:
        return []
    path = Path(where)
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
    teams = []
    for file in files:
        try:
            parts = [part.strip() for part in _TITLE.split(read_regular(file).decode())]
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ConfigError(f"{key}: {file} cannot be read: {reason}.") from None
        found = [part for part in parts if part]
        teams += [
            TeamText(f"{file}, team {i}" if len(found) > 1 else str(file), part) for i, part in enumerate(found, 1)
        ]
    if not teams:
        raise ConfigError(f"{key}: there is no team in {where}; expected Showdown's export format in .txt files.")
    return teams


def legal_teams(
    host: BattleBackend, battle_format: str, teams: Sequence[TeamText], key: str = "pokemon.teams"
) -> list[str]:
    """The teams, packed; none for a format that draws its own. `key`: what errors call the setting.

    Raises:
        ConfigError: the format is unknown (with the nearest names) or spelt in another way than the simulator's, cannot
            be played here, or a team is illegal (with the validator's message).
    """
    answer = host.check_format(battle_format, [team.text for team in teams])
    problem = answer["problem"]
    if problem == "unknown":
        near = _nearest(battle_format, answer["formats"])
        hint = f"did you mean {' or '.join(near)}?" if near else "try gen9randombattle."
        raise ConfigError(f"pokemon.format: the simulator knows no format {battle_format!r}; {hint}")
    name, mark, rules = battle_format.partition("@@@")
    if name != answer["id"]:
        right = f"{answer['id']}{mark}{rules}"
        raise ConfigError(f"pokemon.format: the simulator spells {battle_format!r} {right!r}; write it so.")
    if not problem and answer["doubles"] != is_doubles(battle_format):
        problem = "name"
    if problem:
        raise ConfigError(f"pokemon.format: {battle_format} {_REASONS[problem].format(key=key, **answer)}.")
    illegal = [f"{teams[place].source}: {problem}" for place, words in answer["illegal"] for problem in words]
    if not illegal:
        illegal = [
            f"{team.source}: {name} does not exist in generation {generation(battle_format)}."
            for team, packed in zip(teams, answer["teams"])
            for name in unknown_species(generation(battle_format), packed)
        ]
    if illegal:
        more = [f"and {len(illegal) - SHOWN} more"] if len(illegal) > SHOWN else []
        raise ConfigError("\n  ".join([f"{key}: not legal in {battle_format}:", *illegal[:SHOWN], *more]))
    return list(answer["teams"])


def unknown_species(gen: int, packed: str) -> list[str]:
    """Species of a packed team that no observation of this generation can describe."""
    pokedex = GenData.from_gen(gen).pokedex
    members = [member.split("|") for member in packed.split("]")]
    names = [member[1] or member[0] for member in members]
    return [name for name in names if not makes_a_pokemon(pokedex.get(to_id_str(name), {}))]


def _nearest(name: str, formats: Sequence[str]) -> list[str]:
    """At most three. Ties keep the simulator's order, which has the most played formats first."""
    likeness = {known: difflib.SequenceMatcher(None, name, known).ratio() for known in formats}
    return sorted((known for known in formats if likeness[known] >= ALIKE), key=lambda known: -likeness[known])[:3]
