"""What a store is tested with, shipped so that a new store inherits all of it: the shared suite and the faults."""
