"""`python -m benchmarks.strength.publish RUN NAME COMMAND`: the policy of a run as zoo/NAME, measured on the very file.

    python -m benchmarks.strength.publish runs/strength/5m-11/run pokemon "simul up pokemon --set seed=11 ..."

Weights become bfloat16, the optimizer is left out, and the card says how strong the file is, how it was made, and what
its limits are. An older entry is replaced.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.torch import save

from benchmarks.harness.report import conditions, markdown_table
from benchmarks.learn_check import Failed, simul
from benchmarks.strength.main import GAMES, LIMIT_SEC
from simul.common.config.checkpoint_folder import new_folder
from simul.common.config.checkpoint_meta import (
    META_FILE,
    WEIGHTS_FILE,
    CheckpointMeta,
    checkpoint_folders,
    read_meta,
    read_verified,
)
from simul.common.config.zoo import CARD, PREFIX, ZOO
from simul.common.nets.io import bytes_to_state, fingerprint

MOST_BYTES = 4 << 20
RESULTS = "results.json"  # {opponent: {"win_rate": ..., "wilson_95": [low, high], "battles": n}}; mean returns likewise


def main() -> int:
    """Exit code 0; 1 where the file is too large or a match failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run directory")
    parser.add_argument("name", help="of the entry")
    parser.add_argument("command", help="that trained it, for the card")
    parser.add_argument("--opponent", nargs="*", default=["max_base_power", "simple_heuristics", "damage"])
    parser.add_argument("--games", type=int, default=GAMES, help="against each (default: %(default)s)")
    parser.add_argument("--commit", default="", help="that trained it (default: this tree's)")
    parser.add_argument("--note", default="", help="a sentence more for the card: where the set data is from, say")
    options = parser.parse_args()
    newest = checkpoint_folders(options.run / "checkpoints")[0]
    meta, folder = read_meta(newest), ZOO / options.name
    weights = lowered(read_verified(newest, meta, WEIGHTS_FILE))
    if len(weights) > MOST_BYTES:
        sys.stderr.write(f"{len(weights):,} bytes of weights; an entry has at most {MOST_BYTES:,}.\n")
        return 1
    with new_folder(folder) as aside:
        (aside / WEIGHTS_FILE).write_bytes(weights)
        kept = msgspec.structs.replace(meta, files={WEIGHTS_FILE: fingerprint(weights)}, milestone=True)
        (aside / META_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
    try:
        results = {name: match(options.name, name, options.games) for name in options.opponent or [""]}
    except Failed as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    (folder / RESULTS).write_text(json.dumps(results, indent=2) + "\n")
    (folder / CARD).write_text(card(options.name, meta, options.command, options.commit, results, options.note))
    return 0


def lowered(data: bytes) -> bytes:
    """A safetensors file in bfloat16; numbers that are not floating stay."""
    state = bytes_to_state(data)
    low: bytes = save({name: value.bfloat16() if value.is_floating_point() else value for name, value in state.items()})
    return low


def match(entry: str, opponent: str, games: int) -> dict[str, Any]:
    """The entry's greedy games; `opponent` "": a game for one. Raises Failed."""
    against = ["--opponent", opponent] if opponent else []
    log = Path(os.devnull)
    wanted = ["eval", "--checkpoint", f"{PREFIX}{entry}", *against, "--games", str(games), "--workers", "2", "--json"]
    result = json.loads(simul(wanted, log, LIMIT_SEC))
    names = ("win_rate", "wilson_95", "episodes") if opponent else ("mean_return", "t_95", "episodes")
    return {name: result[name] for name in names}


def card(
    name: str, meta: CheckpointMeta, command: str, commit: str, results: Mapping[str, Mapping[str, Any]], note: str
) -> str:  # fmt: skip
    """What a person must know before using the entry, as Markdown."""
    of_matches = "" not in results
    facts: Sequence[tuple[str, str]] = (
        ("game", meta.spec.described()),
        ("network", f"{meta.network.name}, {json.dumps(meta.network.options)}"),
        ("trained", f"from random weights, {meta.decisions:,} decisions, seed {meta.seed}"),
        ("command", f"`{command}`"),
        ("commit", commit or conditions()["commit"].rstrip("+")),
        ("measured", f"{datetime.now(UTC):%Y-%m-%d}, greedy{', mirrored battles' * of_matches}, on this very file"),
        ("licence", "that of Simul"),
    )
    rows = [(*([opponent] if of_matches else []), *_figures(result)) for opponent, result in results.items()]
    heads = (*(["against", "won"] if of_matches else ["mean return"]), "95%", "games")
    about = "\n".join(f"- {key}: {value}" for key, value in facts)
    use = f"`simul eval --checkpoint {PREFIX}{name}`, `simul play`, `simul serve` and `simul up --from` take it."
    limits = "It knows this game and this version of the encoder only, and has not been measured against people."
    figures = markdown_table(heads, rows, text_columns=int(of_matches))
    return f"# {PREFIX}{name}\n\n{about}\n\n{figures}\n\n{limits} {note}".rstrip() + f"\n\n{use}\n"


def _figures(result: Mapping[str, Any]) -> tuple[str, str, str]:
    mean = result.get("win_rate", result.get("mean_return"))
    low, high = result.get("wilson_95") or result["t_95"]
    return f"{mean:.3f}", f"[{low:.3f}, {high:.3f}]", f"{result['episodes']:,}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
