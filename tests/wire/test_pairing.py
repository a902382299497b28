"""The line that a server prints for pairing."""

import pytest

from ostler.core.errors import UsageError
from ostler.wire.pairing import PairingLine, is_pairing_code, parse_pairing_line

pytestmark = pytest.mark.req("SV-5")
CODE = "ABCD-EFGH-IJKL-MN23"


@pytest.mark.parametrize("fingerprint", ["", "0123456789abcdef" * 4])
def test_line_is_parsed_as_it_was_written(fingerprint):
    line = PairingLine("https://host:8034", CODE, fingerprint)
    assert parse_pairing_line(f" {line}\n") == line


def test_url_without_a_code_is_accepted():
    assert parse_pairing_line("https://host:8034") == PairingLine("https://host:8034", "")


@pytest.mark.parametrize(
    "fragment",
    [
        "",
        "x",
        CODE + "-ABCD",
        CODE + ".sha256-",
        CODE + ".sha256-" + "0" * 63,
        CODE + ".sha256-" + "g" * 64,
        CODE + "\n.x",
    ],
)
def test_damaged_line_is_refused_and_not_used_without_its_fingerprint(fragment):
    with pytest.raises(UsageError, match="not a pairing code"):
        parse_pairing_line(f"https://host:8034#{fragment}")


def test_token_is_not_a_code():
    assert is_pairing_code(CODE.lower())
    assert not is_pairing_code("ostler_" + "0" * 16 + "_" + "0" * 64)
