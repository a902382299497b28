"""Small games: one plays by itself while the agent works, and the user can play them."""
