"""Recorded episodes of Gymnasium's environments as frames of text. Nothing is played again: the file has it all."""

from __future__ import annotations

from pathlib import Path

import msgspec

from simul.common.errors import ConfigError
from simul.common.runtime.decode_errors import DECODE_ERRORS
from simul.launch.monitoring.page.runs.replays import MOST_LETTERS, Frame, read_replay_file

MOST_FRAMES = 10_000
NUMBERS_A_LINE = 8


class _Step(msgspec.Struct):
    """Before an action, or after the last one. A number that is none is null."""

    observation: list[float | None] = []
    action: int | None = None
    reward: float | None = None
    legal_actions: int | None = None


class _Episode(msgspec.Struct, rename={"total": "return"}):
    """As `simul.env_worker.games.gymnasium.replays` writes it."""

    game: str
    seed: int
    steps: list[_Step]
    outcome: str
    total: float | None
    length: int


def episode_frames(path: Path) -> list[Frame]:
    """A frame for each step: the observation, then the action and its reward. Raises OSError and ConfigError."""
    try:
        episode = msgspec.json.decode(read_replay_file(path), type=_Episode)
    except DECODE_ERRORS as error:
        raise ConfigError(f"{path.name} is no episode that this version of Simul recorded: {error}.") from None
    shown = episode.steps[:MOST_FRAMES]
    frames = [Frame(_position(number, step), "", _said(step)) for number, step in enumerate(shown)]
    frames = frames or [Frame("no step was recorded", "", [])]
    frames[0].said.insert(0, f"{episode.game[:MOST_LETTERS]}, seed {episode.seed}")
    if left_out := len(episode.steps) - len(shown):
        frames[-1].said.append(f"{left_out} steps after this one are not shown")
    frames[-1].said.append(
        f"{episode.outcome[:MOST_LETTERS]} after {episode.length} decisions; return {_number(episode.total)}"
    )
    return frames


def _position(number: int, step: _Step) -> str:
    numbers = [_number(each) for each in step.observation]
    lines = [" ".join(numbers[n : n + NUMBERS_A_LINE]) for n in range(0, len(numbers), NUMBERS_A_LINE)]
    return "\n".join([f"step {number}", *(lines or ["the observation is not recorded"])])


def _said(step: _Step) -> list[str]:
    legal = [] if step.legal_actions is None else [f"{step.legal_actions} legal actions"]
    reward = "" if step.reward is None else f", reward {step.reward:g}"
    return legal + ([] if step.action is None else [f"action {step.action}{reward}"])


def _number(number: float | None) -> str:
    return "NaN" if number is None else f"{number:g}"
