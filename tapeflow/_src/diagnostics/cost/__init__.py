"""What a program's steps cost: time and memory by line, traces of functions."""
