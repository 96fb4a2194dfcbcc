"""`simul play --page`: a game at a table, played in a browser of this machine."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence

from simul.common.runtime.terminal_text import print_text
from simul.launch.monitoring.page import HOST
from simul.launch.monitoring.page.access import Access
from simul.launch.monitoring.page.game_page import LINGER_SEC, make_app
from simul.launch.monitoring.page.played_game import PlayedGame
from simul.launch.monitoring.page.web_server import listen, serve
from simul.launch.monitoring.view.output import complain
from simul.launch.processes.signals import Signals


def play_in_page(module: str, arguments: Sequence[str], port: int) -> int:
    """Until the game is over or this command is stopped; returns the game's exit code. Raises ConfigError.

    The address has a token: what is sent there plays for the person.
    """
    token = secrets.token_urlsafe(24)
    with listen(HOST, port, "--page-port") as listener:
        number = listener.getsockname()[1]
        signals = Signals()
        signals.install()
        game = PlayedGame(module, [*arguments, "--piped"])
        try:
            threading.Thread(target=_stop_after, args=(game, signals), daemon=True).start()
            print_text(f"http://{HOST}:{number}/#token={token}")
            serve(make_app(game, Access(HOST, token, number), signals), listener, signals)
        finally:
            game.close()
    code = game.exit_code or 0
    if code and game.last_words:
        complain(f"{game.last_words}\n")
    return code if code >= 0 else 1


def _stop_after(game: PlayedGame, signals: Signals) -> None:
    while game.exit_code is None:
        time.sleep(0.1)
    time.sleep(LINGER_SEC)
    signals.stop = True
