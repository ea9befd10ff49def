"""Block IR: types, operations, kernels, the builder, their text form, what must hold, and what they mean."""
