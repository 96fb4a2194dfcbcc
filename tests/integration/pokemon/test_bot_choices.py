"""What the damage bot answers to recorded requests has not changed, in singles and doubles."""

from __future__ import annotations

import json

import pytest

from tests.support.pokemon.bot_choices import FILE, SETS, bot_choices


@pytest.mark.parametrize("name", SETS)
def test_the_bot_answers_as_recorded(name):
    assert bot_choices(name) == json.loads(FILE.read_text())[name]
