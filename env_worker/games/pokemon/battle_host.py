"""What runs battles, as those who play them see it: a simulator host over pipes, or Showdown servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Seed = Sequence[int] | str | None


class BattleHost(Protocol):
    """Commands are queued until `flush`; what comes of them is told in a `HostTick`."""

    def start_battle(
        self,
        battle: int,
        battle_format: str,
        *,
        seed: Seed = None,
        team_seeds: tuple[Seed, Seed] = (None, None),
        teams: tuple[str | None, str | None] = (None, None),
        names: tuple[str, str] = ("p1", "p2"),
        encode: tuple[bool, bool] = (False, False),
        tally: int | None = None,
        log: bool = False,
    ) -> None:
        """A battle, numbered by the caller; see `SimHost.start_battle`."""

    def choose(self, battle: int, seat: int, request_number: int, choice: str) -> None:
        """The answer to one request, in the simulator's words."""

    def act(self, battle: int, seat: int, request_number: int, action: int) -> None:
        """The answer of an encoded seat."""

    def stop_battle(self, battle: int) -> None:
        """End a battle without a result."""

    def check_format(self, battle_format: str, teams: Sequence[str], timeout_sec: float = 60.0) -> dict[str, Any]:
        """Whether a format can be played and these teams are legal in it, see sim_host/formats.mjs. Blocks."""

    def flush(self) -> None:
        """Send everything queued."""

    def fileno(self) -> int:
        """Readable when it has said something."""
