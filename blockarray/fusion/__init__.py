"""From the expression graph to kernels: what is computed together, in which order, and its block IR."""
