"""Markdown as far as the layers need it: a text as blocks that are never cut in half.

Not a renderer: it finds headings, list items, fenced code and paragraphs, and every block is an
exact slice of the text, so that what is not meant to change keeps its bytes.
"""
