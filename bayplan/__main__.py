"""Main: `python -m bayplan` is the `bayplan` command."""

from .cli.main import main

if __name__ == "__main__":
    main()
