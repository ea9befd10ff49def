"""Where recorded nodes become data: devices, buffers, the plan cache and evaluation."""
