"""Measurements and experiments, and what Fathomer is compared with in them."""
