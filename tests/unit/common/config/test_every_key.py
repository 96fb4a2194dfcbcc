"""Whatever is written for a setting: its error names the key, what was expected and what came, or what to do."""

from __future__ import annotations

import re

import pytest

from simul.common.config.loader import load_config
from simul.common.config.value_checks import config_keys
from simul.common.errors import ConfigError

WRONG = ("{a: {b: [1]}}", "-7", "no-such-word")


def problems(value: str, keys: list[str]) -> dict[str, str]:
    """Key -> what is said of it, where all of these are set to the value."""
    try:
        load_config("cartpole", [f"{key}={value}" for key in keys])
    except ConfigError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        named = {key: line for key in keys for line in lines if line.startswith(f"--set {key}={value}: ")}
        return named or dict.fromkeys(keys, str(error))
    return {}


@pytest.mark.parametrize("value", WRONG)
def test_every_error_of_a_setting_says_what_was_expected_and_what_came(value: str) -> None:
    """Rules over several keys are looked at where each key by itself is right: those that are left are set alone."""
    keys = list(config_keys())
    said = problems(value, keys)
    for key in keys:
        if key not in said:
            said |= problems(value, [key])
    assert [line for line in said.values() if not re.match(r"--set .*(expected|`simul | use )", line)] == []
    assert len(keys) - len(said) < 40
