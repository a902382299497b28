"""Slash commands, ours and discovered ones, for every face alike: what is typed after a slash becomes an outcome."""
