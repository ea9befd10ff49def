"""Kernels that are written by hand because fusion does not make them."""
