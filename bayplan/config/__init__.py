"""Config: KubeSchedulerConfiguration, read strictly, with defaults filled in.

Contents: the configuration's types, the typed arguments of plugins, the default plugins, the rules of validation,
reading files, and the expansion of multiPoint into plugin lists. Imports: api, releases. Never: importing a plugin,
or depending on how one uses its arguments. Callers: runtime and scheduler build profiles from it, plugins take their
arguments from it, sim and cli load files with it.
"""
