"""One module for each tool: how it is run, and how its answer is read. A module runs in its tool's own environment."""
