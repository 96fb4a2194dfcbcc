"""A configuration file of a test."""

from __future__ import annotations

import pytest

from simul.common.config.loader import load_config
from simul.common.config.schema import Config


@pytest.fixture
def load(tmp_path):
    def load(text: str, *overrides: str, notes: list[str] | None = None) -> Config:
        path = tmp_path / "run.yaml"
        path.write_text(text or "game: gymnasium")
        return load_config(path, overrides, notes=notes)

    return load
