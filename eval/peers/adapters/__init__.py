"""Adapters: one module per tool, which runs the tool and reads its answer. A module runs in the environment of its tool."""
