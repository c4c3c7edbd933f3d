"""Random examples: the number of cases that a property is tried with, few in every run and many in `make slow`."""

import os

FACTOR = int(os.environ.get("BAYPLAN_EXAMPLES", "1"))


def examples(count: int) -> int:
    """`count` in every run; BAYPLAN_EXAMPLES times as many if that is set."""
    return count * FACTOR
