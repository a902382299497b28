"""The database of a server: the sessions of all its users."""
