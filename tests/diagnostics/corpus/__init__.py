"""Small programs with known faults, and healthy ones. See programs.py for the format of the files."""
