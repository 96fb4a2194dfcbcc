"""The HTML page of a replay: player and log in one file that loads nothing, or the page of Showdown's own player."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from pathlib import Path

from poke_env.data.replay_template import REPLAY_TEMPLATE

from simul.env_worker.source import ReplayPlayer

_HERE = Path(__file__).parent
_SCRIPTS = ("battle_log.mjs", "side_view.mjs", "player.mjs")
_MODULE_WORDS = re.compile(r"^(import .*|export )", re.MULTILINE)  # a page's script is no module


def replay_page(tag: str, names: tuple[str, str], log: str, player: ReplayPlayer = "own") -> str:
    """The page of one battle.

    Args:
        tag: the battle's name.
        names: of the players at p1 and p2.
        log: lines of the protocol as a spectator sees them.
        player: `own`: the page is complete, and its policy forbids the browser to load anything.
            `showdown`: poke-env's template, which loads Showdown's player (replay-embed.js) from
            play.pokemonshowdown.com.
    """
    return _showdown_page(tag, names, log) if player == "showdown" else _own_page(names, log)


def _own_page(names: tuple[str, str], log: str) -> str:
    script, style = _script(), (_HERE / "page.css").read_text(encoding="utf-8")
    script_hash = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script_hash}'"
    battle = f'<script id="battle" type="application/json">\n{json_lines(log)}\n</script>'
    fields = {
        "TITLE": html.escape(f"{names[0]} vs. {names[1]}"),
        "HEAD": f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>\n{style}</style>',
        "SCRIPTS": f"{battle}\n<script>{script}</script>",
    }
    page = (_HERE / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{([A-Z_]+)\}\}", lambda field: fields[field[1]], page)


def json_lines(log: str) -> str:
    """The log as a JSON array, a line each. No `<` is left, so nothing in it ends or opens an element."""
    lines = [json.dumps(line, ensure_ascii=False).replace("<", "\\u003c") for line in log.rstrip("\n").split("\n")]
    return "[\n" + ",\n".join(lines) + "\n]"


@cache
def _script() -> str:
    sources = ((_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    return '"use strict";\n' + "\n".join(_MODULE_WORDS.sub("", source) for source in sources)


def _showdown_page(tag: str, names: tuple[str, str], log: str) -> str:
    fields = {"BATTLE_TAG": tag, "PLAYER_USERNAME": names[0], "OPPONENT_USERNAME": names[1]}
    fields = {name: html.escape(value) for name, value in fields.items()}
    # As Showdown itself escapes it; and no `<!--`: with a `<script` after it the element ends at a second end tag only.
    fields["REPLAY_LOG"] = log.replace("</", "<\\/").replace("<!--", "<\\!--")
    # One pass: a name that looks like a field is not replaced again.
    return re.sub(r"\{(" + "|".join(fields) + r")\}", lambda field: fields[field[1]], REPLAY_TEMPLATE)
