"""The numbers and claims of the paper, compared with the records of runs."""
