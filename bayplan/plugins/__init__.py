"""The in-tree plugins: one module (or small folder) each, named after the plugin.

May enter: `api`, `table`, `framework`, `config`. Must not happen: importing another plugin, writing the table,
threads, network, wall clock, a loop over nodes or pods. Called by: `runtime`, which is given `registry.IN_TREE`.
"""
