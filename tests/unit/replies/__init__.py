"""Tests of the package `supervision.replies`."""
