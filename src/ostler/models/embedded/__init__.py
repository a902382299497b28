"""The small model that Ostler can install and run by itself, for want of a better one."""
