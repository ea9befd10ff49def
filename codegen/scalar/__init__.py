"""Scalar functions: one table row each, with portable definitions that run on NumPy arrays and on LLVM registers."""
