"""Search: which values of a method's fields do best, on images and seeds that are not reported."""
