"""Inner modules of TensorFlow (`tensorflow.python...`) that libraries import, each with the names that they use.

A name is here only if it does what it does in TensorFlow; a module may be there for its neighbours, without names.
Nothing below this folder is imported before a program imports an inner module.
"""
