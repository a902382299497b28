"""Checks of this machine, the settings and the model, for `ostler doctor`."""
