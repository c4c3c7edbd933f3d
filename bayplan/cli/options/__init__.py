"""Options: groups of options that several commands share, and the conversion of their values."""
