"""`python -m tests.support.calc.setup` installs Smogon's damage calculator for the tests, where it is not current."""

from __future__ import annotations

from pathlib import Path

from simul.env_worker.games.pokemon.simulator.setup_node import install_packages

CALC = Path(__file__).resolve().parent
_STAMP = CALC / "node_modules" / ".stamp"


def main() -> None:
    wanted = (CALC / "package-lock.json").read_text()
    if _STAMP.exists() and _STAMP.read_text() == wanted:
        return
    install_packages(CALC, "npm could not install @smogon/calc, which the tests compare our damage formula with")
    _STAMP.write_text(wanted)


if __name__ == "__main__":
    main()
