"""By which names the page may be asked for."""

from __future__ import annotations

import socket

import pytest

from simul.launch.monitoring.page.access import Access, is_loopback, is_same_origin


@pytest.mark.parametrize("header", ["localhost", "localhost:8080", "127.0.0.1:9000", "[::1]:8080", "LOCALHOST"])
def test_this_machine_by_its_own_names(header):
    assert Access("127.0.0.1", "", 8080).knows_host(header)


@pytest.mark.parametrize("header", ["", "evil.example", "localhost.evil.example:8080", "10.0.0.1", "0.0.0.0"])
def test_names_that_may_be_made_to_mean_this_machine(header):
    assert not Access("127.0.0.1", "", 8080).knows_host(header)


def test_a_page_for_other_machines_is_asked_for_by_numbers_or_this_machines_name():
    access = Access("0.0.0.0", "a" * 16, 8080)
    assert access.knows_host("10.0.0.1:8080")
    assert access.knows_host(f"{socket.gethostname()}:8080")
    assert not access.knows_host("evil.example:8080")
    assert Access("gpu.lab", "a" * 16, 8080).knows_host("gpu.lab:8080")


def test_loopback():
    hosts = ("127.0.0.1", "127.9.9.9", "::1", "localhost", "0.0.0.0", "::", "gpu.lab")
    assert [host for host in hosts if is_loopback(host)] == ["127.0.0.1", "127.9.9.9", "::1", "localhost"]


def test_origins():
    assert is_same_origin("http://127.0.0.1:8080", "127.0.0.1:8080")
    assert not is_same_origin("http://127.0.0.1:8081", "127.0.0.1:8080")
    assert not is_same_origin("", "")
    assert not is_same_origin("null", "null")
