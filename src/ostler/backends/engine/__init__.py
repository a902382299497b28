"""The in-process backend that turns a model into a coding agent."""
