"""Which settings a network refuses: asked by `simul sweep` before its first trial, whose process has no torch.

echo QUESTION | python -m simul.common.nets.settings_check     # JSON of a `Question`; prints a JSON list of sentences
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from simul.common.config.loader import load_config
from simul.common.config.trust import EVERYTHING
from simul.common.errors import ConfigError
from simul.common.nets.build import build_network
from simul.common.protocol.specs import GameSpec
from simul.common.runtime.terminal_text import print_text


class Question(msgspec.Struct, frozen=True):
    """What is asked. All of it was named on the command line, and is trusted.

    Attributes:
        spec: of the game.
        config, mode, overrides: see `load_config`.
        values: for each value the settings `KEY=VALUE` that it may stand in, above the overrides.
    """

    spec: GameSpec
    config: str
    mode: str
    overrides: tuple[str, ...]
    values: tuple[tuple[tuple[str, ...], ...], ...]


def refusals(question: Question) -> list[str]:
    """For each value "", where the network takes one of its settings, else why it refuses the first of them."""
    return [_refusal(question, settings) for settings in question.values]


def _refusal(question: Question, among: Sequence[Sequence[str]]) -> str:
    first = ""
    for settings in among:
        try:
            config = load_config(question.config, [*question.overrides, *settings], question.mode)
            if problem := config.game_section.network_problem(config.network.name):
                raise ConfigError(problem)
            build_network(config.network, question.spec, trust=EVERYTHING)
        except ConfigError as error:
            first = first or " ".join(str(error).split())
        else:
            return ""
    return first


if __name__ == "__main__":
    answer = msgspec.json.encode(refusals(msgspec.json.decode(sys.stdin.buffer.read(), type=Question)))
    print_text(f"\n{answer.decode()}")
