"""Attacks that can be repeated: kills, damaged and hostile files, hostile texts, and load."""
