"""The command line of the load test, checked: every mistake is one sentence."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from simul.common.errors import ConfigError
from simul.launch.option_types import add_trust, local_checkpoint, path

PRECISIONS = ("auto", "float32", "bfloat16")
T = TypeVar("T")

MOST_CLIENTS = 256
MOST_SESSIONS = 65_536


@dataclass(frozen=True)
class Options:
    """What to measure. Rates are actions a second; `rates` None: shares of what the closed loop reached.

    `clients`, `envs`, `precisions` span the closed-loop sweep; `connect` is an endpoint or a run directory.
    """

    clients: tuple[int, ...]
    envs: tuple[int, ...]
    precisions: tuple[str, ...]
    rates: tuple[float, ...] | None
    open_sessions: int
    find_max_rate: bool
    p99_ms: float
    baseline: Literal["local"] | None
    connect: str | None
    keys: Path | None
    config: Path | None
    checkpoint: Path | None
    overrides: tuple[str, ...]
    trust: bool
    out: Path
    warm_up_sec: float
    window_sec: float
    max_windows: int
    seed: int
    parent: int = 0  # the process that this one ends with


class _Parser(argparse.ArgumentParser):
    def error(self, message: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
        raise ConfigError(f"{message}. `simul loadtest --help` lists every option.")


def parse(arguments: Sequence[str] | None) -> Options:
    """Options of the command line. Raises ConfigError."""
    given = _parser().parse_args(arguments)
    options = Options(
        clients=_numbers("--clients", given.clients, int, 1),
        envs=_numbers("--envs", given.envs, int, 1),
        precisions=_precisions(given.precisions),
        rates=None if given.rates == "auto" else () if given.rates == "none" else _rates(given.rates),
        open_sessions=_number("--sessions", given.sessions, int, 1),
        find_max_rate=given.find_max_rate,
        p99_ms=_number("--p99-ms", given.p99_ms, float, 0.001),
        baseline=given.baseline,
        connect=given.connect,
        keys=given.keys,
        config=given.config,
        checkpoint=given.checkpoint,
        overrides=tuple(given.overrides),
        trust=given.trust,
        out=given.out,
        warm_up_sec=_number("--warm-up-sec", given.warm_up_sec, float, 0.0),
        window_sec=_number("--window-sec", given.window_sec, float, 0.05),
        max_windows=_number("--max-windows", given.max_windows, int, 1),
        seed=_number("--seed", given.seed, int, 0),
        parent=given.parent,
    )
    if max(options.clients) > MOST_CLIENTS:
        raise ConfigError(f"--clients {max(options.clients)}: each is a process; at most {MOST_CLIENTS}.")
    if max(options.clients) * max(options.envs) > MOST_SESSIONS:
        raise ConfigError(
            f"--clients x --envs is {max(options.clients) * max(options.envs)} sessions; at most {MOST_SESSIONS}."
        )
    opened = max(options.clients) * options.open_sessions
    if opened > MOST_SESSIONS:
        raise ConfigError(f"--clients x --sessions is {opened} sessions; at most {MOST_SESSIONS}.")
    if options.connect is not None and (len(options.precisions) > 1 or options.precisions[0] != "auto"):
        raise ConfigError("A running server has its own precision: leave --precisions out with --connect.")
    if options.keys is not None and options.connect is None:
        raise ConfigError("--keys: a server that is started here wants none; name the one that does with --connect.")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="simul loadtest",
        description="How many actions a second at which latency: to choose batch size, workers, precision, device.",
    )
    add = parser.add_argument
    add("--clients", default="1,2,4", metavar="N,..", help="closed loop: client processes (default: %(default)s)")
    add("--envs", default="1,8,32,128", metavar="N,..", help="closed loop: envs per client (default: %(default)s)")
    add("--precisions", default="auto", metavar="P,..", help="auto, float32, bfloat16; several are compared")
    add("--rates", default="auto", metavar="R,..",
        help="open loop: offered actions a second; auto: shares of the closed loop's maximum; none")  # fmt: skip
    add("--sessions", default="512", metavar="N", help="open loop: sessions per client (default: %(default)s)")
    add("--find-max-rate", action="store_true", help="open loop: bisect the largest rate that keeps --p99-ms")
    add("--p99-ms", default="5", metavar="MS", help="the promise of --find-max-rate (default: %(default)s)")
    add("--baseline", choices=("local",), help="also measure clients that run the policy themselves")
    add("--connect", metavar="ENDPOINT|RUN_DIR", help="a server that runs, instead of one started here")
    add("--keys", type=path, metavar="DIR", help="CURVE keys to show it (default: those of its run directory)")
    add("--config", type=path, metavar="FILE",
        help="game and network of a configuration (default: an LSTM of 1.09 M weights on 2,160 numbers)")  # fmt: skip
    add(
        "--checkpoint",
        type=local_checkpoint,
        metavar="D",
        help="weights of a checkpoint, a run directory, or zoo:NAME (default: fresh ones)",
    )
    add("--set", dest="overrides", action="append", default=[], metavar="K=V", help="e.g. server.max_batch=64")
    add_trust(parser)
    add("--out", type=path, default=Path("runs/loadtest"), metavar="DIR", help="results (default: %(default)s)")
    add("--warm-up-sec", default="0.5", metavar="S", help="of each cell (default: %(default)s)")
    add("--window-sec", default="0.6", metavar="S",
        help="a cell ends when three windows agree within 10%% (default: %(default)s)")  # fmt: skip
    add("--max-windows", default="7", metavar="N", help="a cell ends at the latest after these (default: %(default)s)")
    add("--seed", default="1", metavar="N", help="of traffic and arrival times")
    add("--parent", type=int, default=0, help=argparse.SUPPRESS)
    return parser


def _number(option: str, text: str, kind: Callable[[str], T], least: float) -> T:
    return _numbers(option, text, kind, least, one=True)[0]


def _rates(text: str) -> tuple[float, ...]:
    return tuple(sorted(_numbers("--rates", text, float, 1.0)))


def _numbers(
    option: str, text: str, kind: Callable[[str], T], least: float, *, one: bool = False
) -> tuple[T, ...]:  # fmt: skip
    what = "a whole number" if kind is int else "a number"
    try:
        numbers = tuple(kind(part) for part in ([text] if one else text.split(",")))
    except ValueError:
        numbers = ()
    if not numbers or not all(least <= float(str(number)) < 1e9 for number in numbers):
        many = "" if one else ", or several with commas between"
        raise ConfigError(f"{option}: expected {what} from {least:g} on{many}; got {text!r}.")
    return numbers


def _precisions(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in PRECISIONS:
            raise ConfigError(f"--precisions: expected {', '.join(PRECISIONS)}; got {name!r}.")
    return names


def make_output_folder(folder: Path) -> None:
    """Make the folder of the results before anything is measured. Raises ConfigError where that is not possible."""
    trial = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.write_bytes(b"")
        trial.unlink()
    except OSError as error:
        raise ConfigError(f"--out: the folder {folder} cannot be written: {error.strerror}. Choose another.") from None
