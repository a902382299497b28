"""Which command lines could write by themselves, where nothing else would hold them."""

import pytest

from ostler.app.grounds import redirects


@pytest.mark.req("PM-4")
@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("ls", False),
        ("ls 2>/dev/null", False),
        ("ls > /dev/null 2>&1", False),
        ("ls &>/dev/null | cat", False),
        ("cat a > b", True),
        ("cat a >> b", True),
        ("cat a >/dev/null >b", True),
        ("cat a >/dev/nullx", True),
        ("cat a >&b", True),
        ("cat a >& 12", True),
        ("cat a >|b", True),
        ("echo <>x", True),
    ],
)
def test_a_redirection_into_a_file_is_seen(command, writes):
    assert redirects(command) is writes
