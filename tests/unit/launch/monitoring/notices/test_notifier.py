"""Notices: the token bucket, retries, merging, and an address that hangs without delay of the others."""

from __future__ import annotations

import queue
import threading

import pytest

from simul.launch.monitoring.notices import notifier as module
from simul.launch.monitoring.notices.notifier import (
    BURST,
    Delivery,
    Notice,
    NoticeKind,
    NoticeSender,
    Notifier,
    Picture,
    TokenBucket,
    WaitingNotices,
)
from tests.support.waiting import wait_for

MILESTONE, STOP, LOST, BACK = NoticeKind.MILESTONE, NoticeKind.STOP, NoticeKind.STORE_LOST, NoticeKind.STORE_BACK
NEVER = lambda: False  # noqa: E731 - nothing is in a hurry


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A slow machine comes to its end in time."""
    monkeypatch.setattr(module, "FINISH_SEC", 100.0)


class FakeAddress:
    """Answers with the next of `outcomes`; `hold()` makes it hang until `release()`."""

    name = "fake (address 1 of notices)"

    def __init__(self, *outcomes: Delivery) -> None:
        self.outcomes = list(outcomes)
        self.got: queue.Queue[tuple[str, str, str, bytes]] = queue.Queue()
        self._free = threading.Event()
        self._free.set()

    def hold(self) -> None:
        self._free.clear()

    def release(self) -> None:
        self._free.set()

    def deliver(self, title: str, text: str, severity: str, picture: bytes) -> Delivery:
        self.got.put((title, text, severity, picture))
        self._free.wait()
        return self.outcomes.pop(0) if self.outcomes else Delivery()

    def next(self) -> tuple[str, str, str, bytes]:
        return self.got.get(timeout=120)


def sending(
    *outcomes: Delivery, burst: int = BURST, pauses: tuple[float, ...] = ()
) -> tuple[FakeAddress, NoticeSender]:
    address = FakeAddress(*outcomes)
    return address, NoticeSender(address, "run", TokenBucket(0.0, burst, refill_sec=1e9), pauses)


def test_a_bucket_gives_a_burst_and_then_one_for_each_interval():
    bucket = TokenBucket(100.0, burst=2, refill_sec=60.0)
    assert [bucket.take(100.0), bucket.take(100.0)] == [0.0, 0.0]
    assert bucket.take(100.0) == 60.0
    assert bucket.take(130.0) == 30.0
    assert bucket.take(160.0) == 0.0
    assert bucket.take(160.0) == 60.0
    assert [bucket.take(1e6), bucket.take(1e6)] == [0.0, 0.0], "and never more than the burst"
    assert bucket.take(1e6) == 60.0


def test_at_most_one_of_each_kind_waits_the_newest_with_their_number():
    waiting = WaitingNotices()
    for kind, text in ((LOST, "1"), (BACK, "2"), (LOST, "3"), (MILESTONE, "4"), (LOST, "5")):
        waiting.add(Notice(kind, text))
    assert waiting.titles() == ["store back", "milestone", "store lost"]
    waiting.add(Notice(STOP, "6"))
    taken = []
    while (notice := waiting.first()) is not None:
        waiting.remove(notice)
        taken.append((notice.text, notice.times))
    assert taken == [("6", 1), ("2", 1), ("4", 1), ("5", 3)], "what is urgent goes first"


def test_a_notice_arrives_with_its_title_text_severity_and_picture():
    address, one = sending()
    one.post(Notice(MILESTONE, "a million", lambda: Picture(b"PNG")))
    assert address.next() == ("run: milestone", "a million", "info", b"PNG")
    one.post(Notice(MILESTONE, "two", lambda: Picture(b"", "no matplotlib")))
    assert address.next() == ("run: milestone", "two\n(no picture: no matplotlib)", "info", b"")
    one.close()


def test_repeats_that_wait_are_one_notice_and_urgent_ones_wait_for_no_token():
    address, one = sending(burst=1)
    one.post(Notice(MILESTONE, "1"))
    assert address.next()[1] == "1"
    for text in ("2", "3", "4"):
        one.post(Notice(MILESTONE, text))
    one.post(Notice(STOP, "over"))
    assert address.next()[:2] == ("run: stopped", "over")
    assert address.got.empty(), "the others wait for a token"
    assert Notifier([one]).close(NEVER) == []
    assert address.next()[:2] == ("run: milestone (3 times; this is the last)", "4")
    assert one.finished


def test_what_is_refused_is_tried_again_and_in_the_end_one_sentence():
    address, one = sending(*[Delivery("HTTP 500")] * 4, pauses=(0.0, 0.0))
    one.post(Notice(STOP, "over"))
    assert Notifier([one]).close(NEVER) == ["the notice 'stopped' did not reach fake (address 1 of notices): HTTP 500"]
    assert address.got.qsize() in (1, 2, 3), "at the end of a run at most one more attempt is begun"
    address, one = sending(*[Delivery("HTTP 500")] * 3, pauses=(0.0, 0.0))
    one.post(Notice(STOP, "over"))
    for _ in range(3):
        address.next()
    problems = []
    wait_for(lambda: problems.extend(one.take_problems()) or problems)
    assert problems == ["the notice 'stopped' did not reach fake (address 1 of notices): HTTP 500"]
    assert one.take_problems() == []
    one.close()


def test_what_would_be_refused_again_is_not_tried_again():
    address, one = sending(Delivery("HTTP 404", final=True), pauses=(0.0, 0.0))
    one.post(Notice(MILESTONE, "1"))
    assert len(Notifier([one]).close(NEVER)) == 1
    assert address.got.qsize() == 1


def test_an_attempt_that_waits_is_made_at_once_when_the_run_ends_if_it_is_urgent():
    for kind, attempts in ((NoticeKind.CRASH, 2), (MILESTONE, 1)):
        address, one = sending(Delivery("HTTP 500"), pauses=(1e6,))
        one.post(Notice(kind, "text"))
        address.next()
        problems = Notifier([one]).close(NEVER)
        assert one.finished
        assert address.got.qsize() == attempts - 1
        assert problems == ([] if attempts == 2 else [
            "the notice 'milestone' did not reach fake (address 1 of notices): HTTP 500"
        ])  # fmt: skip


def test_an_address_that_hangs_delays_neither_others_nor_the_end_of_the_run(monkeypatch):
    monkeypatch.setattr(module, "FINISH_SEC", 0.2)
    (hanging, held), (other, free) = sending(), sending()
    hanging.hold()
    both = Notifier([held, free])
    both.post(Notice(NoticeKind.START, "begin"))
    hanging.next()
    both.post(Notice(STOP, "over"))
    assert [other.next()[1], other.next()[1]] == ["begin", "over"]
    free.close()
    wait_for(lambda: free.finished)  # what arrived is done with a moment later
    said = both.close(NEVER)  # returns although the address never does
    assert said == ["fake (address 1 of notices) did not answer in time; these notices may be lost: started, stopped"]
    hanging.release()


def test_a_second_ctrl_c_waits_for_nothing(monkeypatch):
    monkeypatch.setattr(module, "FINISH_SEC", 1e6)
    address, one = sending()
    address.hold()
    one.post(Notice(STOP, "over"))
    address.next()
    assert len(Notifier([one]).close(lambda: True)) == 1
    address.release()


def test_a_defect_costs_one_notice():
    address, one = sending()

    def draw() -> Picture:
        raise RuntimeError("json://user:secret@host")

    one.post(Notice(MILESTONE, "1", draw))
    one.post(Notice(STOP, "over"))
    assert address.next()[1] == "over"
    problems = Notifier([one]).close(NEVER)
    assert problems == ["the notice 'milestone' did not reach fake (address 1 of notices): a defect: RuntimeError"]


@pytest.mark.parametrize("kind", NoticeKind)
def test_every_kind_has_a_type_that_apprise_knows(kind):
    from apprise import NotifyType

    assert kind.severity in {known.value for known in NotifyType}
