"""Counting of sequences, against games whose counts are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from simul.common.config.loader import config_from_tree, load_config
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError
from simul.common.protocol.specs import GameSpec
from simul.env_worker.games.base.turn_game import CHANCE, TurnGame
from simul.env_worker.games.loading import turn_game
from simul.env_worker.perft import count_sequences, main


class Countdown(TurnGame):
    """Take 1 to 3 of what is left; who takes the last ends the game. `seats` of 2 act at once."""

    spec = GameSpec("countdown", 1, 4, seats=2)

    def __init__(self, left: int = 4, both: bool = False, chance: bool = False) -> None:
        self.left, self.both, self.chance = left, both, chance

    def reset(self, seed: int) -> None:
        pass

    def acting(self) -> Sequence[int]:
        if self.left <= 0:
            return ()
        return (CHANCE,) if self.chance else (0, 1)[: 1 + self.both]

    def observation(self, seat: int) -> np.ndarray:
        return np.zeros(1, np.float32)

    def legal_actions(self, seat: int) -> np.ndarray:
        return np.arange(1, min(3, self.left) + 1)

    def apply(self, actions: Mapping[int, int]) -> None:
        self.left -= sum(actions.values())

    def returns(self) -> Sequence[float]:
        return [0.0, 0.0]


class Broken(Countdown):
    """Raises at the first action."""

    def apply(self, actions: Mapping[int, int]) -> None:
        raise KeyError("the pile")


def test_sequences_are_counted_and_shorter_games_are_not():
    assert [count_sequences(Countdown(4), depth) for depth in range(1, 6)] == [3, 6, 4, 1, 0]
    assert count_sequences(Countdown(9), 3) == 27


def test_seats_that_act_at_once_take_one_joint_action():
    """Nine pairs of actions; of those, (1, 1), (1, 2) and (2, 1) leave something: 2 x 2, 1 and 1 pairs."""
    assert [count_sequences(Countdown(4, both=True), depth) for depth in (1, 2)] == [9, 6]


def test_chance_is_refused_by_name():
    with pytest.raises(ConfigError, match="The game countdown has chance events; perft counts games without chance"):
        count_sequences(Countdown(chance=True), 2)


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["perft", *arguments])
    code = main()
    return code, *capsys.readouterr()


def test_a_line_for_each_depth(capsys, monkeypatch):
    assert run(capsys, monkeypatch, "blokus", "2", "--set", "blokus.variant=classic") == (0, "1 58\n2 3364\n", "")
    assert run(capsys, monkeypatch, "blokus", "1", "--set", "blokus.variant=duo") == (0, "1 414\n", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["pokemon", "1"], "simul: The game pokemon is not a simul.TurnGame, which alone can be played move by move."),
        (["blokus", "0"], "simul: DEPTH is the number of actions of a sequence, at least 1; got 0."),
        (["blokus", "1", "--set", "blokus.players=3"], "Duo is for two players, got 3"),
        (["blokus", "1", "--set", "blokus.variant=dou"], "duo"),
        (
            ["blokuss", "1"],
            "simul: The configuration blokuss cannot be read: No such file or directory; did you mean blokus?",
        ),
        (
            ["examples.custom_game:TicTacToe", "2", "--set", "game_options.size=4"],
            "simul: The game examples.custom_game:TicTacToe does not work: TypeError: TicTacToe() takes no arguments.",
        ),
        (
            [f"{__name__}:Broken", "2"],
            f"simul: The game {__name__}:Broken failed: tests/unit/env_worker/test_perft.py:",
        ),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence, capsys, monkeypatch):
    code, printed, error = run(capsys, monkeypatch, *arguments)
    assert code == 2
    assert printed in ("", "1 3\n"), "what was counted before"
    assert sentence in error
    assert "Traceback" not in error


def test_a_game_of_ones_own_is_built_by_its_class_and_options():
    config = config_from_tree({"game": f"{__name__}:Countdown", "game_options": {"left": 7}}, "test")
    assert turn_game(config, EVERYTHING)().left == 7  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"The game gymnasium is not a simul\.TurnGame"):
        turn_game(load_config("cartpole"))
