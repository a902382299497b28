"""The demo project's files, the task, and the recorded model replies."""

from pathlib import Path

from ostler.testing.scripted_model import ScriptedCall, ScriptedLine

BASKET_SOURCE = '''\
"""Prices of a basket, in cents."""


def total(prices):
    return sum(prices)


def with_discount(prices, percent):
    """The total, less a discount, rounded down to whole cents."""
    return total(prices) * percent // 100
'''

TEST_SOURCE = """\
import unittest

from basket import total, with_discount


class BasketTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([100, 250]), 350)

    def test_discount_is_taken_off(self):
        self.assertEqual(with_discount([1000, 1000], 10), 1800)


if __name__ == "__main__":
    unittest.main()
"""

TEST_COMMAND = "python3 -m unittest -q"
TASK = f"A test fails. Find out why, fix the code, and show that `{TEST_COMMAND}` passes."

PLAN_STEPS = ("see what fails", "fix the code", "show that the tests pass")


def _plan(*statuses: str) -> ScriptedCall:
    todos = [{"content": step, "status": status} for step, status in zip(PLAN_STEPS, statuses, strict=True)]
    return ScriptedCall("todowrite", {"todos": todos})


RECORDING = (
    ScriptedLine(
        "I will run the tests first, to see what fails and how.",
        (_plan("in_progress", "pending", "pending"), ScriptedCall("bash", {"command": TEST_COMMAND})),
    ),
    ScriptedLine(
        "`with_discount` returns 200 where 1800 was expected: it looks as if it gives the discount itself. "
        "Let me read the code.",
        (ScriptedCall("read", {"path": "basket.py"}), ScriptedCall("grep", {"pattern": "with_discount"})),
    ),
    ScriptedLine(
        "It multiplies by the percentage instead of by what is left of the price. One line to change.",
        (
            ScriptedCall(
                "edit",
                {
                    "path": "basket.py",
                    "old": "    return total(prices) * percent // 100",
                    "new": "    return total(prices) * (100 - percent) // 100",
                },
            ),
        ),
    ),
    ScriptedLine("Now the tests again.", (ScriptedCall("bash", {"command": TEST_COMMAND}),)),
    ScriptedLine("That was the last step.", (_plan("completed", "completed", "completed"),)),
    ScriptedLine(
        "Both tests pass. `with_discount` multiplied by the discount instead of by what remains; "
        "I changed that one line of `basket.py` and nothing else."
    ),
)


def write_project(folder: Path) -> None:
    """Write the source file and the test."""
    (folder / "basket.py").write_text(BASKET_SOURCE, encoding="utf-8")
    write_test(folder)


def write_test(folder: Path) -> None:
    """Write the test in its original form."""
    (folder / "test_basket.py").write_text(TEST_SOURCE, encoding="utf-8")
