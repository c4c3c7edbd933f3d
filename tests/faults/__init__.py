"""Fault histories: the live driver on a simulated API server, on virtual time, with faults chosen by a seed."""
