"""Inner modules about Python's own things: functions, their arguments, dictionaries, structures."""
