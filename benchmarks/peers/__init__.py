"""Candidates of a replay that run other packages' compaction, each configured as documented, with our digest and counter."""
