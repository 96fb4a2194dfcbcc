"""`python -m simul.env_worker.terminal`: one game in a terminal, behind `simul play` and `simul watch`."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from simul.common.client.client import InferenceClient
from simul.common.config.matchups import Contestant
from simul.common.config.schema import Config
from simul.common.config.trust import EVERYTHING, NOTHING, Trust, values_to_trust
from simul.common.errors import ConfigError, SimulError
from simul.common.protocol.specs import GameSpec
from simul.common.role.lifecycle import StopFlag, Stopped
from simul.common.role.run_directory import RunDir
from simul.common.runtime.terminal_text import LINES, printable
from simul.common.transport import client_keys
from simul.env_worker.games.base.build import check_turn_game, failures_as_sentences
from simul.env_worker.games.base.replays import RecordedGame, Replay, ReplayFolder, game_settings, read_replay
from simul.env_worker.games.base.turn_game import IllegalActionError, TurnGame
from simul.env_worker.games.loading import scripted_players, turn_game
from simul.env_worker.terminal.advice import Advisor, PolicyRollouts, PolicySearch, PolicySession, draws_worlds
from simul.env_worker.terminal.frames import FrameScreen, limit_process
from simul.env_worker.terminal.game_loop import GameLoop, ReplayLoop
from simul.env_worker.terminal.piped_screen import PipedScreen
from simul.env_worker.terminal.players import BotPlayer, Person, PolicyPlayer, TerminalPlayer
from simul.env_worker.terminal.screen import Screen
from simul.env_worker.terminal.server_line import ServerLine

CONNECT_SEC = 20.0
HINT_WORLDS = 60  # drawn for a hint in games that draw them, where the configuration has none
SEEDS = 2**31  # of a game, as in workers
INTERRUPTED = 130


def main() -> int:
    """Exit code 0: played, left, or watched; 2: an error, printed as a sentence; 130: interrupted."""
    options = _parser().parse_args()
    stop = StopFlag(options.parent).install()
    try:
        with stop.interrupting():
            _run(options)
    except Stopped:
        sys.stderr.write("\n")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of stdout, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except SimulError as error:
        sys.stdout.flush()
        sys.stderr.write(printable(f"simul: {error}\n", LINES))
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simul.env_worker.terminal")
    add = parser.add_argument
    add("--run-dir", type=Path, help="with config.yaml and, where policies play, a server")
    add("--parent", type=int, default=0)
    add("--contestants", type=_contestants, default=[], help="JSON; the last one plays all seats that are left")
    add("--person", type=int, help="seat of a person, whom the others play; none: a game to watch")
    add("--adviser", default="", help="policy that gives a person's hints")
    add("--remembering", action="append", default=[], metavar="POLICY", help="its network has a memory")
    add("--seed", type=int, help="of the game; default: a new one")
    add("--sample", action="store_true", help="policies draw their actions")
    add("--delay", type=float, help="seconds after each turn that is watched; default: until Enter")
    add("--replays", type=Path, help="folder for the replay of the game")
    add("--piped", action="store_true", help="the person is at another program, see piped_screen.py")
    add("--replay", type=Path, help="show this replay")
    add("--frames", action="store_true", help="print the replay as JSON, see frames.py")
    add("--trust", action="store_true", help="run what the run directory or the replay names")
    return parser


def _contestants(text: str) -> list[Contestant]:
    return msgspec.json.decode(text, type=list[Contestant])


def _run(options: argparse.Namespace) -> None:
    trust = EVERYTHING if options.trust else NOTHING
    if options.replay is not None:
        if options.frames:
            limit_process()
        replay = read_replay(options.replay)
        config = replay.config(trust)
        with failures_as_sentences(config.game):
            _show_replay(replay, config, options)
        return
    run_dir = RunDir(options.run_dir)
    config, trust = run_dir.read_trusted_config(trust)
    with failures_as_sentences(config.game), ExitStack() as until_done:
        _play(options, config, trust, run_dir, until_done)


def _play(
    options: argparse.Namespace, config: Config, trust: Trust, run_dir: RunDir, until_done: ExitStack
) -> None:  # fmt: skip
    make_game = turn_game(config, trust)
    spec = check_turn_game(make_game, config)
    replays = None if options.replays is None else ReplayFolder(options.replays, game_settings(config))
    seed = random.SystemRandom().randrange(SEEDS) if options.seed is None else options.seed
    played = RecordedGame(make_game(), seed)
    if callable(close := getattr(played.game, "close", None)):
        until_done.callback(close)
    piped = options.piped and options.person is not None
    screen = PipedScreen(played.game, options.person) if piped else Screen(played.game.styles)
    table = _Table(options, config, trust, run_dir, played.game, screen, until_done)
    players = table.players(options.contestants, options.person)
    seats = ", ".join(f"seat {seat} {player.name}" for seat, player in enumerate(players))
    screen.say(f"{spec.name}, seed {seed}: {seats}")
    GameLoop(played, players, screen, options.person, _pause(screen, options)).run()
    if replays is not None:
        path = replays.save(played.game, seed, seed, [player.name for player in players], played.turns)
        screen.say(f"written: {path}")


class _Table:
    """Builds the players of a game and closes them after it."""

    def __init__(
        self, options: argparse.Namespace, config: Config, trust: Trust, run_dir: RunDir, game: TurnGame,
        screen: Screen, until_done: ExitStack,
    ) -> None:  # fmt: skip
        self._options = options
        self._config = config
        self._trust = trust
        self._run_dir = run_dir
        self._game, self._spec = game, game.spec
        self._screen = screen
        self._until_done = until_done
        self._line: ServerLine | None = None
        self._policies: list[str] = []  # a session's env is its policy's place here

    def players(self, contestants: Sequence[Contestant], person: int | None) -> list[TerminalPlayer]:
        """[seats]: the person, and the contestants in order at the other seats. Raises ConfigError."""
        seats = self._spec.seats
        if person is not None and not 0 <= person < seats:
            known = f"the seats 0 to {seats - 1}" if seats > 1 else "one seat, 0"
            raise ConfigError(f"{self._spec.name} has {known}; got --seat {person}.")
        others = [seat for seat in range(seats) if seat != person]
        if not others and any(each.bot for each in contestants):
            raise ConfigError(f"{self._spec.name} has one seat and no opponents; leave --opponent out.")
        if others and len(contestants) > len(others):
            raise ConfigError(
                f"{self._spec.name} has {_seats(len(others))} for {len(contestants)} players; name fewer of them."
            )
        if others and not contestants:
            raise ConfigError(
                f"{self._spec.name} has {_seats(len(others))} without a player. Name a --checkpoint, or an --opponent: "
                f"{self._kinds()}."
            )
        by_seat = {seat: contestants[min(place, len(contestants) - 1)] for place, seat in enumerate(others)}
        return [self._person(seat) if seat == person else self._player(by_seat[seat], seat) for seat in range(seats)]

    def _kinds(self) -> str:
        return ", ".join(scripted_players(self._config, self._trust))

    def _player(self, contestant: Contestant, seat: int) -> TerminalPlayer:
        if contestant.policy:
            watched = self._screen if self._options.person is None else None
            return PolicyPlayer(
                contestant.label, self._advisor(contestant.policy, seat, points=contestant.points_of_value), watched
            )
        factories = scripted_players(self._config, self._trust)
        if contestant.bot not in factories:
            raise ConfigError(
                f"The game {self._config.game} has no opponent {contestant.bot}; expected one of {self._kinds()}."
            )
        player = BotPlayer(contestant.label, factories[contestant.bot]())
        self._until_done.callback(player.close)
        return player

    def _person(self, seat: int) -> TerminalPlayer:
        adviser = self._options.adviser
        if not adviser:
            return Person(self._screen, None)
        worlds = 0 if self._config.learner.normalize_rewards or not draws_worlds(self._game, seat) else HINT_WORLDS
        return Person(self._screen, self._advisor(adviser, seat, worlds))

    def _advisor(self, policy: str, seat: int, worlds: int = 0, points: float | None = None) -> Advisor:
        """`worlds`, `points` of a value: of the search of a policy without a memory, beside the configuration."""
        if self._line is None:
            self._line = ServerLine(_connected(self._config, self._run_dir, self._spec))
            self._until_done.callback(self._line.close)
        if policy not in self._policies:
            self._policies.append(policy)
        greedy = not self._options.sample
        search, remembers = self._config.search, policy in self._options.remembering
        if self._config.learner.algorithm == "alphazero":
            return PolicySearch(self._line, policy, search, self._spec, greedy=greedy, seed=seat)
        if search.worlds and remembers:
            raise ConfigError(f"{policy} has a memory (LSTM or GRU); search.worlds is for networks without one.")
        if (worlds := search.worlds or worlds) and not remembers:
            search = msgspec.structs.replace(search, worlds=worlds)
            points = self._config.points_of_value if points is None else points
            return PolicyRollouts(self._line, policy, search, points_of_value=points)
        return PolicySession(self._line, policy, self._policies.index(policy), seat, greedy=greedy)


def _seats(number: int) -> str:
    return "1 seat" if number == 1 else f"{number} seats"


def _connected(config: Config, run_dir: RunDir, spec: GameSpec) -> InferenceClient:
    client = InferenceClient(
        run_dir.own_endpoint(config.server.endpoint), name=f"terminal-{os.getpid()}", spec=spec,
        keys=client_keys(Path(config.server.curve_keys)) if config.server.curve_keys else None,
    )  # fmt: skip
    client.connect(CONNECT_SEC)
    return client


def _pause(screen: Screen, options: argparse.Namespace) -> Callable[[], None]:
    """After a turn: in a game that is watched, a delay or a line of input; with a person at a seat, nothing."""
    if options.person is not None:
        return lambda: None
    if options.delay is not None:
        return lambda: time.sleep(options.delay)

    def wait_for_enter() -> None:
        if screen.interactive:
            with contextlib.suppress(EOFError):
                screen.ask("Enter")

    return wait_for_enter


def _show_replay(replay: Replay, config: Config, options: argparse.Namespace) -> None:
    """Raises ConfigError where the game does not play as it was recorded."""
    game = turn_game(config, Trust(values=values_to_trust(config)))()
    with ExitStack() as until_done:
        if callable(getattr(game, "close", None)):
            until_done.enter_context(closing(game))  # type: ignore[type-var]
        screen = FrameScreen(game) if options.frames else Screen(game.styles)
        if game.spec.seats != len(replay.players):
            raise ConfigError(f"The replay has {len(replay.players)} seats, {game.spec.name} {game.spec.seats}.")
        played = RecordedGame(game, replay.seed)
        screen.say(replay.headline)
        try:
            pause = (lambda: None) if options.frames else _pause(screen, options)
            ReplayLoop(played, replay.turns, replay.players, screen, pause).run()
        except IllegalActionError as error:
            raise ConfigError(
                f"The replay does not fit the game: turn {len(played.turns)} is refused, {error}. It was recorded with "
                "other rules, or changed."
            ) from None
        if [float(each) for each in game.returns()] != replay.returns:
            raise ConfigError(
                f"The replay was recorded with the returns {replay.returns}; played again they are "
                f"{list(game.returns())}. The game has other rules now."
            )
        if isinstance(screen, FrameScreen):
            sys.stdout.write(msgspec.json.encode(screen.frames).decode())


if __name__ == "__main__":
    sys.exit(main())
