"""Reproduction of the paper: its tables, its figures and the systems it compares with.

Run ``python -m experiments`` from a clone of the repository.
"""
