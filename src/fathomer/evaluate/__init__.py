"""Metrics, calibration, thresholds and reports."""
