"""Notices of real runs at a web service on this machine, through apprise."""

from __future__ import annotations

import base64
import re
import subprocess
import sys

import psutil
import pytest

from simul.launch.monitoring.notices import delivery
from simul.launch.monitoring.notices.addresses import open_addresses
from simul.launch.monitoring.notices.notifier import (
    Delivery,
    Notice,
    NoticeKind,
    NoticeSender,
    Notifier,
    Picture,
    TokenBucket,
)
from simul.launch.processes.role_process import role_environment
from tests.support.command import phase_of
from tests.support.stand_ins import PROGRAM
from tests.support.webhook import Answer, Webhook

SECRET = "s3cr3t-t0k3n"
NEVER = lambda: False  # noqa: E731 - nothing is in a hurry
PNG = b"\x89PNG\r\n\x1a\n" + b"curve" * 100


# Else 10 s for what waits at the end, and 20 s for each attempt.
PATIENT = (
    "from simul.launch.monitoring.notices import addresses, notifier\n"
    "notifier.FINISH_SEC = addresses.SEND_SEC = 100.0\n"
)
LOCAL_DISCORD = """
import sys
from apprise.plugins.discord import NotifyDiscord
from simul.launch.monitoring.notices import delivery
NotifyDiscord.notify_url = "http://{address}/api/webhooks"
NotifyDiscord.socket_connect_timeout = NotifyDiscord.socket_read_timeout = 100.0
sys.exit(delivery.main())
"""


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A slow machine gets its answers in time."""
    monkeypatch.setattr("simul.launch.monitoring.notices.notifier.FINISH_SEC", 100.0)
    monkeypatch.setattr("simul.launch.monitoring.notices.addresses.SEND_SEC", 100.0)


DISCORD = f"discord://4174216298/{SECRET}"


def discord_of_a_run(hook: Webhook, monkeypatch) -> NoticeSender:
    """As a run has it: a process of its own sends. Its Discord is the given web service."""
    program = LOCAL_DISCORD.format(address=hook.address)
    monkeypatch.setattr("simul.launch.monitoring.notices.addresses.SENDER", (sys.executable, "-P", "-c", program))
    (address,) = open_addresses({"SIMUL_NOTIFY": DISCORD})
    return NoticeSender(address, "Simul run", TokenBucket(0.0), ())


class HereDelivered:
    """An address whose notices this process sends."""

    def __init__(self) -> None:
        (self._address,) = open_addresses({"SIMUL_NOTIFY": DISCORD})
        self.name = self._address.name

    def deliver(self, title: str, text: str, severity: str, picture: bytes) -> Delivery:
        return delivery.deliver(delivery.DeliveryRequest(DISCORD, title, text, severity, picture, 0))


@pytest.fixture
def discord(monkeypatch):
    """A function that makes a sender whose Discord is the given web service. This process sends: it has apprise."""
    from apprise.plugins.discord import NotifyDiscord

    def sender(hook: Webhook, *pauses: float) -> NoticeSender:
        monkeypatch.setattr(NotifyDiscord, "notify_url", f"http://{hook.address}/api/webhooks")
        for limit in ("socket_connect_timeout", "socket_read_timeout"):
            monkeypatch.setattr(NotifyDiscord, limit, 100.0)
        return NoticeSender(HereDelivered(), "Simul run", TokenBucket(0.0), pauses)

    return sender


def test_discord_gets_the_text_and_then_the_picture(monkeypatch):
    with Webhook() as hook:
        notifier = Notifier([discord_of_a_run(hook, monkeypatch)])
        notifier.post(Notice(NoticeKind.MILESTONE, "1,000,000 decisions", lambda: Picture(PNG)))
        assert notifier.close(NEVER) == []
        text, picture = hook.next(), hook.next()
        assert hook.quiet
    assert text.path.startswith(f"/api/webhooks/4174216298/{SECRET}")
    assert text.json()["content"] == "Simul run: milestone\r\n1,000,000 decisions"
    assert picture.content_type.startswith("multipart/form-data")
    assert PNG in picture.body
    assert b'filename="curves.png"' in picture.body


def test_discord_is_given_the_time_that_it_asks_for_after_429(discord):
    busy = Answer(429, {"Retry-After": "1"}, b'{"message": "You are being rate limited.", "retry_after": 0.6}')
    with Webhook(busy, busy) as hook:  # apprise itself asks a second time at once
        notifier = Notifier([discord(hook, 0.0)])
        notifier.post(Notice(NoticeKind.MILESTONE, "text"))
        _, second, third = hook.next(), hook.next(), hook.next()
        assert third.at - second.at >= 0.6
        assert notifier.close(NEVER) == []
        assert hook.quiet


@pytest.mark.parametrize(("status", "attempts"), [(500, 2), (404, 1)])
def test_discord_that_refuses_is_one_sentence_without_the_address(discord, status, attempts, capfd):
    with Webhook(then=Answer(status)) as hook:
        notifier = Notifier([discord(hook, 0.0)])
        notifier.post(Notice(NoticeKind.MILESTONE, "text", lambda: Picture(PNG)))
        for _ in range(attempts):
            hook.next()
        (sentence,) = notifier.close(NEVER)
        assert hook.quiet
    assert "did not reach discord (address 1 of notices): " in sentence
    assert f"it was refused with HTTP {status} " in sentence
    assert SECRET not in sentence
    assert capfd.readouterr() == ("", ""), "what apprise logs is not printed"


def test_a_text_whose_picture_is_refused_is_not_sent_again(discord):
    with Webhook(Answer(204), Answer(413)) as hook:
        notifier = Notifier([discord(hook, 0.0, 0.0)])
        notifier.post(Notice(NoticeKind.MILESTONE, "text", lambda: Picture(PNG)))
        hook.next(), hook.next()
        (sentence,) = notifier.close(NEVER)
        assert hook.quiet
    assert "the text arrived, its picture did not: it was refused with HTTP 413" in sentence


def test_nobody_there_is_one_sentence(discord):
    with Webhook() as hook:
        pass
    notifier = Notifier([discord(hook)])
    notifier.post(Notice(NoticeKind.STOP, "text"))
    (sentence,) = notifier.close(NEVER)
    assert sentence.endswith("discord (address 1 of notices): no connection, or no answer in time")


def delivered(hook: Webhook, pauses: tuple[float, ...] = ()) -> list[str]:
    """The sentences of a notice to a JSON webhook."""
    (address,) = open_addresses({"SIMUL_NOTIFY": json_address(hook)})
    notifier = Notifier([NoticeSender(address, "Simul run", TokenBucket(0.0), pauses)])
    notifier.post(Notice(NoticeKind.STOP, "text"))
    return notifier.close(NEVER)


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="the system does not limit a process's memory")
def test_an_answer_of_a_gibibyte_is_not_read_into_this_process():
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Webhook(then=Answer(200, stream_bytes=1 << 30)) as hook:
        said = delivered(hook, (0.0, 0.0))
        hook.next()
        assert hook.quiet, "it may have arrived, and is not sent again"
    assert said == [
        "the notice 'stopped' did not reach json (address 1 of notices): "
        "its answer is larger than 512 MiB; the notice may have arrived"
    ]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024, "KiB"


@pytest.mark.parametrize("status", [pytest.param(302, marks=pytest.mark.slow), 307])
def test_a_redirect_is_not_followed(status):
    with Webhook() as other:
        there = {"Location": f"http://{other.address}/"}
        with Webhook(then=Answer(status, there)) as hook:
            (said,) = delivered(hook, (0.0, 0.0))
            hook.next()
            assert hook.quiet
        assert other.quiet, "the text goes nowhere else"
    assert f"it answered with a redirect, HTTP {status} " in said


def test_a_service_that_never_answers_is_given_up_and_its_process_is_gone(monkeypatch):
    with Webhook(then=Answer(hang=True)) as hook:
        (address,) = open_addresses({"SIMUL_NOTIFY": json_address(hook)})
        monkeypatch.setattr("simul.launch.monitoring.notices.addresses.SEND_SEC", 3.0)
        before = set(psutil.Process().children())
        delivery = address.deliver("title", "text", "info", b"")
    assert delivery.problem == "no answer within 3 s"
    assert not delivery.final
    assert set(psutil.Process().children()) <= before


def test_the_process_that_sends_shows_no_address_and_ends_with_a_killed_parent():
    program = (
        "from simul.launch.monitoring.notices.addresses import open_addresses\n"
        "(address,) = open_addresses()\n"
        "address.deliver('title', 'text', 'info', b'')\n"
    )
    with Webhook(then=Answer(hang=True)) as hook:
        environment = {**role_environment(1), "SIMUL_NOTIFY": json_address(hook)}
        with subprocess.Popen([sys.executable, "-P", "-c", program], env=environment) as parent:
            hook.next()
            (child,) = psutil.Process(parent.pid).children()
            assert SECRET not in " ".join(child.cmdline())
            assert SECRET not in str(child.environ())
            parent.kill()
        gone, _ = psutil.wait_procs([child], timeout=100)
        assert gone == [child]


@pytest.fixture
def notified(up, monkeypatch):
    """A function that starts a run whose notices go to the given addresses."""

    def start(addresses: str, *arguments: str, program: str = PATIENT + PROGRAM):
        monkeypatch.setenv("SIMUL_NOTIFY", addresses)
        return up(*arguments, program=program)

    return start


def json_address(hook: Webhook) -> str:
    return f"json://user:{SECRET}@{hook.address}/?cto=100&rto=100000"


def everything_written(root) -> str:
    return "".join(path.read_text(errors="replace") for path in root.rglob("*") if path.is_file())


def test_a_run_says_when_it_starts_reaches_a_milestone_with_its_curve_and_stops_with_its_summary(notified, tmp_path):
    """The first notice is refused: one line of the log, and the run and its notices go on."""
    with Webhook(Answer(500)) as hook:
        once = "notifier.NoticeSender.__init__.__defaults__ = ((),)\n"
        drawn = "from simul.launch.supervisor import run_notices; run_notices.DRAW_LIMIT_SEC = 1e6\n"
        program = PATIENT + once + drawn + PROGRAM
        run = notified(json_address(hook), "--set", "notice_every_decisions=2000", program=program)
        start = hook.next().json()
        assert re.fullmatch(r"Simul run on \S+: started", start["title"])
        assert "gymnasium, a new run, env workers: 1" in start["message"]
        while not (milestone := hook.next().json())["attachments"]:
            assert "(no picture: " in milestone["message"], "the first may come before there are curves"
        assert re.match(r"[\d,]+000 decisions, \d:\d\d:\d\d of training over all starts\n", milestone["message"])
        assert "policy_version 1" in milestone["message"]
        (picture,) = milestone["attachments"]
        assert base64.b64decode(picture["base64"]).startswith(b"\x89PNG")
        code, output = run.finish()
        assert code == 0, output
        titles = []
        while not hook.quiet:
            titles.append((last := hook.next().json())["title"].partition(": ")[2].partition(" (")[0])
            if titles[-1] == "stopped":
                stopped = last
        assert titles.count("stopped") == 1
        assert f"{run.summary()['decisions']:,.0f} decisions in" in stopped["message"]
    log = (run.run_dir.logs / "simul-supervisor.log").read_text()
    sentence = "the notice 'started' did not reach json (address 1 of notices): it was refused with HTTP 500 Internal"
    assert log.count(sentence) == 1
    written = everything_written(tmp_path)
    assert SECRET not in written, "the address is in no file of the run and in no output"
    assert SECRET not in output


@pytest.mark.slow  # .ci/long runs it
def test_a_run_that_another_life_would_not_help_ends_with_its_last_words(notified):
    with Webhook() as hook:
        run = notified(json_address(hook))
        run.wait_until_training()
        (run.run_dir.root / "ends-learner").write_text("Nothing can be learned from these rewards.")
        code, output = run.result()
        assert code == 1
        assert output.splitlines()[-1] == "simul: the learner: Nothing can be learned from these rewards."
        assert (run.summary()["restarts"]["simul-learner-0"], phase_of(run.run_dir.root)) == (0, "failed")
        hook.next()
        crash = hook.next().json()
        assert hook.quiet
    assert crash["title"].endswith(": failed")
    assert crash["message"] == "the learner: Nothing can be learned from these rewards."
    assert crash["type"] == "failure"


def test_a_start_that_fails_says_the_end_of_the_log(notified, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "crash-learner").touch()
    with Webhook() as hook:
        code, output = notified(json_address(hook)).result()
        assert (code, phase_of(tmp_path / "run")) == (1, "failed")
        assert "a fault of the stand-in" in output
        crash = hook.next().json()
        assert hook.quiet
    assert crash["message"].startswith("the learner died (exit code 1). The end of its log:\n")
    assert crash["message"].endswith("RuntimeError: a fault of the stand-in")
