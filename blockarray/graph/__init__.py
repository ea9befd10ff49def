"""The expression graph: whole arrays, pure, recorded and not yet computed."""
