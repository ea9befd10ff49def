"""Schedules: the sizes with which a kernel is lowered, chosen from extents, dtypes, and facts about the target."""
