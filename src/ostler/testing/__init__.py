"""Doubles that ship: scripted models, backends and servers, strict about what is left over."""
