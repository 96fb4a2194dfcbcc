"""Who is connected: lives, tokens, connections, and places."""

from __future__ import annotations

import pytest

from simul.common.errors import ERR_CAPACITY, ERR_DENIED, ProtocolError, StaleRunError
from simul.inference_server.sessions.clients import ClientTable


def test_a_token_moves_its_client_to_another_connection_and_no_other_token_does() -> None:
    table = ClientTable("secret")
    client, other = (table.register_client(name, 1, "", name.encode(), 0.0)[0] for name in ("a", "b"))
    for wrong in ("", client.token[:-1], client.token[:-1] + "x", client.token + "0", client.token.upper() + " "):
        assert table.resume(wrong, b"thief", 1.0) is None
    assert table.of_peer(b"thief") is None
    assert table.resume(client.token, b"new", 2.0) is client
    assert (table.of_peer(b"new"), table.of_peer(b"a"), table.of_peer(b"b")) == (client, None, other)
    assert (client.peer, client.heard_at) == (b"new", 2.0)
    table.forget(client)
    assert table.resume(client.token, b"new", 3.0) is None


def test_a_newer_life_ends_the_older_and_an_older_one_is_refused() -> None:
    table = ClientTable("secret")
    first, _ = table.register_client("a", 5, "", b"1", 0.0)
    worker, _ = table.register_client("a", 1, "secret", b"2", 0.0)  # another person, whatever the name
    assert (first.training, worker.training) == (False, True)
    with pytest.raises(StaleRunError, match="run_id 5 already; 4 is"):
        table.register_client("a", 4, "", b"3", 0.0)
    newer, ended = table.register_client("a", 6, "", b"3", 0.0)
    assert ended == [first]
    assert not newer.training
    assert set(table) == {newer, worker}
    assert table.resume(first.token, b"1", 1.0) is None


def test_an_equal_run_id_ends_no_life_without_its_token() -> None:
    table = ClientTable("secret")
    first, _ = table.register_client("a", 5, "", b"1", 0.0)
    first.confirmed = True
    for peer in (b"2", b"3"):
        with pytest.raises(StaleRunError, match=r"run_id 5 is here already; expected its token .* or a higher run_id"):
            table.register_client("a", 5, "", peer, 1.0)
    assert list(table) == [first]
    assert table.find_same_run(b"1", "a", 5) is first  # HELLO again on its own connection
    assert table.resume(first.token, b"2", 2.0) is first
    table.forget(first)
    again, ended = table.register_client("a", 5, "", b"3", 3.0)
    assert (again.run_id, ended) == (5, [])


def test_an_equal_run_id_replaces_a_life_whose_welcome_may_be_lost() -> None:
    table = ClientTable("secret")
    lost, _ = table.register_client("a", 5, "", b"1", 0.0)
    found, ended = table.register_client("a", 5, "", b"2", 1.0)
    assert (ended, list(table), table.of_peer(b"1")) == ([lost], [found], None)
    assert table.resume(lost.token, b"3", 2.0) is None


@pytest.mark.parametrize("wrong", ["wrong", "secre", "secret\n", "Secret", "\0"])
def test_another_training_token_is_refused_and_ends_nobodys_life(wrong: str) -> None:
    table = ClientTable("secret")
    worker, _ = table.register_client("a", 1, "secret", b"1", 0.0)
    with pytest.raises(ProtocolError, match="the training token is not this run's") as denied:
        table.register_client("a", 2, wrong, b"1", 0.0)
    assert denied.value.code == ERR_DENIED
    assert wrong.strip() not in str(denied.value).split()
    assert list(table) == [worker]


def test_a_full_house_lets_in_training_clients_newer_lives_and_whoever_follows_one_that_left() -> None:
    table = ClientTable("secret", most=2)
    first, _ = table.register_client("a", 1, "", b"1", 0.0)
    table.register_client("b", 1, "", b"2", 0.0)
    with pytest.raises(ProtocolError, match="2 clients are here") as full:
        table.register_client("c", 1, "", b"3", 0.0)
    assert full.value.code == ERR_CAPACITY
    assert table.of_peer(b"3") is None
    worker, _ = table.register_client("w", 1, "secret", b"4", 0.0)
    table.forget(worker)
    _, ended = table.register_client("a", 2, "", b"5", 0.0)
    assert ended == [first]
    _, ended = table.register_client("c", 1, "", b"2", 0.0)  # the connection of b, whose life is over with it
    assert [client.name for client in ended] == ["b"]
    assert len(table) == 2
