"""`ostler demo`: a temporary project with a failing test that the agent fixes."""
