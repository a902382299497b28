"""A process tree that can be killed, capped and left behind by no ending; and the OS sandbox around it."""
