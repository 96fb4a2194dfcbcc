"""The layer that corrects poke-env: what it says of itself, and what it takes from the simulator."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from simul.env_worker.games.pokemon.battle_view.corrections import CORRECTED, passed_effects

from simul.env_worker.games.pokemon.install.folder import HOST_FOLDER
from simul.env_worker.games.pokemon.install.node import find_node

DOCS = Path(__file__).parents[6] / "docs" / "pokemon.md"
# Conditions of the simulator that have another name than poke-env's effect.
BINDING = """
bind clamp firespin gmaxcentiferno gmaxsandblast infestation magmastorm sandtomb snaptrap thundercage whirlpool wrap
"""
CONDITIONS = {f"perish{n}": "perishsong" for n in range(4)} | dict.fromkeys(BINDING.split(), "partiallytrapped")


def test_the_docs_list_every_correction():
    rows = [line for line in DOCS.read_text(encoding="utf-8").split("\n") if line.startswith("| `")]
    for correct in set(CORRECTED.values()):
        told = " ".join((correct.__doc__ or "").split()).removesuffix(".")
        if told:
            lines, _, fault = told.partition(": ")
            assert f"| {lines} | {fault.replace('Pokemon', 'Pokémon')} |" in rows


def test_baton_pass_hands_over_what_the_simulator_copies():
    names = sorted({effect.name.replace("_", "").lower() for gen in (4, 9) for effect in passed_effects(gen)})
    ids = sorted({CONDITIONS.get(name, name) for name in names})
    script = """
        const { Dex } = require(process.argv[1]);
        const ids = JSON.parse(process.argv[2]);
        const copies = gen => ids.filter(id => !Dex.forGen(gen).conditions.getByID(id).noCopy);
        console.log(JSON.stringify([1, 2, 3, 4, 5, 6, 7, 8, 9].map(copies)));
    """
    package = HOST_FOLDER / "node_modules" / "pokemon-showdown"
    done = subprocess.run(
        [find_node().path, "--eval", script, package, json.dumps(ids)], capture_output=True, check=True
    )
    for gen, copied in enumerate(json.loads(done.stdout), start=1):
        if gen == 1:  # no Baton Pass
            continue
        ours = {CONDITIONS.get(name, name) for name in (e.name.replace("_", "").lower() for e in passed_effects(gen))}
        assert ours == set(copied), gen
