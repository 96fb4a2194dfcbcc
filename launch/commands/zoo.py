"""`simul zoo`: the policies that are shipped, and an entry like them made out of a run."""

from __future__ import annotations

import argparse

from simul.common.runtime.terminal_text import print_text
from simul.launch.option_types import add_trust, checkpoint, count, path


def add_zoo(zoo: argparse.ArgumentParser) -> None:
    """Add its actions, and their arguments, to a parser."""
    zoo.set_defaults(run=_list)
    actions = zoo.add_subparsers(metavar="ACTION", help="without one: list what is shipped")
    listing = "list what is shipped: name, game, strength, size, date"
    actions.add_parser("list", help=f"{listing} (the default)", description=f"{listing.capitalize()}.")
    show = actions.add_parser("show", help="print the card of an entry", description="Print the card of an entry.")
    show.add_argument("name", metavar="NAME", help="of a shipped policy, or the folder of an entry (./NAME)")
    show.set_defaults(run=_show)
    make = actions.add_parser(
        "export",
        help="an entry out of a run, with a card of games that it plays",
        description="Make an entry out of a run: its weights without the optimizer, and a card of games that it plays.",
    )
    _add_export(make)
    make.set_defaults(run=_export)


def _add_export(make: argparse.ArgumentParser) -> None:
    make.add_argument(
        "origin", type=checkpoint, metavar="RUN", help="a run directory, a checkpoint, or a URL of either"
    )
    make.add_argument("folder", type=path, metavar="DIR", help="of the entry; an older entry there is replaced")
    make.add_argument(
        "--licence", default="", metavar="TEXT", help="of the weights; required, and yours to choose: MIT, say"
    )
    make.add_argument("--note", default="", metavar="TEXT", help="sentences more for the card")
    make.add_argument(
        "--opponent", dest="opponents", action="append", default=[], metavar="NAME",
        help="a scripted player that it is measured against (default: all of the game that need no other program)",
    )  # fmt: skip
    make.add_argument(
        "--games", type=count, default=1000, metavar="N", help="against each of them (default: %(default)s)"
    )
    make.add_argument(
        "--workers", type=count, default=1, metavar="W", help="processes that step them (default: %(default)s)"
    )
    make.add_argument(
        "--precision", choices=("bfloat16", "float32"), default="bfloat16", help="of the weights (default: %(default)s)"
    )
    add_trust(make)


def _list(options: argparse.Namespace) -> int:
    from simul.common.runtime.terminal_console import SafeConsole
    from simul.launch.monitoring.view.output import complain
    from simul.launch.zoo.entries import entries, table_of

    damaged: list[str] = []
    SafeConsole().print(table_of(entries(damaged.append)))
    for sentence in damaged:
        complain(f"{sentence}\n")
    return 0


def _show(options: argparse.Namespace) -> int:
    from simul.launch.zoo.entries import read_card

    print_text(read_card(options.name).rstrip())
    return 0


def _export(options: argparse.Namespace) -> int:
    from simul.common.config.trust import EVERYTHING, NOTHING
    from simul.launch.supervisor.store_process import local_checkpoints
    from simul.launch.zoo.export import Terms, export

    with local_checkpoints([options.origin]) as (origin,):
        card = export(
            origin, options.folder, Terms(options.licence, options.note), opponents=options.opponents,
            games=options.games, workers=options.workers, precision=options.precision,
            trust=EVERYTHING if options.trust else NOTHING, say=print_text,
        )  # fmt: skip
    print_text(f"written: {options.folder}\n\n{card.rstrip()}")
    return 0
