"""The rules of the three layers of memory, pure: the standard library and nothing else.

The service and the scripts for a plain folder run the same code.
"""
