"""The database of a server: the sessions of all users, and their accounts."""
