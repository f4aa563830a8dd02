"""A real Letta on this machine, from pip packages alone: `make letta` and `make letta-stop`.

Standard library only, for it runs before anything is installed.
"""
