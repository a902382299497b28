"""The demonstration: a scratch folder with a failing test, and the agent that mends it."""
