"""Loads what user and project files define: rules, skills, commands, agents, hooks, checks. Runs no code."""
