"""The database of a server: the sessions and accounts of all its users."""
