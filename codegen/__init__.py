"""The compiler: block IR in, machine code for the host or PTX for NVIDIA GPUs out. It knows blocks and never arrays."""
