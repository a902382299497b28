"""Names of models compared with a server's list."""

import pytest

from ostler.text.model_names import is_listed

pytestmark = pytest.mark.req("MD-7")


@pytest.mark.parametrize(
    ("name", "listed", "expected"),
    [
        ("m1", "m1", True),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", True),
        ("qwen3", "qwen3:latest", True),
        ("vendor/model:free", "vendor/model", True),
        ("gemini-2.5-pro", "models/gemini-2.5-pro", True),
        ("gpt-4o-latest", "gpt-4o", True),
        ("gpt", "gpt-5", False),
        ("gpt-5", "gpt-5-mini", False),
        ("nosuch", "m1", False),
    ],
)
def test_listed_name(name, listed, expected):
    assert is_listed(name, ["other", listed]) is expected
