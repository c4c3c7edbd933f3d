"""Settings for all tests."""

import os

from hypothesis import settings

# How long an example takes says nothing about the code when the machine is busy. In continuous integration the
# examples are the same in every run; elsewhere they are new ones, and a failure prints how to repeat it.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
