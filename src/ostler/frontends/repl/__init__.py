"""Interactive line client that prints into the terminal's own scrollback."""
