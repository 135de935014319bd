"""What the paper says, number by number and claim by claim, and whether our runs say the same."""
