"""Cookies of a server's web page."""

import pytest

from ostler.backends.agent_zero.connector_server import MAX_COOKIES, SessionCookies

pytestmark = pytest.mark.req("AZ-7")


def test_cookies_of_several_responses_are_sent_together_and_the_last_value_counts():
    cookies = SessionCookies()
    cookies.store("lang=en; Path=/\nsession=a; HttpOnly; Expires=Wed, 21 Oct 2090 07:28:00 GMT")
    cookies.store("session=b; Max-Age=60")
    assert cookies.header == "lang=en; session=b"
    cookies.clear()
    assert not cookies


@pytest.mark.parametrize(
    "attribute",
    [
        "Max-Age=0",
        "max-age=-5",
        "Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "Max-Age=00; Expires=Wed, 21 Oct 2090 07:28:00 GMT",
    ],
)
def test_expired_cookie_is_deleted(attribute):
    cookies = SessionCookies()
    cookies.store("session=a")
    cookies.store(f"session=; Path=/; {attribute}")
    assert not cookies


@pytest.mark.parametrize("line", ["", "session", "=x", "a b=c", "a=b\rx: y", "a=\xe9", "a=b c", f"a={'x' * 5000}"])
def test_invalid_cookie_is_left_out(line):
    cookies = SessionCookies()
    cookies.store(line)
    assert not cookies


def test_number_of_cookies_is_limited():
    cookies = SessionCookies()
    cookies.store("\n".join(f"c{number}=x" for number in range(1000)))
    assert cookies.header.count("=") == MAX_COOKIES


@pytest.mark.parametrize(
    "line", ["a=b; Expires=junk", "a=b; Max-Age=x", "a=b; ; =", "a=b; Expires=Wed, 21 Oct 2090 07:28:00"]
)
def test_unreadable_attributes_are_ignored(line):
    cookies = SessionCookies()
    cookies.store(line)
    assert cookies.header == "a=b"
