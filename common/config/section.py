"""Base class of every section of the configuration, the types of their numbers, and the keys above the sections."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Positive = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[int, Meta(ge=0)]
MOST_DECISIONS = 10**15
Decisions = Annotated[int, Meta(ge=0, le=MOST_DECISIONS)]
PositiveDecisions = Annotated[int, Meta(ge=1, le=MOST_DECISIONS)]
Plies = Annotated[int, Meta(ge=0, le=1000)]
Few = Annotated[int, Meta(ge=1, le=1024)]  # processes, threads
Many = Annotated[int, Meta(ge=1, le=10**6)]  # of things that take memory each
Port = Annotated[int, Meta(ge=0, le=65535)]
NonEmptyText = Annotated[str, Meta(min_length=1)]
PositiveFloat = Annotated[float, Meta(gt=0.0)]
NonNegativeFloat = Annotated[float, Meta(ge=0.0)]


class Names(Enum):
    """Marks a key whose value can name what is run; `simul.common.config.trust` says when that needs trust."""

    CODE = "code"  # module:NAME; without a colon, what Simul or an installed package registers. Or several, or keys
    PROGRAM = "program"  # any value that is not empty: a command line, or always module:NAME


class ArgumentsOf(NamedTuple):
    """Marks the keyword arguments of what the key `callable` names."""

    callable: str


CodeName = Annotated[str, Names.CODE]
CodeNames = Annotated[tuple[str, ...], Names.CODE]
SharesOfCode = Annotated[dict[str, Share], Names.CODE]  # by module:NAME
ProgramName = Annotated[str, Names.PROGRAM]

Rule = tuple[tuple[str, ...], str]  # (dotted paths that the rule reads, the first is reported; sentence)


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every section: frozen, unknown keys are errors."""


class RunConfig(Section, frozen=True):
    """Which game is run, and where: the keys above the sections."""

    game: CodeName = "gymnasium"  # a name of `simul.common.config.games`, or module:Class of a game of one's own
    game_options: Annotated[dict[str, Any], ArgumentsOf("game")] = {}  # keyword arguments of module:Class
    run_dir: NonEmptyText = "runs/default"
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 1
    stop_after_decisions: Decisions = 0  # 0: until Ctrl-C
