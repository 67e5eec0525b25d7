"""How fast selection, curation and decisions are, beside plain ways to do the same and beside other learners."""
