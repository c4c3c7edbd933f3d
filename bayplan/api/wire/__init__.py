"""Wire: objects from JSON and back to it, whole or reduced; the table of the supported kinds."""
