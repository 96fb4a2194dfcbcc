"""Pokémon in the configuration: its section, what the rest of the system knows about it, and the checks of a Showdown
server and user name on the command line. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from simul.common.config.game_description import POLICIES, Game, GameSection
from simul.common.config.section import (
    CodeName,
    NonNegative,
    NonNegativeFloat,
    Port,
    Positive,
    PositiveFloat,
    Rule,
    Section,
)
from simul.common.errors import ConfigError

PATH = "/showdown/websocket"
PUBLIC = "showdown"  # stands for the public server
LOCAL = "local"  # stands for a local server that `simul play` starts
LONGEST_NAME = 18  # Showdown truncates longer names
SCHEMES = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


class RewardsConfig(Section, frozen=True):
    """Rewards of a Pokémon seat. Every weight except win_loss is shaping; 0 turns it off."""

    win_loss: float = 1.0  # at the end: win +, loss -, tie 0
    knockout: NonNegativeFloat = 0.0  # + for each foe that faints, - for each own Pokemon
    pokemon_count: NonNegativeFloat = 0.0  # at the end: for each living Pokemon ahead, - for each behind
    hp_delta: NonNegativeFloat = 0.0  # for each full bar of hp gained on the foe, - for each lost
    fail_immune: NonNegativeFloat = 0.0  # - for each own move that fails or meets an immunity
    switch_penalty: NonNegativeFloat = 0.0  # - for each own switch where a move was possible
    free_switches: NonNegative = 0  # so many switches in a row cost nothing (Maple: 7)
    turn_penalty: NonNegativeFloat = 0.0  # - for each turn played
    potential_based: bool = True  # shaping is taken back at the end, so that it changes no optimum; false: it is kept

    def shaping(self) -> list[str]:
        """Names of the weights of shaping that are not 0."""
        names = ("knockout", "pokemon_count", "hp_delta", "fail_immune", "switch_penalty", "turn_penalty")
        return [name for name in names if getattr(self, name)]


class ShowdownAddress(Section, frozen=True):
    """A Showdown server that battles may be played on."""

    host: str
    port: Port
    max_connections: Annotated[int, Meta(ge=2)] = 4  # of all workers; two accounts are a pair that plays each other


class PokemonConfig(GameSection, frozen=True):
    """Battles on a local simulator host."""

    description: ClassVar[Game] = Game(
        configuration="pokemon",
        seats=2,
        opponents=(
            *POLICIES,
            "random",
            "max_base_power",
            "simple_heuristics",
            "damage",  # the attack that does most now, by the damage formula
        ),
        short_names={"max": "max_base_power", "heuristics": "simple_heuristics"},
        networks={"pokemon": "reads the Pokémon observation layout"},
        episodes="battles",
        learner_preset="battles",
        variant="format",
        least_workers=2,  # while one steps battles, the other one's wait for the server
        worker_mib=700,  # with 64 battles
        pairings=True,
        replays=True,
        player="simul.env_worker.games.pokemon.play.play",
        checks="simul.env_worker.games.pokemon.install.checks",
        packages=("poke-env",),
        data="simulator and set data of the pinned npm package pokemon-showdown (MIT)",
        in_every_fingerprint=True,
        beside_play=(
            "team_uses",
            "accelerate",
            "encoder",
            "transport",
            "local_servers",
            "servers",
            "replies_per_write",
            "host_timeout_sec",
            "reward",
            "rewards",
        ),
    )

    format: str = "gen9randombattle"
    teams: CodeName = ""  # of formats that draw none: file or folder of teams (Showdown's export), or module:Class of
    # a Teambuilder of poke-env's; both seats draw from it
    opponent_teams: CodeName = ""  # as `teams`, for the seats that the learner does not play; empty: `teams`
    max_turns: Positive = 300  # a longer battle is truncated (Showdown's own limit is 1000)
    team_uses: Positive = 4  # of formats that draw teams: a team plays so many battles of training; 1: all are new
    accelerate: bool = True  # apply our speed-up to the pinned simulator, in memory
    encoder: Literal["host", "python"] = "host"  # of stored configurations: means nothing, and `python` is gone
    transport: Literal["ipc", "websocket"] = "ipc"  # a simulator host beside the worker, or Showdown servers
    local_servers: Positive = 1  # websocket: so many servers of each worker's own, where `servers` names none
    servers: tuple[ShowdownAddress, ...] = ()  # websocket: [{host, port, max_connections}], used instead of our own
    damage_attackers: Literal[0, 3, 6] = 3  # own Pokémon whose damage is observed; of 3, two are likely switches
    set_knowledge: bool = True  # observe what foes may still have, where the format's sets are known: random battles
    replies_per_write: NonNegative = 0  # requests that a host gathers before it writes; 0: all that one read asks for
    host_timeout_sec: PositiveFloat = 20.0  # a simulator host that is silent for so long hangs: it is replaced
    observation: CodeName = ""  # module:Class of your own, of poke-env's Battle: docs/from_poke_env.md
    builtin_observation: bool = True  # your observation follows the built-in one; false: it stands alone
    reward: CodeName = ""  # module:function of your own, beside `rewards`: docs/from_poke_env.md
    rewards: RewardsConfig = RewardsConfig()

    def broken_rules(self) -> Iterator[Rule]:
        if self.encoder == "python":
            yield (
                ("pokemon.encoder",),
                "the encoder in Python is gone: expected host, got python. Leave the key out; the simulator host "
                "writes all observations",
            )
        if not self.builtin_observation and not self.observation:
            yield (
                ("pokemon.builtin_observation", "pokemon.observation"),
                "without the built-in observation a policy would see nothing: name your own with "
                "pokemon.observation: module:Class",
            )
        if self.transport == "websocket" and "bo3" in self.format:
            yield (
                ("pokemon.format", "pokemon.transport"),
                "over WebSocket a best of three takes rooms of its own, which are not played; name the format without "
                "bo3, or set transport: ipc, which plays it as single games",
            )

    def network_problem(self, network: str) -> str:
        if network == "pokemon" and not self.builtin_observation:
            return (
                "the network pokemon reads the built-in observation, which pokemon.builtin_observation: false leaves "
                "out; use mlp_lstm"
            )
        return ""

    def label_problem(self) -> str:
        if self.transport == "ipc":
            return ""
        return f"of battles on Showdown servers (pokemon.transport: {self.transport}) only the own choices are known"

    def returns_problem(self) -> str:
        rewards = self.rewards
        if rewards.win_loss != 1.0:
            return f"pokemon.rewards.win_loss is {rewards.win_loss:g}"
        if self.reward:
            return f"pokemon.reward is {self.reward}"
        if rewards.shaping() and not rewards.potential_based:
            return f"pokemon.rewards.potential_based is false and keeps {', '.join(rewards.shaping())}"
        return ""

    def draws_seeds(self) -> bool:
        return self.transport == "ipc"


def check_server(text: str) -> None:
    """Whether `text` names a server: `showdown`, `local`, HOST:PORT or a URL. Raises ConfigError."""
    if text not in (PUBLIC, LOCAL):
        websocket_url(text)


def websocket_url(text: str) -> str:
    """The URL of HOST:PORT, or of a ws(s):// or http(s):// URL. Raises ConfigError."""
    try:
        parts = urlsplit(text if "://" in text else f"ws://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if not host or parts.scheme not in SCHEMES or re.search(r"\s", text):
        raise ConfigError(
            f"--server {text!r} is not the address of a Showdown server: expected HOST:PORT, a URL like "
            f"ws://127.0.0.1:8000{PATH}, `{PUBLIC}` for the public one, or `{LOCAL}` for one of our own."
        )
    name = f"[{host}]" if ":" in host else host
    place = name if port is None else f"{name}:{port}"
    path = parts.path if parts.path.strip("/") else PATH
    return f"{SCHEMES[parts.scheme]}://{place}{path}"


def check_name(name: str) -> None:
    """Raises ConfigError where Showdown would refuse or change the name."""
    if len(name) > LONGEST_NAME:
        raise ConfigError(f"--username {name!r} has {len(name)} characters; Showdown takes {LONGEST_NAME} at most.")
    if not re.search("[A-Za-z]", name) or not re.fullmatch("[A-Za-z0-9]+(?:[ '_-][A-Za-z0-9]+)*", name):
        raise ConfigError(
            f"--username {name!r} is not a name that Showdown leaves as it is: expected letters from A to Z and "
            "digits, between them single spaces, hyphens, underscores or apostrophes."
        )
