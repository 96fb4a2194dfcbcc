"""`simul play` and `simul watch` as a person runs them, the input through a pipe: command, server, and game."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from simul.common.config.loader import load_game
from simul.common.config.schema import Config, NetworkConfig
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError
from simul.common.runtime.installation import ROOT
from simul.env_worker.games.base.replays import RecordedGame, ReplayFolder, game_settings, read_replay
from simul.env_worker.games.loading import game_spec, scripted_players, turn_game
from simul.env_worker.terminal import __main__ as terminal
from simul.env_worker.terminal.game_loop import GameLoop
from simul.env_worker.terminal.players import BotPlayer
from simul.env_worker.terminal.screen import Screen
from simul.launch import cli
from tests.support.checkpoints import write_checkpoint
from tests.support.tired import Tired
from tests.support.waiting import PATIENCE_SEC

COMMAND = [sys.executable, "-m", "simul.launch.cli"]
TIC_TAC_TOE = "openspiel:tic_tac_toe"
TWO = "examples.custom_game:TicTacToe"


def simul(*arguments: str | Path, lines: str = "") -> subprocess.CompletedProcess[str]:
    """A command of its own process, whose input is `lines` and then ends."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=ROOT, input=lines, capture_output=True, text=True,
        timeout=2 * PATIENCE_SEC,
    )  # fmt: skip


class FirstLegal:
    """Takes the first legal action and notes its name, as a person writes it."""

    name = "person"

    def __init__(self) -> None:
        self.written: list[str] = []

    def choose(self, played: RecordedGame, seat: int) -> int:
        action = int(played.game.legal_actions(seat)[0])
        self.written.append(played.game.action_name(seat, action))
        return action


def rehearsed(config: Config, opponents: list[str], seat: int, seed: int) -> tuple[list[str], RecordedGame]:
    """What a person writes who takes the first legal action each time, and the game that comes of it."""
    played, factories, person = RecordedGame(turn_game(config)(), seed), scripted_players(config), FirstLegal()
    others = [BotPlayer(kind, factories[kind]()) for kind in opponents]
    players = [*others[:seat], person, *others[seat:]]
    GameLoop(played, players, Screen(output=io.StringIO()), seat).run()
    return person.written, played


@pytest.mark.parametrize(
    ("game", "opponents", "seat", "settings"),
    [
        ("openspiel:leduc_poker", ["random"], 0, []),
        pytest.param("blokus", ["largest_piece"], 0, [], marks=pytest.mark.slow),  # .ci/long runs it
        ("ofc", ["rule_based", "random"], 1, ["ofc.fantasyland=false"]),
    ],
)
def test_a_whole_game_against_scripted_players(game, opponents, seat, settings, tmp_path, capsys):
    if game.startswith("openspiel"):
        pytest.importorskip("pyspiel", reason="the extra [openspiel] is not installed")
    config = load_game(game, settings)
    written, played = rehearsed(config, opponents, seat, 11)
    given = [part for setting in settings for part in ("--set", setting)]
    done = simul(
        "play", "--game", game, *(part for kind in opponents for part in ("--opponent", kind)), "--seat", str(seat),
        "--seed", "11", "--replays", tmp_path, *given, lines="".join(f"{line}\n" for line in written),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert f"\nThe game is over: {'' if seat else 'seat 0 (you)'}" in done.stdout
    assert done.stdout.count(f"seat {seat}> ") == len(written), "every action was taken at once"
    (file,) = tmp_path.glob("*.json")
    replay = read_replay(file)
    assert replay.turns == played.turns
    assert replay.returns == [float(each) for each in played.game.returns()]
    terminal._run(terminal._parser().parse_args([f"--replay={file}", "--delay=0"]))  # the command: test_eval_tables.py
    shown = capsys.readouterr().out
    assert shown.count("\nseat ") > len(written)
    assert "The game is over: seat 0 " in shown


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """Of a policy with memory that plays tic-tac-toe of OpenSpiel."""
    pytest.importorskip("pyspiel", reason="the extra [openspiel] is not installed")
    return write_checkpoint(tmp_path_factory.mktemp("tic") / "000000007", game_spec(load_game(TIC_TAC_TOE)), 7)


def shares(text: str) -> list[float]:
    """The probabilities of a hint."""
    return [float(line.split("%")[0]) for line in text.splitlines() if "%  " in line]


def test_against_a_policy_with_hints_undo_and_mistakes_until_ctrl_c_ends_everything(checkpoint):
    process = subprocess.Popen(
        [*COMMAND, "play", "--checkpoint", str(checkpoint), "--seed", "5"], cwd=ROOT, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    hurry = threading.Timer(2 * PATIENCE_SEC, lambda: os.killpg(process.pid, signal.SIGKILL))
    hurry.start()
    typed = ["hint", "x(1,1)", "hint", "undo", "hint", "nonsense", "x(1,1)", "hint"]
    try:
        process.stdin.write("".join(f"{line}\n" for line in typed))
        process.stdin.flush()
        shown = ""
        while shown.count("seat 0> ") <= len(typed):  # the last prompt waits for a line
            part = process.stdout.read(1)
            assert part, (shown, process.stderr.read())
            shown += part
        family = psutil.Process(process.pid).children(recursive=True)
        assert len(family) >= 2, "a server and the game"
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate()
    finally:
        hurry.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "starting an inference server with " in errors
    assert not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in family)
    first, _, third, fourth = (part.partition("seat 0> ")[0] for part in shown.split("seat 0> hint\n")[1:])
    assert first == third, "the same position after undo"
    assert sum(shares(first)) == pytest.approx(100 * 5 / 9, abs=30)
    assert "there is no legal action 'nonsense'" in shown
    answers = [line for line in shown.splitlines() if line.startswith("seat 1 (")]
    assert len(answers) == 2
    assert answers[0] == answers[1], "a greedy policy answers the same position the same way"
    assert len(shares(fourth)) == 5
    assert "value " in fourth


@pytest.mark.slow  # .ci/long runs it
def test_two_policies_and_a_bot_are_watched(checkpoint, tmp_path):
    done = simul(
        "watch", "--checkpoint", checkpoint, "--checkpoint", checkpoint, "--seed", "5", "--replays", tmp_path,
        "--delay", "0",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    considered = [line for line in done.stdout.splitlines() if line.endswith(" considers")]
    assert {line.split(" (")[0] for line in considered} == {"seat 0", "seat 1"}
    assert done.stdout.count("value ") == len(considered) >= 5
    assert "The game is over: seat 0 (" in done.stdout
    replay = read_replay(next(tmp_path.glob("*.json")))
    assert len(replay.turns) == len(considered)
    assert len(set(replay.players)) == 2, "each has a label of its own"


@pytest.mark.slow  # .ci/long runs it; what the search says, tests/unit/env_worker/terminal/test_advice.py
def test_a_policy_that_was_trained_with_search_searches(tmp_path):
    pytest.importorskip("pyspiel", reason="the extra [openspiel] is not installed")
    network = NetworkConfig("mlp_lstm", {"hidden": 16, "memory": False})
    settings = "game: openspiel\nlearner: {algorithm: alphazero}\nsearch: {simulations: 8}\n"
    (tmp_path / "config.yaml").write_text(f"{settings}network: {json.dumps(msgspec.to_builtins(network))}\n")
    write_checkpoint(tmp_path / "checkpoints" / "000000003", game_spec(load_game(TIC_TAC_TOE)), 3, network)
    done = simul("play", "--checkpoint", tmp_path, "--seed", "5", lines="x(1,1)\nhint\nresign\n")
    assert done.returncode == 0, done.stderr
    hint = done.stdout.partition("seat 0> hint\n")[2].partition("seat 0> ")[0]
    assert sum(shares(hint)) == pytest.approx(100, abs=60)
    assert "value " in hint
    assert "You resigned; seat 1 (" in done.stdout


@pytest.mark.parametrize(
    ("command", "typed", "last"),
    [
        ("play", [b"4\n", b"\x04"], "You left the game after 2 turns."),
        ("watch", [b"\n"] * 9, "The game is over: seat 0 (random)"),
    ],
)
def test_in_a_terminal_there_are_colours_and_keys(command, typed, last):
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals")
    outer, inner = pty.openpty()
    game = ["--game", "examples.custom_game:TicTacToe", "--opponent", "random"]
    process = subprocess.Popen(
        [*COMMAND, command, *game, *(["--opponent", "random"] if command == "watch" else [])], cwd=ROOT, stdin=inner,
        stdout=inner, stderr=inner, start_new_session=True, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(inner)
    shown, answered = b"", 0
    hurry = threading.Timer(2 * PATIENCE_SEC, process.kill)
    hurry.start()
    try:
        with contextlib.suppress(OSError):  # the end: nothing holds the terminal any longer
            while part := os.read(outer, 4096):
                shown += part
                if shown.count(b"> ") > answered and answered < len(typed):
                    os.write(outer, typed[answered])
                    answered += 1
        assert process.wait() == 0, shown.decode()
    finally:
        hurry.cancel()
        process.kill()
        process.wait()
        os.close(outer)
    assert last in shown.decode()
    assert b"\x1b[36m" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["play", "--game", "ofcc", "--opponent", "random"],
            "The configuration ofcc cannot be read: No such file or directory; did you mean ofc?",
        ),
        (["play", "--game", "openspiel:tic_tac", "--opponent", "random"], "; did you mean tic_tac_toe?"),
        (["play", "--game", "blokus:trio", "--opponent", "random"], "expected one of"),
        (["play", "--game", "gymnasium"], "simul play` is for pokemon, openspiel"),
        (
            ["play", "--game", "pokemon", "--seat", "1"],
            "--seat is for games at a table; the policy zoo:pokemon plays pok",
        ),
        (["play", "--game", "ofc", "--accept", "3"], "--accept is for Pokémon; the policy zoo:ofc plays ofc"),
        (["play", "--game", "ofc", "--opponent", "randon"], "there is no opponent 'randon'; did you mean random?"),
        (["play", "--game", TWO], "tic-tac-toe has 1 seat without a player. Name a --checkpoint, or an --opponent"),
        (["play", "--game", TWO, "--opponent", "random", "--seat", "2"], "has the seats 0 to 1; got --seat 2"),
        (["play", "--game", TWO, "--opponent", "random", "--opponent", "random"], "has 1 seat for 2 players"),
        (["play", "--game", "blokus", "--opponent", "gtp"], "Set blokus.gtp to its path and arguments"),
        (
            ["watch"],
            "Name who plays: --checkpoint, or a GAME with --opponent, or one that the zoo has a policy for; or",
        ),
        (["watch", "--game", "blokus:classic"], "The zoo has no policy for blokus"),
        (["watch", "--replay", "nowhere.json"], "nowhere.json cannot be read: No such file"),
        (["watch", "--replay", "x", "--game", "ofc", "--seed", "3"], "with its players: leave --game, --seed out"),
        (["play", "--game", "ofc", "--battles", "3", "--no-timer"], "--battles, --no-timer are for Pokémon"),
    ],
)
def test_bad_input_is_a_sentence(arguments, says, capfd):
    assert cli.main(arguments) == 2
    words = " ".join(capfd.readouterr().err.split())
    assert says in words
    assert "Traceback" not in words


def test_a_checkpoint_of_another_game_is_refused(checkpoint, capfd):
    assert cli.main(["play", "--checkpoint", str(checkpoint), "--game", "ofc"]) == 2
    assert "plays openspiel:tic_tac_toe, not ofc. Leave --game out." in capfd.readouterr().err


def written_replay(game: str, folder: Path) -> dict:
    """Of a game of random players."""
    config = load_game(game)
    played, replays = RecordedGame(turn_game(config, EVERYTHING)(), 3), ReplayFolder(folder, game_settings(config))
    factories = scripted_players(config, EVERYTHING)
    players = [BotPlayer("random", factories["random"]()) for _ in range(played.game.spec.seats)]
    GameLoop(played, players, Screen(output=io.StringIO()), None).run()
    file = replays.save(played.game, 0, 3, [player.name for player in players], played.turns)
    return json.loads(file.read_text())


def changed_turn(number: int, **changes: int) -> Callable[[dict], None]:
    """Changes the only move of a turn."""
    return lambda replay: replay["turns"][number][0].update(changes)


REFUSED, EXPECTED = "The replay does not fit the game: turn", "expected moves of seat"


@pytest.mark.parametrize(
    ("game", "change", "says"),
    [
        (TWO, lambda replay: replay.update(returns=[5.0, -5.0]), "was recorded with the returns [5.0, -5.0]"),
        (TWO, lambda replay: replay.update(players=["alone"]), "The replay has 1 seats, tic-tac-toe 2."),
        (TWO, lambda replay: replay["turns"].insert(1, []), f"{REFUSED} 1 is refused, {EXPECTED} 1; got no move."),
        (TWO, changed_turn(0, seat=7), f"{REFUSED} 0 is refused, {EXPECTED} 0; got moves of seat 7."),
        (TWO, changed_turn(2, seat=-1), f"{EXPECTED} 0; got moves of chance."),
        (TWO, lambda replay: replay["turns"][0].extend(replay["turns"][1]), "got moves of seat 0, seat 1."),
        (TWO, lambda replay: replay["turns"].append(replay["turns"][0]), "expected no turn, as the game is over; got"),
        (
            TWO, changed_turn(0, action=99), f"{REFUSED} 0 is refused, expected a legal action of seat 0: 0, 1, 2, 3, "
            "4, 5, 6, 7, 8; got 99. It was recorded with other rules, or changed.",
        ),
        (TWO, lambda replay: replay["turns"].insert(2, replay["turns"][0]), "expected a legal action of seat 0: "),
        ("blokus", changed_turn(0, action=99999), ", ...; got 99999."),
        ("ofc", changed_turn(0, action=259), f"{REFUSED} 0 is refused, expected a legal action of seat "),
        ("ofc", changed_turn(7, action=-1), "; got -1."),
        ("openspiel:leduc_poker", changed_turn(0, action=77), "expected an event of chance: 0, 1, 2, 3, 4, 5; got 77."),
    ],
)  # fmt: skip
def test_a_replay_that_was_changed_is_refused(game, change, says, tmp_path):
    """In this process; that `simul watch` prints such a sentence and no more, test_bad_input_is_a_sentence sees."""
    if game.startswith("openspiel"):
        pytest.importorskip("pyspiel", reason="the extra [openspiel] is not installed")
    replay, file = written_replay(game, tmp_path), tmp_path / "changed.json"
    change(replay)
    file.write_text(json.dumps(replay))
    with pytest.raises(ConfigError) as refused:
        terminal._run(terminal._parser().parse_args([f"--replay={file}", "--trust"]))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "arguments",
    [["watch", "--opponent", "random", "--delay", "0"], ["play", "--seat", "1"]],
)
def test_a_game_of_ones_own_that_raises_is_a_sentence_with_its_place(arguments):
    command, *others = arguments
    done = simul(
        command, "--game", f"{Tired.__module__}:Tired", "--opponent", "random", *others, lines="list\n8\n7\n6\n5\n"
    )
    line = inspect.getsourcelines(Tired.apply)[1] + 2
    place = f"{Path(inspect.getfile(Tired)).relative_to(ROOT)}:{line}"
    assert (done.returncode, done.stderr) == (
        2, f"simul: The game {Tired.__module__}:Tired failed: {place}: RuntimeError: no more squares.\n"
    )  # fmt: skip
