"""The distribution: `make dist` builds it, checks it and tries it in an empty environment.

`archives` checks the contents and metadata of sdist and wheel, `smoke` runs the installed commands, `__main__` does all
of it in order. Needs `build` and what pyproject.toml requires for building, and nothing of the package itself.
"""
