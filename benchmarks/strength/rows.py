"""The rows of `make bench-strength`: a configuration, its settings, a seed and a number of decisions each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

SINGLES = ("simple_heuristics", "damage")
LEVER = 2_000_000  # decisions of a row that differs from the shipped settings by one part


@dataclass(frozen=True)
class Row:
    """One run from random weights, and what it plays afterwards.

    Attributes:
        name: of its folder.
        decisions: answered ones, and the horizon of its schedules.
        settings: beside those of the configuration, as `--set` takes them.
        opponents: scripted ones that it plays.
    """

    name: str
    decisions: int = LEVER
    seed: int = 11
    settings: tuple[str, ...] = ()
    config: str = "pokemon"
    opponents: tuple[str, ...] = SINGLES


def seeds(row: Row, *numbers: int) -> tuple[Row, ...]:
    """The same row with several seeds."""
    return tuple(replace(row, name=f"{row.name}-{number}", seed=number) for number in numbers)


TEAMS = "tests/golden/pokemon/teams"  # two or more of each format
ALL_BOTS = ("random", "max_base_power", *SINGLES)


def of_format(name: str, *, teams: bool = False) -> Row:
    """A row of a million decisions of another format. `teams`: both sides draw from a file of TEAMS."""
    more = (f"pokemon.teams={TEAMS}/{name}.txt",) if teams else ()
    return Row(name, 1_000_000, settings=(f"pokemon.format={name}", *more), opponents=ALL_BOTS)


def one_part(name: str, *settings: str) -> Row:
    """A row of LEVER decisions that differs from the shipped settings."""
    return Row(name, settings=settings)


def of_network(name: str, *settings: str) -> Row:
    """A short row of another network, which learns against random players alone."""
    return Row(name, 200_000, settings=("opponents=random:1.0", *settings), opponents=("random", "max_base_power"))


TABLES: Mapping[str, tuple[Row, ...]] = {
    "shipped": (
        *seeds(Row("5m", 5_000_000), 11, 12, 13),
        Row("20m", 20_000_000),
    ),
    "formats": (
        *map(of_format, ("gen1randombattle", "gen4randombattle", "gen9randomdoublesbattle")),
        of_format("gen9championsvgc2026regmb", teams=True),
        of_format("gen9bssregi", teams=True),
    ),
    "ablation": (
        one_part("shipped"),
        one_part("no-memory", "server.zero_state=true"),
        one_part("no-damage", "pokemon.damage_attackers=0"),
        one_part("no-shaping", "pokemon.rewards.pokemon_count=0", "pokemon.rewards.hp_delta=0"),
        one_part("no-past", "opponents=self:0.9,random:0.04,max:0.03,heuristics:0.03"),
        one_part("no-sets", "pokemon.set_knowledge=false"),
        one_part("unroll-16", "learner.unroll_length=16"),
        one_part("unroll-64", "learner.unroll_length=64"),
        one_part("steps-2x8", "learner.epochs=2", "learner.minibatches=8"),
        one_part("steps-4x8", "learner.minibatches=8"),
        one_part("wide", "network.options.entity=96", "network.options.hidden=384"),
    ),
    "networks": (
        of_network("lstm"),
        of_network("gru", "network.options.memory=gru"),
        of_network("memoryless", "network.options.memory=none"),
        of_network("lstm-attention", "network.options.attention=1"),
        of_network("mlp_gru", "network.name=mlp_gru"),
        of_network("attention", "network.name=attention", "network.options.entities=[own, foe, move]"),
    ),
}  # fmt: skip
