"""`python -m tests.support.npm_packages` installs the npm packages that only tests use, where they are not current."""

from __future__ import annotations

from pathlib import Path

from simul.env_worker.games.pokemon.install.setup_node import install_packages

SUPPORT = Path(__file__).resolve().parent
AXE = SUPPORT / "axe"
CALC = SUPPORT / "calc"
REPLAYS = SUPPORT / "replays"
_WANTED_FOR = {
    AXE: "npm could not install axe-core, whose rules the tests hold the pages to",
    CALC: "npm could not install @smogon/calc, which the tests compare our damage formula with",
    REPLAYS: "npm could not install jsdom, in which the tests open replay pages",
}


def main() -> None:
    for folder, failure in _WANTED_FOR.items():
        wanted = (folder / "package-lock.json").read_text()
        stamp = folder / "node_modules" / ".stamp"
        if stamp.exists() and stamp.read_text() == wanted:
            continue
        install_packages(folder, failure)
        stamp.write_text(wanted)


if __name__ == "__main__":
    main()
