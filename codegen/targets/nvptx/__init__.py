"""NVIDIA GPUs: their descriptions, memory, and launches through the driver."""
