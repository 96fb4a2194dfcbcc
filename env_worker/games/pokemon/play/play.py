"""The agent on a Showdown server: `simul play` starts `python -m simul.env_worker.games.pokemon.play.play`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
from poke_env import AccountConfiguration
from poke_env.concurrency import POKE_LOOP

from simul.common.client.client import InferenceClient
from simul.common.config.games.pokemon import LOCAL, PokemonConfig
from simul.common.config.schema import Config
from simul.common.config.trust import EVERYTHING, NOTHING, Trust
from simul.common.errors import ERR_NO_SESSION, ConfigError, InferenceError, SimulError
from simul.common.protocol.messages import LEARNER_POLICY
from simul.common.role.lifecycle import StopFlag
from simul.common.role.run_directory import RunDir
from simul.common.runtime.intervals import wilson
from simul.common.runtime.terminal_text import LINES, print_text, printable
from simul.common.transport import client_keys
from simul.env_worker.games.pokemon.formats.spec import pokemon_spec
from simul.env_worker.games.pokemon.formats.tables import configured_tables
from simul.env_worker.games.pokemon.formats.team_draws import TeamSource, open_teams
from simul.env_worker.games.pokemon.host.follower import Follower, following_keeper
from simul.env_worker.games.pokemon.host.node_host import NodeHost
from simul.env_worker.games.pokemon.install.node import find_node
from simul.env_worker.games.pokemon.play.agent import AgentPlayer
from simul.env_worker.games.pokemon.play.async_bridge import AsyncBridge
from simul.env_worker.games.pokemon.play.guard import login
from simul.env_worker.games.pokemon.showdown.address import account, is_local, server_at
from simul.env_worker.games.pokemon.showdown.local_server import local_server
from simul.env_worker.games.pokemon.source.own_code import OwnCode, own_code
from simul.env_worker.replays import make_folder

SILENT_SEC = 60.0  # longest silence of the inference server
WAIT_SEC = 0.5
LEAVE_SEC = 5.0
SHOW_EVERY_SEC = 5.0


class PlayLoop:
    """The main thread's loop: serves the agent's decisions through the inference server."""

    def __init__(self, agent: AgentPlayer, bridge: AsyncBridge, client: InferenceClient, *, quiet: bool) -> None:
        self._agent = agent
        self._bridge = bridge
        self._client = client
        self._quiet = quiet
        self._heard_at = time.monotonic()
        self._shown = ""

    def serve(self, work: Coroutine[Any, Any, None], stop: StopFlag) -> None:
        """Run until `work` is done or `stop` is set. Raises PlayEnded, InferenceError."""
        future: Future[None] = asyncio.run_coroutine_threadsafe(work, POKE_LOOP)
        show_at = time.monotonic() + SHOW_EVERY_SEC
        while not stop and not future.done():
            self.turn()
            if time.monotonic() >= show_at:
                show_at += SHOW_EVERY_SEC
                self._show()
        if future.done():
            future.result()
        else:
            future.cancel()

    def turn(self) -> None:
        """Pass decisions and actions on. Raises InferenceError where the server refuses a decision or is silent."""
        decisions = self._bridge.take_decisions()
        if decisions:
            self._client.submit(decisions)
        replies = self._client.poll()
        if replies.lost:
            self._bridge.fail_sessions()
        self._bridge.resolve_actions(replies.actions)
        for failure in replies.failures:
            if failure.code != ERR_NO_SESSION:
                raise InferenceError(failure.code, failure.message)
        self._bridge.fail_sessions((f.env, f.seat, f.episode) for f in replies.failures)
        self._watch_server()
        if not decisions and not replies.actions:
            self._client.poller.set_files([self._bridge.fileno()])
            self._client.poller.wait(WAIT_SEC)

    def close(self) -> None:
        """Forfeit running battles, disconnect from Showdown and from the inference server."""
        leaving = asyncio.run_coroutine_threadsafe(self._agent.leave(LEAVE_SEC), POKE_LOOP)
        while not leaving.done():
            with contextlib.suppress(InferenceError):  # already reported
                self.turn()
        self._client.close()

    def _watch_server(self) -> None:
        now = time.monotonic()
        if self._client.connected:
            self._heard_at = now
        elif now - self._heard_at > SILENT_SEC:
            raise InferenceError("ERR_TIMEOUT", f"the inference server has been silent for {SILENT_SEC:.0f} s")

    def _show(self) -> None:
        tally = self._agent.tally
        running = len(self._agent.running())
        line = f"{_count(running, 'battle')} running, {tally['wins']} won, {tally['losses']} lost"
        if not running and not tally.total():
            line = f"waiting for a battle in {self._agent.format}"
        if not self._quiet and line != self._shown and self._agent.ps_client.logged_in.is_set():
            sys.stderr.write(printable(line, LINES) + "\n")
            self._shown = line


def report(agent: AgentPlayer, *, as_json: bool) -> str:
    """The record so far. The rate is that of battles that were played out; a second one has those ended early, too."""
    back, early = agent.rejoins, agent.early
    tally = {name: agent.tally[name] for name in ("wins", "losses", "ties")}
    games = sum(tally.values())
    cut_off = sum(not battle.given_up for battle in agent.running())
    low, high = wilson(tally["wins"], games)
    rate = tally["wins"] / games if games else None
    ended = games + early.total()
    rate_of_all = (tally["wins"] + early["wins"]) / ended if ended else None
    if as_json:
        result = {
            "battles": games, **tally, "win_rate": rate, "wilson_95": (low, high),
            "early_wins": early["wins"], "early_losses": early["losses"], "win_rate_with_early": rate_of_all,
            "given_up": agent.given_up, "unreadable": len(agent.unreadable), "cut_off": cut_off,
            "defaults": agent.defaulted,
            "rejoined": back.rejoined, "started_over": back.started_over, "vanished": back.vanished,
        }  # fmt: skip
        return msgspec.json.encode(result).decode() + "\n"
    words = f"{games} battles: " + ", ".join(f"{count} {name}" for name, count in tally.items())
    if rate is not None:
        words += f"; win rate {rate:.3f} (95%: {low:.3f} to {high:.3f})"
    if early:
        words += (
            f"\n{early.total()} more ended by forfeit or inactivity: {early['wins']} wins, {early['losses']} losses"
        )
        words += f"; with them the win rate is {rate_of_all:.3f}."
    if agent.given_up:
        words += f"\n{agent.given_up} more were forfeited when play was stopped."
    if agent.unreadable:
        words += f"\n{len(agent.unreadable)} more were forfeited: what the server sent could not be followed"
        words += f" (of the last, {agent.unreadable[-1]})."
    if cut_off:
        words += f"\n{cut_off} more were cut off."
    if back.vanished:
        words += f"\n{back.vanished} more were gone when the connection was back."
    if back.rejoined:
        words += f"\nAfter lost connections battles were joined again {back.rejoined} times"
        words += f", {back.started_over} times with a policy that began anew." if back.started_over else "."
    if agent.defaulted:
        words += f"\n{agent.defaulted} choices were left to the server, which refused each of ours."
    return words + "\n"


CONNECT_SEC = 20.0


def main() -> int:
    """Exit code 0: played, or stopped by Ctrl-C; 2: an error, printed as a sentence."""
    options = _parser().parse_args()
    stop = StopFlag(options.parent).install()
    try:
        config, trust = _config(RunDir(options.run_dir), EVERYTHING if options.trust else NOTHING)
        us, own = _account(options.username), _observation(config.pokemon, trust)
        if options.replays is not None:
            make_folder(options.replays)
        with contextlib.ExitStack() as until_done:
            if options.server == LOCAL:
                _say(options, "starting a Showdown server on this machine")
                server = until_done.enter_context(local_server(find_node().path, options.port))
                options.server, options.own = server.url, server.page
            teams = until_done.enter_context(_teams(config.pokemon, trust))
            _play(options, config, own, teams, us, stop)
    except SimulError as error:
        sys.stderr.write(printable(f"simul play: {error}\n", LINES))
        return 2
    return 0


def _account(username: str | None) -> AccountConfiguration:
    name = f"Simul {random.SystemRandom().randrange(10**6):06}" if username is None else username
    return account(name, os.environ.get("SIMUL_SHOWDOWN_PASSWORD"))


def _play(
    options: argparse.Namespace, config: Config, own: OwnCode | None, teams: TeamSource | None,
    us: AccountConfiguration, stop: StopFlag,
) -> None:  # fmt: skip
    server = server_at(options.server)
    _say(options, "connecting to the inference server")
    client = _client(config, own, RunDir(options.run_dir), us.username)
    bridge = AsyncBridge(POKE_LOOP)
    follower = _follower(config.pokemon, lambda line: _say(options, line))
    _say(options, f"connecting to the Showdown server at {server.websocket_url}")
    agent = AgentPlayer(
        us, server, bridge, follower, battle_format=config.pokemon.format, concurrency=options.concurrency,
        paced=not is_local(server), timer=options.timer, teams=teams, policy=options.policy,
        greedy=not options.sample, replays=str(options.replays) if options.replays else "",
        replay_player=options.replay_player,
        patience_sec=options.patience, own=own,
        login=login(
            options.patience, own=bool(options.own),
            begun=lambda: _say(options, f"logging in as {us.username}"),
            done=lambda: _say(options, _invitation(options, us.username, config.pokemon.format)),
        ),
    )  # fmt: skip
    table = PlayLoop(agent, bridge, client, quiet=options.json)
    try:
        if options.challenge:
            table.serve(agent.challenge(options.challenge, options.battles), stop)
        else:
            table.serve(agent.accept(options.accept), stop)
    finally:
        table.close()
        if agent.battles or options.json:
            print_text(report(agent, as_json=options.json).rstrip("\n"))


def _invitation(options: argparse.Namespace, name: str, format_name: str) -> str:
    """The line printed after the login, from when others can challenge this account."""
    doing = (
        f"challenges {options.challenge}" if options.challenge else f"waits for {_count(options.accept, 'challenge')}"
    )
    lines = [f"{name} is logged in, {doing} ({format_name})."]
    if options.own:
        what = "" if options.challenge else f" and challenge {name}"
        lines.append(f"Open {options.own}{what}: that Showdown server runs for as long as this plays.")
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="simul play")
    parser.add_argument("--run-dir", type=Path, required=True)
    parser.add_argument("--parent", type=int, default=0)
    parser.add_argument("--server", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--challenge")
    parser.add_argument("--accept", type=int)
    parser.add_argument("--battles", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--username")
    parser.add_argument("--policy", default=LEARNER_POLICY)
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--replays", type=Path)
    parser.add_argument("--replay-player", default="own")
    parser.add_argument("--no-timer", dest="timer", action="store_false")
    parser.add_argument("--patience", type=float, default=60.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--trust", action="store_true")
    parser.set_defaults(own="")  # browser address of the server that this process started
    return parser


def _config(run_dir: RunDir, trust: Trust = NOTHING) -> tuple[Config, Trust]:
    """The configuration of the run, and the trust with which what it names may be run. Raises ConfigError."""
    config, trust = run_dir.read_trusted_config(trust)
    if config.game != "pokemon":
        raise ConfigError(f"The checkpoint plays {config.game}; only Pokémon can be played on a Showdown server.")
    if "bo3" in config.pokemon.format:
        raise ConfigError(
            f"The checkpoint plays {config.pokemon.format}, a best of three; `simul play` plays single battles: "
            f"train in {config.pokemon.format.removesuffix('bo3')}."
        )
    return config, trust


def _observation(config: PokemonConfig, trust: Trust) -> OwnCode | None:
    """What the policy observes beside the built-in row, or instead of it; None: nothing. Raises ConfigError."""
    return own_code(msgspec.structs.replace(config, reward=""), trust)


def _client(config: Config, own: OwnCode | None, run_dir: RunDir, name: str) -> InferenceClient:
    spec = pokemon_spec(config.pokemon)
    client = InferenceClient(
        run_dir.own_endpoint(config.server.endpoint),
        name=f"play {name}",
        spec=spec if own is None else own.spec(spec),
        keys=client_keys(Path(config.server.curve_keys)) if config.server.curve_keys else None,
    )
    client.connect(CONNECT_SEC)
    return client


@contextlib.contextmanager
def _teams(config: PokemonConfig, trust: Trust) -> Iterator[TeamSource | None]:
    """Teams that pass the simulator's validator; None for a format that draws its own. Raises ConfigError."""
    if not config.teams:
        yield None
        return
    host = NodeHost(find_node().path)
    host.start()
    try:
        teams = open_teams(config, host, trust)
    finally:
        host.close()
    try:
        yield teams
    finally:
        if teams is not None:
            teams.close()


def _follower(config: PokemonConfig, say: Callable[[str], None]) -> Follower:
    """What tracks and encodes the battles, started."""
    follower = Follower(following_keeper(find_node().path, configured_tables(config)), say)
    follower.start()
    return follower


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")


def _say(options: argparse.Namespace, line: str) -> None:
    if not options.json:
        sys.stderr.write(printable(line, LINES) + "\n")


if __name__ == "__main__":
    sys.exit(main())
