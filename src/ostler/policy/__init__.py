"""May this happen? Rules, verdicts and what a command line would do; pure functions over plain data."""
