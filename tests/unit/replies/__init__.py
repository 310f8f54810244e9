"""Tests of the package `temporal_supervisor.supervision.replies`."""
