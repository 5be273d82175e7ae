"""Scores, calibration, thresholds and reports."""
