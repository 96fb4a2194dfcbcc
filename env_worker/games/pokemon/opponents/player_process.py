"""The process of one player of a user's own: `player_keeper.py` starts it with module:Class, format and generation.

It reads commands from stdin, a line of JSON each, and answers on stdout in the same way. A player chooses by its
`choose_move(battle)`, and `teampreview(battle)` where it has one, as poke-env calls them: on poke-env's event loop, one
at a time unless they are coroutines. There is no server. What the player prints goes to stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import inspect
import logging
import os
import random
import sys
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NoReturn

import orjson
from poke_env.battle.pokemon import Pokemon
from poke_env.concurrency import POKE_LOOP
from poke_env.player import Player
from poke_env.player.battle_order import DoubleBattleOrder, SingleBattleOrder
from poke_env.ps_client import PSClient

from simul.common.config.named_class import load_class
from simul.common.config.trust import Trust, values_to_trust
from simul.common.errors import ConfigError
from simul.common.runtime.error_place import describe_error
from simul.common.runtime.parent_watch import end_with
from simul.env_worker.games.pokemon.opponents import random_choice, scripted
from simul.env_worker.games.pokemon.opponents import stock_battle as stock
from simul.env_worker.games.pokemon.opponents.random_choice import Request
from simul.env_worker.games.pokemon.opponents.scripted import place_of
from simul.env_worker.games.pokemon.opponents.stock_battle import StockReader, stock_battle

CALLERS = frozenset({__file__, random_choice.__file__, scripted.__file__, stock.__file__})
LONGEST_LINE = 64 << 20
MOST_SHOWN = 80  # characters of what a player returned
Key = tuple[int, int]  # number of the battle, seat


class NeedsServerError(Exception):
    """The player uses its connection to a Showdown server, which it does not have here."""


def main() -> int:
    """Serve until stdin ends. The first line is `ready`, or `failed` with a sentence."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("format")
    parser.add_argument("gen", type=int)
    parser.add_argument("--doubles", action="store_true")
    parser.add_argument("--owner", type=int, default=0)
    options = parser.parse_args()
    faulthandler.enable()
    end_with(options.owner)
    commands, answers = _take_pipes()
    try:
        player = make_player(options.name, options.format)
    except ConfigError as error:
        _write(answers, {"failed": str(error)})
        return 0
    make_battle = partial(stock_battle, gen=options.gen, doubles=options.doubles)
    server = PlayerServer(player, options.format, make_battle, answers)
    _write(answers, {"ready": True})
    asyncio.run_coroutine_threadsafe(server.run(commands), POKE_LOOP).result()
    sys.stdout.flush()
    os._exit(0)  # poke-env's own exit waits for tasks of the player


def _take_pipes() -> tuple[int, int]:
    """Descriptors of commands and answers: from now on stdin is empty, and what is printed goes to stderr."""
    commands, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return commands, answers


def _write(descriptor: int, message: dict[str, Any]) -> None:
    data = orjson.dumps(message) + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


def make_player(name: str, battle_format: str) -> Any:
    """The player that `module:Class` makes. Raises ConfigError."""
    _take_server(name)
    found = load_class(name, "player", trust=Trust(values=values_to_trust({"opponents": {"classes": {name: 1.0}}})))
    _check_chooses(found if isinstance(found, type) else None, name)
    try:
        player = found(**_arguments(found, battle_format))
    except (Exception, SystemExit) as error:
        raise ConfigError(f"The opponent {name} cannot be made: {describe_error(error, CALLERS)}.") from error
    _check_chooses(player, name)
    return player


def _check_chooses(found: Any, name: str) -> None:
    if found is not None and not callable(getattr(found, "choose_move", None)):
        raise ConfigError(
            f"The opponent {name} has no choose_move(battle); expected a poke-env Player, or another class with that."
        )


def _arguments(found: Any, battle_format: str) -> dict[str, Any]:
    """Those of poke-env's that its signature takes."""
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return {}
    passes_on = isinstance(found, type) and issubclass(found, Player)
    any_name = passes_on and any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    given = {"battle_format": battle_format, "start_listening": False}
    return {key: value for key, value in given.items() if any_name or key in parameters}


def _take_server(name: str) -> None:
    """From now on no client of poke-env connects, and one that is used raises."""

    async def stay_silent(client: PSClient) -> None:
        """In place of `listen`, which every Player starts unless it is told not to."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NeedsServerError(
            f"{name} sends to a Showdown server itself: as an opponent it has none, and only chooses, by choose_move "
            "and teampreview"
        )

    changed: Any = PSClient
    changed.listen = stay_silent
    changed.send_message = changed.log_in = changed.wait_for_login = refuse
    changed.logged_in = property(refuse)


class PlayerServer:
    """Keeps poke-env's battle of every seat that the player has, and asks it for choices."""

    def __init__(
        self, player: Any, battle_format: str, make_battle: Callable[..., StockReader], answers: int
    ) -> None:  # fmt: skip
        """`make_battle`: of a role and a `tag`, see `stock_battle`. `answers`: the descriptor to write to."""
        self._player = player
        self._format = battle_format
        self._make_battle = make_battle
        self._answers = answers
        self._battles: dict[Key, StockReader] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._shown: set[str] = set()

    async def run(self, commands: int) -> None:
        """Serve until `commands` ends."""
        reader = asyncio.StreamReader(LONGEST_LINE)
        with os.fdopen(commands, "rb") as pipe:
            await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
            while line := await reader.readline():
                self._apply(orjson.loads(line))
                await asyncio.sleep(0)  # coroutines of the player go on

    def _apply(self, command: dict[str, Any]) -> None:
        key: Key = (command["battle"], command["seat"])
        if "request" not in command:
            self._forget(key)
            return
        number, request = command["number"], command["request"]
        battle = self._battles[key] if key in self._battles else self._begin(key)
        try:
            battle.feed(command["lines"])
            battle.parse_request(request)
            if number is None:  # it was answered by the process before
                return
            _write(self._answers, {"begins": [*key, number]})
            random.seed(command["seed"])
            choice = self._choice(battle, request)
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - a user's may raise anything
            self._fail(key, number, error)
            return
        if not inspect.isawaitable(choice):
            self._answer(key, number, choice, request)
            return
        task = asyncio.get_running_loop().create_task(self._answer_later(key, number, choice, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _choice(self, battle: StockReader, request: Request) -> Any:
        if not request.get("teamPreview"):
            return self._player.choose_move(battle)
        if hasattr(self._player, "teampreview"):
            return self._player.teampreview(battle)
        return random_choice.random_choice(request, random.Random(random.getrandbits(48)))

    async def _answer_later(self, key: Key, number: int, choice: Awaitable[Any], request: Request) -> None:
        try:
            found = await choice
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - as above
            self._fail(key, number, error)
        else:
            self._answer(key, number, found, request)

    def _answer(self, key: Key, number: int, choice: Any, request: Request) -> None:
        battle = self._battles.get(key)
        if battle is None:
            return  # it is over
        try:
            text = command_of(choice, battle, request)
        except Exception as error:  # noqa: BLE001 - `message` may be the user's
            self._fail(key, number, error)
            return
        _write(self._answers, {"answer": [*key, number, text, battle.turn, battle.parse_errors]})

    def _fail(self, key: Key, number: int | None, error: BaseException) -> None:
        what = describe_error(error, CALLERS)
        _write(self._answers, {"error": [*key, number, what]})
        kind = f"{type(error).__name__} {what.partition(' ')[0]}"
        if kind not in self._shown:
            self._shown.add(kind)
            traceback.print_exception(error)

    def _begin(self, key: Key) -> StockReader:
        number, seat = key
        tag = f"battle-{self._format}-{2 * number + seat}"  # players keep notes by it
        battle = self._battles[key] = self._make_battle(f"p{seat + 1}", tag=tag)
        battle.logger = logging.getLogger("poke-env")
        if isinstance(self._player, Player):
            self._player._battles[battle.battle_tag] = battle
        return battle

    def _forget(self, key: Key) -> None:
        battle = self._battles.pop(key, None)
        if battle is not None and isinstance(self._player, Player):
            self._player._battles.pop(battle.battle_tag, None)


def command_of(choice: Any, battle: StockReader, request: Request) -> str:
    """What a player returned, a BattleOrder or a text, in the simulator's words. Raises TypeError, ValueError.

    A Pokémon to switch to is named by its place, everything else as the player says it.
    """
    message = choice if isinstance(choice, str) else getattr(choice, "message", None)
    if isinstance(choice, SingleBattleOrder | DoubleBattleOrder):
        parts = [choice.first_order, choice.second_order] if isinstance(choice, DoubleBattleOrder) else [choice]
        message = ", ".join(_single(part, battle, request) for part in parts)
    shown = repr(choice)[:MOST_SHOWN]
    if not isinstance(message, str):
        raise TypeError(f"it chose {shown}; expected a BattleOrder, or a text such as '/choose move 1'")
    text = message.strip().removeprefix("/").removeprefix("choose ").strip()
    if not text or "\n" in text or "|" in text:
        raise ValueError(f"it chose {shown}; expected a text such as '/choose move 1'")
    return text


def _single(order: SingleBattleOrder, battle: StockReader, request: Request) -> str:
    if isinstance(order.order, Pokemon) and order.order in battle.team.values():
        return f"switch {place_of(order.order, battle, request)}"
    return order.message.removeprefix("/choose ")


if __name__ == "__main__":
    sys.exit(main())
