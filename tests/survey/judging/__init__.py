"""An independent judge of the drafts that `switchback init` writes.

Nothing here uses the project's contract reader or its comparison: two implementations that agree are
evidence, one is none.
"""
