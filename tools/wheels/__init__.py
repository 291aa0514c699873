"""The wheels of a release: manylinux_2_28 for x86-64 and ARM, several Pythons, from one machine."""
