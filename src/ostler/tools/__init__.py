"""Tools that models can call (one `.py` and one `.md` each) and the tool host."""
