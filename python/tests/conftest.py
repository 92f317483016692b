"""A server for the tests of a module, and texts that are near-duplicates or not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import doppel


@pytest.fixture(scope="module")
def server() -> Iterator[doppel.Server]:
    """A server without tokens that has nothing at first."""
    with doppel.Server() as server:
        yield server


@pytest.fixture
def client(server: doppel.Server) -> Iterator[doppel.Client]:
    """A client of the server of this module."""
    with server.client() as client:
        yield client
