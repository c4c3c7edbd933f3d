"""Render: the output of commands for people, one module per command or kind of answer.

Lives here: tables and text for the terminal, on a rich console that the caller passes in. May enter: what `cli` may
import. Must not happen: reading options or files, or computing an answer. Called by: the commands of `cli`.
"""
