"""Tests of the engine, and the script that breaks it."""
