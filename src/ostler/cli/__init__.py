"""Command-line interface; each command's module is imported only when that command runs."""
