"""Conformance suite for ACP agents (`ostler acp comply`)."""
