"""Names, places and causes that a text gives, looked up by their words."""
