"""The reproduction of the paper: its tables, figures and rival models.

Run ``python -m experiments`` from a clone.
"""
