"""In and out: one file per format."""
