"""The line client: a prompt at the end of the terminal's own scrollback."""
