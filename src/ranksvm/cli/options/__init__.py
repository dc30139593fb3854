"""Options of the commands, and the types of their values."""
