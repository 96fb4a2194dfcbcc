"""`simul init`: a folder with a game, a network and a configuration to start from."""

from __future__ import annotations

import argparse
import importlib.util
import keyword
from pathlib import Path

from simul.common.errors import ConfigError
from simul.common.runtime.installation import CONFIGS
from simul.common.runtime.terminal_text import print_text

TEMPLATE = CONFIGS / "new_game"
PLACEHOLDER = "NAME"
FILES = {  # file of the template -> what it is; config.yaml is called like the folder
    "config.yaml": "settings of the run, each with its meaning",
    "env.py": "the game: Nim against a random player",
    "network.py": "a network of your own; the configuration names it to use it",
}


def add_init(parser: argparse.ArgumentParser) -> None:
    """Add its arguments to a parser."""
    parser.add_argument("name", metavar="NAME", help="of the folder, which must not exist, and of the Python package")
    parser.set_defaults(run=_init)


def _init(options: argparse.Namespace) -> int:
    folder = Path(options.name)
    for path, what in write_new_game(folder):
        print_text(f"wrote {path!s:{2 * len(folder.name) + 12}}  {what}")
    print_text(f"Next: simul up {folder / folder.name}.yaml")
    return 0


def write_new_game(folder: Path) -> list[tuple[Path, str]]:
    """Write the files of a new game into `folder`, relative to the working directory; (path, what it is) of each.

    Raises:
        ConfigError: the folder exists or cannot be made, or its name is no name of a new Python package, or that of a
            shipped configuration.
    """
    from simul.common.config.loader import shipped_config

    name = str(folder)
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ConfigError(f"{name!r} cannot be the name of a Python package: expected letters, digits and _.")
    if folder.exists():
        raise ConfigError(f"{folder} exists already; choose another name. Nothing was written.")
    if shipped_config(name) != Path(name):
        raise ConfigError(f"{name} is the name of a configuration that comes with Simul; choose another one.")
    if (module := folder.with_suffix(".py")).exists():
        raise ConfigError(
            f"{module} is a Python module beside it, which would be imported in its place; choose another name, or "
            "rename that file. Nothing was written."
        )
    if importlib.util.find_spec(name) is not None:
        raise ConfigError(f"{name} is the name of an installed Python package; choose another one.")
    written = []
    try:
        folder.mkdir()
        for file, what in FILES.items():
            path = folder / (f"{name}.yaml" if file == "config.yaml" else file)
            path.write_text((TEMPLATE / file).read_text(encoding="utf-8").replace(PLACEHOLDER, name), encoding="utf-8")
            written.append((path, what))
    except OSError as error:
        raise ConfigError(f"{error.filename or folder} cannot be written: {error.strerror}.") from None
    return written
