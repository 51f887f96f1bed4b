"""Compaction by other packages, as contenders of a replay: each as documented, all with our digest and our counter."""
