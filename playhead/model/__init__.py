"""What a session is: pure values, with no clock, randomness, disk or network."""
