"""The observation against the simulator's own state, slice by slice, over battles of all generations.

Slices, and what is approximate on purpose: tests/support/pokemon/audit/slices.py.
"""

from __future__ import annotations

import pytest

from simul.common.runtime.installation import ROOT
from tests.support.pokemon.audit import perturb
from tests.support.pokemon.audit.battles import BattleJob, audited_rows, custom_battles, random_battles
from tests.support.pokemon.audit.compare import Audit, kinds
from tests.support.pokemon.audit.slices import APPROXIMATIONS

DOUBLES = ("gen9randomdoublesbattle", "gen9doublescustomgame", "gen8doublescustomgame", "gen7doublescustomgame")
# Kinds of slices with known mistakes, as the short battles show them.
PENDING: dict[str, str] = {}
# The same, which only the long battles show.
RARE = {
    "foe.ability": "doubles: Illusion of the partner",
    "foe.moves": "moves that go on after Metronome",
    "foe.moves_pp": "moves that go on after Metronome; Pressure of a disguise",
    "own.moves_pp": "doubles: Illusion of the partner",
    "own.sleep_turns": "doubles: Illusion of the partner",
    "own.stats": "doubles: a copy of a foe whose level its disguise has shown first",
    "own.types": "Reflect Type of a Pokemon in disguise",
    "foe.types": "Reflect Type of a Pokemon in disguise",
    "foe.species": "doubles: Illusion",
    "foe.status": "doubles: Illusion of the partner",
    "foe.toxic_stage": "doubles: Illusion of the partner",
    "own_active.last_move": "moves that go on after Metronome; Dancer that a Choice item stops",
    "foe_active.last_move": "moves that go on after Metronome; Dancer that a Choice item stops; doubles: Illusion",
    "foe_active.protect_count": "doubles: Illusion of the partner; a Protect against Bide",
    "own_active.protect_count": "a Protect against Bide",
    "foe_active.boosts": "doubles: Illusion of the partner",
    "foe_active.turns_active": "doubles: Illusion of the partner",
    "own_active.turns_active": "doubles, gen 7",
    "foe_active.volatiles": "doubles, gen 8; gens 7, 8: Yawn of one that rests; gen 1: who binds faints in that turn",
    "own_active.volatiles": "gens 7, 8: Yawn of one that rests; gen 1: who binds faints in that turn",
    "foe_active.preparing": "doubles: Illusion of the partner",
    "own_side.alive": "doubles: Illusion of the partner",
    "own_side.team_hp": "doubles: Illusion of the partner",
    "own.hp": "doubles: Illusion of the partner",
    "own.fainted": "doubles: Illusion of the partner",
    "foe_side.alive": "doubles: Illusion of the partner",
    "foe.item": "doubles: Illusion of the partner",
}
KINDS = kinds()
SHORT = [
    pytest.param(kind, marks=pytest.mark.xfail(reason=PENDING[kind], strict=True) if kind in PENDING else ())
    for kind in KINDS
]
LONG = [
    pytest.param(kind, marks=pytest.mark.xfail(reason=known, strict=False) if known else ())
    for kind in KINDS
    for known in [(PENDING | RARE).get(kind, "")]
]


def battles(count: int, turns: int, first: int = 0) -> list[BattleJob]:
    """So many of each kind: random teams and custom ones of every generation, doubles."""
    jobs = []
    for gen in range(1, 10):
        jobs += random_battles(f"gen{gen}randombattle", count, first)
        jobs += custom_battles(f"gen{gen}customgame", count, first)
    for battle_format in DOUBLES:
        jobs += (random_battles if "random" in battle_format else custom_battles)(battle_format, count, first)
    return [job._replace(turns=turns) for job in jobs]


@pytest.fixture(scope="module", params=[12, pytest.param(25, marks=pytest.mark.slow)], ids=["12 turns", "25 turns"])
def audit(request: pytest.FixtureRequest) -> Audit:
    """.ci/long has the longer ones."""
    return Audit().read(audited_rows(battles(1, turns=request.param)))


@pytest.mark.parametrize("kind", SHORT)
def test_a_slice_is_as_the_simulator_has_it(audit: Audit, kind: str) -> None:
    assert audit.compared[kind] > 0
    assert not audit.wrong[kind], "\n".join(audit.examples[kind])


@pytest.fixture(scope="module")
def long_audit() -> Audit:
    return Audit().read(audited_rows(battles(20, turns=100, first=1000)))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", LONG)
def test_a_slice_over_many_battles(long_audit: Audit, kind: str) -> None:
    assert not long_audit.wrong[kind], "\n".join(long_audit.examples[kind])


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nearly_every_perturbation_of_a_slice_is_reported() -> None:
    results = perturb.Results().read(audited_rows(perturb.battles(2, turns=30)))
    missed = results.missed()
    assert {pair.kind for pair in results.rows} == set(perturb.KINDS)
    assert len(missed) <= 0.05 * len(results.rows), perturb.report(results)


def test_what_is_excused_is_named(audit: Audit) -> None:
    assert set(audit.excused) <= set(APPROXIMATIONS)
    assert audit.excused.total() > 0


def documented(section: str) -> list[list[str]]:
    """The rows of a section's table."""
    page = (ROOT / "docs" / "pokemon.md").read_text(encoding="utf-8")
    table = page.split(f"### {section}\n")[1].split("\n\n|", 1)[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.split("\n")[2:]]


def test_the_documentation_lists_the_approximations() -> None:
    rows = documented("What is approximate")
    assert {name: (slices, meaning) for name, slices, meaning in rows} == APPROXIMATIONS


def test_the_documentation_lists_the_slices_with_known_mistakes() -> None:
    slices = [name.strip("`") for _, cell, _ in documented("Known mistakes") for name in cell.split(", ")]
    assert sorted(slices) == sorted(PENDING | RARE)
