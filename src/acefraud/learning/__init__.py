"""The order of the loop: decide, hear, judge, reflect, curate."""
