"""Other packages' compaction as candidates of a replay, each set up as documented, all with our digest and our counter."""
