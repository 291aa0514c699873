"""Inner modules that programs with graphs and sessions import."""
