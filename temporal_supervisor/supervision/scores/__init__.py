"""Judging answers to questions with known answers: by code alone, counted with intervals."""
