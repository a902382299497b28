"""The tools: one .py and one .md each, behind one door."""
