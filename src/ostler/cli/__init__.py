"""The command line: argv to settings and a face; each command's file is imported only when that command runs."""
