"""Flags: those of kube-scheduler, for `bayplan run`.

`table.py` lists them all, `command.py` reads them as Go programs do, `run_settings.py` applies them.
"""
