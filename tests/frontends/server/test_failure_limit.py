"""Failed logins are slowed down and cannot flood the audit log; valid tokens are never locked out."""

import pytest
from tests.frontends.server.guarded_server import GuardedServer

from ostler.frontends.server.failure_limit import MAX_CLIENTS, FailureLimit

pytestmark = pytest.mark.req("SV-5")


@pytest.fixture
def clock():
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    return Clock()


@pytest.fixture
def limit(clock):
    return FailureLimit(3, clock)


def test_failures_over_the_limit_have_to_wait_until_the_bucket_refills(limit, clock):
    assert [limit.add("10.0.0.1").wait for _ in range(3)] == [0, 0, 0]
    assert limit.add("10.0.0.1").wait == pytest.approx(20)
    assert limit.wait("10.0.0.1") == pytest.approx(20)
    clock.now = 20
    assert limit.wait("10.0.0.1") == 0
    assert limit.add("10.0.0.1").wait == 0


def test_other_clients_do_not_wait(limit):
    for _ in range(9):
        limit.add("10.0.0.1")
    assert limit.wait("10.0.0.2") == 0
    assert limit.add("10.0.0.2").wait == 0


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("", "", True),
        ("not an address", "another", False),
    ],
)
def test_addresses_of_one_network_count_together(limit, first, second, is_same):
    for _ in range(4):
        limit.add(first)
    assert bool(limit.wait(second)) is is_same


def test_unlogged_failures_are_counted_in_the_next_entry(limit, clock):
    found = [limit.add("10.0.0.1") for _ in range(7)]
    assert [failure.is_logged for failure in found] == [True] * 4 + [False] * 3
    clock.now = 60
    assert limit.add("10.0.0.1").unlogged == 4


def test_number_of_remembered_clients_is_bounded(limit):
    for number in range(MAX_CLIENTS + 50):
        limit.add(str(number))
    assert len(limit._clients) == MAX_CLIENTS


@pytest.fixture
def strict_server(tmp_path, clock):
    server = GuardedServer(tmp_path, failures=FailureLimit(3, clock))
    yield server
    server.close()


def test_guessing_is_answered_by_429_and_a_valid_token_still_works(strict_server):
    token = strict_server.accounts.issue("ada").text
    answers = [strict_server.request("GET", "/api/x", "wrong") for _ in range(20)]
    assert [status for status, *_ in answers] == [401] * 3 + [429] * 17
    assert answers[-1][1]["code"] == "rate_limited"
    assert int(answers[-1][2]["Retry-After"]) > 0
    assert strict_server.request("GET", "/api/x", token)[0] == 200


def test_forwarded_header_does_not_make_another_client(strict_server):
    addresses = [("X-Forwarded-For", f"10.0.0.{number}") for number in range(9)]
    answers = [strict_server.request("GET", "/api/x", "wrong", [header])[0] for header in addresses]
    assert answers == [401] * 3 + [429] * 6
    assert {entry["client"] for entry in strict_server.entries()} == {"127.0.0.1"}


@pytest.mark.parametrize("headers", [[], [("Origin", "https://evil.example")]])
def test_refused_requests_do_not_flood_the_audit_log(strict_server, clock, headers):
    for _ in range(50):
        strict_server.request("GET", "/api/x", "wrong", headers)
    assert len(strict_server.entries()) == 4
    clock.now = 60
    strict_server.request("GET", "/api/x", "wrong", headers)
    assert strict_server.entries()[-1]["unlogged"] == 47


def test_health_checks_are_not_in_the_audit_log(strict_server):
    strict_server.request("GET", "/healthz")
    assert not strict_server.audit_file.exists()
