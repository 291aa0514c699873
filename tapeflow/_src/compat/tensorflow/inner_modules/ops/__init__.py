"""The inner names below `tensorflow.python.ops` that are functions of their own, a file for each subject."""
