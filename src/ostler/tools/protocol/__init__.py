"""Tools that a protocol asks for and no model is told of: an ACP agent's files and terminals, through the one door."""
