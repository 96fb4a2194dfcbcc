"""CURVE keys over TCP: who gets in, who does not, and that nobody does where nobody watches the door."""

from __future__ import annotations

import os
import re
import stat
import time

import pytest
import zmq

from simul.common.config.rule_checks import broken_rules
from simul.common.config.schema import Config, ServerConfig
from simul.common.errors import ConfigError, InferenceError
from simul.common.protocol.codec import Codec
from simul.common.protocol.messages import TO_SUPERVISOR
from simul.common.runtime.installation import ROOT
from simul.common.transport import (
    ClientKeys,
    DealerSocket,
    Poller,
    PullSocket,
    RouterSocket,
    client_keys,
    connectable,
    new_keys,
    server_keys,
)
from simul.env_worker.games.pokemon.showdown.local_server import free_port
from simul.launch import cli
from tests.support.stand import Stand, exchange
from tests.support.waiting import PATIENCE_SEC, wait_for

REFUSED_SEC = 0.4


@pytest.fixture
def keys(tmp_path):
    new_keys(tmp_path / "keys")
    return tmp_path / "keys"


@pytest.fixture
def strange(tmp_path):
    """Keys of somebody else."""
    new_keys(tmp_path / "strange")
    return client_keys(tmp_path / "strange")


def free_endpoint(host="127.0.0.1"):
    return f"tcp://{host}:{free_port()}"


def _watched(router, keys):
    """A client with `keys` says hello: (whether it is answered by now, what it saw of the connection), every 20 ms."""
    with DealerSocket(connectable(router.endpoint), keys=keys, watch=True) as dealer:
        dealer.send([b"hello"])
        poller = Poller([router, dealer])
        while True:
            poller.wait(0.02)
            if (received := router.receive()) is not None:
                assert received[1] == [b"hello"]
                router.send(received[0], [b"welcome"])
            yield dealer.receive() == [b"welcome"], dealer.connection_state()


def reaches(router, keys):
    """Whether a message of a client with `keys` arrives and is answered."""
    deadline = time.monotonic() + PATIENCE_SEC
    for answered, fate in _watched(router, keys):
        if answered or time.monotonic() > deadline:
            return answered and fate == "connected"
    raise AssertionError


def refuses(router, keys, *fates):
    """Whether nobody answers it for a while, until it has seen one of `fates`: not every attempt says why it failed."""
    begin = time.monotonic()
    for answered, fate in _watched(router, keys):
        waited = time.monotonic() - begin
        if answered or waited > PATIENCE_SEC:
            return False
        if waited > REFUSED_SEC and (fate in fates or not fates):
            return True
    raise AssertionError


def test_a_listed_key_gets_in_and_others_do_not(keys, strange):
    ours = client_keys(keys)
    with RouterSocket(free_endpoint(), keys=server_keys(keys)) as router:
        assert reaches(router, ours)
        assert refuses(router, None, "other_mechanism")
        wrong_server = ClientKeys(strange.server, ours.public, ours.secret)
        assert refuses(router, wrong_server, "hung_up")
        unlisted = ClientKeys(ours.server, strange.public, strange.secret)
        assert refuses(router, unlisted, "not_allowed")
        assert reaches(router, ours)  # the others did no harm


def _send_on(dealer):
    """Until a send is not taken; before the refusal, messages are queued."""
    deadline = time.monotonic() + PATIENCE_SEC
    while time.monotonic() < deadline:
        dealer.raw.send(b"hello")
        time.sleep(0.001)


def test_a_send_of_a_refused_client_ends_with_the_time_that_the_examples_set(keys, strange):
    unlisted = ClientKeys(client_keys(keys).server, strange.public, strange.secret)
    with (
        RouterSocket(free_endpoint(), keys=server_keys(keys)) as router,
        DealerSocket(router.endpoint, keys=unlisted) as dealer,
    ):
        dealer.raw.setsockopt(zmq.SNDTIMEO, 50)
        with pytest.raises(zmq.Again):
            _send_on(dealer)
        assert dealer.send([b"hello"]) is False
    assert "SNDTIMEO" in (ROOT / "examples" / "external_agent.py").read_text()
    assert "sendTimeout" in (ROOT / "examples" / "external_agent.mjs").read_text()


def test_the_list_is_read_at_every_handshake(keys, strange):
    with RouterSocket(free_endpoint(), keys=server_keys(keys)) as router:
        new_keys(keys, "second")
        assert reaches(router, client_keys(keys, "second"))
        (keys / "allowed" / "second.key").unlink()
        assert refuses(router, client_keys(keys, "second"), "not_allowed")
        (keys / "allowed" / "broken.key").write_bytes(b"\xff\x00 no key")
        (keys / "allowed" / "folder.key").mkdir()
        assert reaches(router, client_keys(keys))


def test_nobody_gets_in_where_the_doorkeeper_is_gone(keys):
    with RouterSocket(free_endpoint(), keys=server_keys(keys)) as router:
        router.authenticator.stop_answering()
        assert refuses(router, client_keys(keys))
        assert refuses(router, None)


def test_keys_open_what_is_refused_without_them(keys):
    endpoint = free_endpoint("*")
    with pytest.raises(ConfigError, match="simul keys new"):
        RouterSocket(endpoint)
    with RouterSocket(endpoint, keys=server_keys(keys)) as router:
        assert reaches(router, client_keys(keys))
    for odd in ("tcp://example.org:5555", "tcp://eth0:5555", "pgm://1.2.3.4:5555"):
        with pytest.raises(ConfigError, match=r"cannot be bound|has an unknown kind"):
            RouterSocket(odd, keys=server_keys(keys))


def test_a_refused_bind_with_keys_leaves_no_thread_and_no_context(keys):
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        with pytest.raises(ConfigError):
            RouterSocket("tcp://eth0:5555", keys=server_keys(keys))
    wait_for(lambda: len(os.listdir("/dev/fd")) <= before + 1)  # libzmq closes its mailboxes in its own thread


def test_a_client_with_keys_plays_and_a_stranger_gets_no_answer(keys, strange):
    endpoint = free_endpoint()
    codec = Codec(TO_SUPERVISOR)
    with (
        Stand(endpoint=endpoint, curve_keys=str(keys)) as stand,
        PullSocket(stand.run_dir.endpoint("status")) as status,
    ):
        client = stand.client("a", keys=client_keys(keys))
        assert len(exchange(client, [stand.decision(0, 0)]).actions) == 1
        failed = 0
        for wrong, sentence in ((None, "it wants CURVE keys"), (strange, "server.key is not its key")):
            refused_until_explained(stand, wrong, sentence)
            wait_for(lambda before=failed: stand.server.metrics()["connections"].get("failed", 0) > before)
            failed = stand.server.metrics()["connections"]["failed"]

        def told():
            frames = status.receive()
            counted = r"(\b1 connection was|\b(?!1 )[\d,]+ connections were) refused in the handshake"
            return frames is not None and re.search(counted, codec.decode(frames)[0].event)

        wait_for(told)


def refused_until_explained(stand, keys, sentence):
    """Not every attempt learns why it failed, and on a busy machine it takes longer."""
    for patience in (REFUSED_SEC, 3.0, 10.0, 30.0):
        with pytest.raises(InferenceError, match="ERR_TIMEOUT: no answer from tcp://") as caught:
            stand.client("b", keys=keys, timeout_sec=patience)
        if sentence in str(caught.value):
            return
    raise AssertionError(str(caught.value))


def test_new_keys_are_secret_and_never_overwritten(tmp_path, capsys):
    folder = tmp_path / "keys"
    assert cli.main(["keys", "new", str(folder)]) == 0
    assert f"server.curve_keys={folder}" in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {
        "server.key", "server.key_secret", "client.key", "client.key_secret", "allowed",
    }  # fmt: skip
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in [folder, *folder.rglob("*")])
    assert b"secret" not in (folder / "allowed" / "client.key").read_bytes().replace(b"securely", b"")
    server = (folder / "server.key_secret").read_bytes()
    assert cli.main(["keys", "new", str(folder)]) == 2
    assert "has keys of client already" in capsys.readouterr().err
    assert cli.main(["keys", "new", str(folder), "--client", "laptop"]) == 0
    assert (folder / "server.key_secret").read_bytes() == server
    assert cli.main(["keys", "new", str(folder), "--client", "../x"]) == 2


def test_bad_keys_are_sentences(keys):
    (keys / "client.key_secret").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        client_keys(keys)
    (keys / "server.key").write_text("nothing")
    with pytest.raises(ConfigError, match="is not a server's public key"):
        client_keys(keys)
    (keys / "server.key_secret").unlink()
    config = Config(server=ServerConfig(endpoint="tcp://*:5555", curve_keys=str(keys)))
    assert [sentence for paths, sentence in broken_rules(config) if "server.curve_keys" in paths] == [
        f"There is no secret key in {keys / 'server.key_secret'}: make keys with `simul keys new {keys}`."
    ]


@pytest.mark.parametrize(
    ("bound", "here"),
    [
        ("tcp://*:5", "tcp://127.0.0.1:5"),
        ("tcp://0.0.0.0:5", "tcp://127.0.0.1:5"),
        ("tcp://[::]:5", "tcp://[::1]:5"),
        ("tcp://10.0.0.1:5", "tcp://10.0.0.1:5"),
        ("ipc:///a/b", "ipc:///a/b"),
        ("", ""),
    ],
)
def test_where_to_connect(bound, here):
    assert connectable(bound) == here
