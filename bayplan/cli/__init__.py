"""Commands: what people type, and what they see.

What lives here: the `bayplan` command, its options, the tables and the machine formats. A command's
module imports the library when it works, not when it is loaded: help and completion stay fast. What
may enter: scheduler, config, cluster, api, sim, answers, web. What must not happen: a decision, or work that a
script could not do by calling the package. Who calls it: the shell.
"""
