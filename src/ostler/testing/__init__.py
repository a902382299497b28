"""Test doubles that ship with Ostler; they fail if a script is not used up."""
