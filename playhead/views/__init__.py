"""What to show: pure folds of events."""
