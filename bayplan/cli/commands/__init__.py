"""Commands: one module per command, and the modules that only one command uses."""
