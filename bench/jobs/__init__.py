"""Small jobs for small models, as data, with a check for each.

The files `tuning.toml` and `held_out.toml` are lists of jobs. The keys of a job:

name, kind: its name, and one of question, fix, addition, rename, data.
prompt: what the user asks.
files: the folder's files, by path.
filler: the number of unrelated files to add to the folder.
answer, answer_not: regular expressions that the answer must and must not match.
script: Python that runs in the folder afterwards and must not fail.
keeps: files that must not change. After a question, no file may have changed.
"""
