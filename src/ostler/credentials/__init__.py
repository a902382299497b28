"""The one place where keys and tokens are stored: the system's keyring, or a file that only the user can read."""
