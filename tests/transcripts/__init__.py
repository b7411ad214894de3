"""Tests of the readers of transcript files."""
