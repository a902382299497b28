"""Runs commands as process trees that can always be killed, inside the OS sandbox."""
