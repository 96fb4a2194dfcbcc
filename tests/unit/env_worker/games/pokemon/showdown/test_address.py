import pytest
from poke_env import ServerConfiguration, ShowdownServerConfiguration

from simul.common.errors import ConfigError
from simul.env_worker.games.pokemon.showdown.address import account, is_local, server_at


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:8000", "ws://127.0.0.1:8000/showdown/websocket"),
        ("localhost", "ws://localhost/showdown/websocket"),
        ("https://example.org/", "wss://example.org/showdown/websocket"),
        ("http://example.org:81", "ws://example.org:81/showdown/websocket"),
        ("wss://example.org/other/websocket", "wss://example.org/other/websocket"),
        ("[::1]:8000", "ws://[::1]:8000/showdown/websocket"),
    ],
)
def test_every_way_to_write_an_address(text, url):
    assert server_at(text).websocket_url == url


def test_the_public_server():
    assert server_at("showdown") == ShowdownServerConfiguration


@pytest.mark.parametrize("text", ["", "host:port", "ftp://example.org", "ws://", "two words:80", "host:99999", ":8000"])
def test_what_is_no_address(text):
    with pytest.raises(ConfigError, match="expected HOST:PORT"):
        server_at(text)


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.1", True), ("localhost", True), ("[::1]", True), ("10.0.0.1", False), ("a.b", False)]
)
def test_only_this_machine_is_local(host, local):
    assert is_local(ServerConfiguration(f"ws://{host}:8000/showdown/websocket", "")) is local


@pytest.mark.parametrize(
    "name",
    ["", "!!!", "a,b", "a|b", " a", "x" * 19, "Simul@home", "A  B", "[bot] x", "bot (a)", "Bjørn bot", "_bot", "bot-",
     "my.bot.com", "a\tb", "bot\n", "123"],
)  # fmt: skip
def test_names_that_showdown_would_change(name):
    with pytest.raises(ConfigError, match="--username"):
        account(name, None)


@pytest.mark.parametrize("name", ["Simul 123456", "Trained", "bot-1", "bot b c", "It's_me", "x" * 18])
def test_a_good_name_is_kept(name):
    assert account(name, "secret") == (name, "secret")
