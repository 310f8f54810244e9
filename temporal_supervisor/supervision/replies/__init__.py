"""Readers for replies of models, which correct slightly wrong forms. See `rules`."""
