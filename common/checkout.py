"""Where the code of this process lies: Simul runs from a checkout, as an editable install."""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
