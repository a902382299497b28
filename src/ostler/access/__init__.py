"""Permissions of a session: the policy of settings and flags, and the active agent, mode and profile."""
