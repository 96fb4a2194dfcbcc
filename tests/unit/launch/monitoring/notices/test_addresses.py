"""Addresses of notices: where they may stand, what is refused, and that no sentence shows one."""

from __future__ import annotations

import os
import sys

import pytest

from simul.common.errors import ConfigError
from simul.common.runtime.extras import install_extra
from simul.launch.monitoring.notices import addresses as module
from simul.launch.monitoring.notices.addresses import open_addresses

SECRET = "s3cr3t-t0k3n"
DISCORD = f"discord://4174216298/{SECRET}"
JSON = f"json://user:{SECRET}@localhost/path"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(path, text: str, mode: int = 0o600):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def names(environment: dict[str, str]) -> list[str]:
    return [address.name.partition(" ")[0] for address in open_addresses(environment)]


@pytest.mark.parametrize(
    "text", [f"{DISCORD} {JSON}", f"{DISCORD},{JSON}", f" {DISCORD} ,\n {JSON} ,"], ids=["space", "comma", "both"]
)
def test_the_variable_has_addresses_between_spaces_or_commas_and_is_not_passed_on(text):
    environment = {"SIMUL_NOTIFY": text, "HOME": "/"}
    assert names(environment) == ["discord", "json"]
    assert environment == {"HOME": "/"}


def test_a_comma_within_an_address_does_not_end_it():
    assert module._split(f"mailto://u:p@h?to=a@b,c@d,{DISCORD}") == ["mailto://u:p@h?to=a@b,c@d", DISCORD]


def test_a_private_file_in_the_usual_place_or_a_named_one(home):
    assert open_addresses({}) == []
    write(home / ".config" / "simul" / "notify", f"# mine\n{DISCORD}\n\n{JSON}\n")
    assert names({}) == ["discord", "json"]
    assert names({"SIMUL_NOTIFY_FILE": str(write(home / "other", JSON))}) == ["json"]
    assert names({"SIMUL_NOTIFY": DISCORD}) == ["discord"], "the variable goes before the file"
    assert names({"SIMUL_NOTIFY": ""}) == [], "an empty one turns notices off"


def refused(environment: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as error:
        open_addresses(environment)
    sentence = str(error.value)
    assert SECRET not in sentence
    assert "\n" not in sentence
    return sentence


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files are POSIX")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_a_file_that_others_may_read_is_refused(home, mode):
    file = write(home / ".config" / "simul" / "notify", JSON, mode)
    sentence = refused({})
    assert f"others may read it (mode {mode:04o}; expected 0600). Run: chmod 600 {file}" in sentence


def test_a_named_file_that_is_missing_or_unreadable_is_refused(home):
    assert "SIMUL_NOTIFY_FILE names" in refused({"SIMUL_NOTIFY_FILE": str(home / "none")})
    (home / "folder").mkdir(mode=0o700)
    assert "cannot be read: Is a directory" in refused({"SIMUL_NOTIFY_FILE": str(home / "folder")})
    (home / "latin").write_bytes(b"\xff\xfe")
    (home / "latin").chmod(0o600)
    assert "it is not UTF-8 text" in refused({"SIMUL_NOTIFY_FILE": str(home / "latin")})


@pytest.mark.parametrize(
    ("url", "begin"),
    [
        (f"discrod://1/{SECRET}", "begins with discrod://"),
        (f"discord:/{SECRET}", "does not begin with the name of one, such as discord://"),
        (SECRET, "does not begin with the name of one, such as discord://"),
    ],
)
def test_an_address_that_apprise_does_not_know_is_refused_by_its_place(url, begin, capfd):
    sentence = refused({"SIMUL_NOTIFY": f"{DISCORD} {url}"})
    assert sentence.startswith("SIMUL_NOTIFY: apprise knows no service for address 2 of 2, which ")
    assert begin in sentence
    assert capfd.readouterr() == ("", "")


def test_without_the_package_the_sentence_names_the_extra(monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    assert open_addresses({}) == []
    assert f"or run: {install_extra('notify')}" in refused({"SIMUL_NOTIFY": JSON})


def test_the_environment_of_this_process_is_the_default(monkeypatch):
    monkeypatch.setenv("SIMUL_NOTIFY", JSON)
    assert len(open_addresses()) == 1
    assert "SIMUL_NOTIFY" not in os.environ
