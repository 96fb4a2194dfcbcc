"""Who is connected: lives, tokens, connections and places; what each holds: rows in flight, and seats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simul.common.errors import ERR_CAPACITY, ERR_DENIED, ProtocolError, StaleRunError
from simul.inference_server.sessions.clients import MOST_CELLS, NO_SLOT, Client, ClientTable, InFlight, SeatIndex


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


def test_room_is_of_each_client_and_of_all() -> None:
    a, b = Client("a", 1, "a", b"", True, 0.0), Client("b", 1, "b", b"", True, 0.0)
    limits = InFlight(limit=15, client_limit=10, max_batch=4)
    limits.add(a, 10)
    assert not limits.has_room(a, 1)
    assert limits.has_room(b, 5)
    assert not limits.has_room(b, 6)
    limits.remove(a, 8)
    assert limits.has_room(a, 8)
    assert (limits.of(a), limits.of(b), limits.total) == (2, 0, 2)


def test_room_is_kept_for_holders_of_the_training_token() -> None:
    others = [Client(str(number), 1, str(number), b"", False, 0.0) for number in range(3)]
    worker = Client("worker", 1, "worker", b"", True, 0.0)
    limits = InFlight(limit=100, client_limit=20, max_batch=4, without_token_limit=50)
    for other, rows in zip(others, (20, 20, 10)):
        assert limits.has_room(other, rows)
        limits.add(other, rows)
    assert not limits.has_room(others[2], 1)
    assert limits.has_room(worker, 20)
    limits.remove(others[0], 20)
    assert limits.has_room(others[2], 10)


def test_the_hint_grows_with_the_queue_and_the_forward() -> None:
    limits = InFlight(limit=1000, client_limit=1000, max_batch=10)
    limits.last_batch_sec = 0.004
    assert limits.retry_after_ms() == 4
    limits.add(Client("a", 1, "a", b"", True, 0.0), 95)
    assert limits.retry_after_ms() == 40
    limits.last_batch_sec = 10.0
    assert limits.retry_after_ms() == 1000


numbers = st.one_of(st.integers(-2, 9), st.sampled_from([300, MOST_CELLS - 1, MOST_CELLS, -(2**63), 2**63 - 1]))
seats = st.tuples(numbers, numbers)


@given(st.lists(st.tuples(seats, st.booleans()), max_size=60))
def test_it_holds_what_a_dict_holds(changes: list[tuple[tuple[int, int], bool]]) -> None:
    seat_map, model = SeatIndex(), dict[tuple[int, int], int]()
    for slot, (seat, begins) in enumerate(changes):
        if seat in model:
            seat_map.remove_seat(*seat)
            del model[seat]
        elif begins:
            seat_map.add_seat(*seat, slot)
            model[seat] = slot
    assert len(seat_map) == len(model)
    assert seat_map.slots == sorted(model.values())
    asked = [seat for seat, _ in changes]
    guesses = seat_map.guess_slots(np.array([(*seat, 0, 0, 0) for seat in asked], np.int64).reshape(-1, 5))
    for seat, guess in zip(asked, guesses.tolist()):
        assert seat_map.get(*seat) == model.get(seat, NO_SLOT)
        assert seat not in model or guess == model[seat]


def test_a_client_with_huge_numbers_costs_no_more_than_its_sessions() -> None:
    seat_map = SeatIndex()
    for env in range(10):
        seat_map.add_seat(env * 10**15, 0, env)
    assert seat_map._dense.size <= MOST_CELLS
    assert [seat_map.get(env * 10**15, 0) for env in range(10)] == list(range(10))
