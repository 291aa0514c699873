"""Sessions, monitored sessions and their hooks."""
