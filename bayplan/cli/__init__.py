"""Commands: the command line and its output.

Contents: the `bayplan` command, its options, the tables and the machine formats. A command's module imports the
library when it works, not when it is loaded: help and completion stay fast. Imports: scheduler, config, cluster, api,
sim, answers, web. Never: a decision, or work that a script could not do by calling the package. Callers: the shell.
"""
