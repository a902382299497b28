"""Stores of sessions: the user's files as the settings say, and the database of a server with its accounts."""
