"""Commands: what people type, and what they see.

What lives here: the `bayplan` command, its options, the tables and the machine formats. What may
enter: scheduler, config, cluster, api, sim, web. What must not happen: a decision, or work that a
script could not do by calling the package. Who calls it: the shell.
"""
