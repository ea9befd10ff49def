"""Passes: functions from a kernel to a kernel that computes the same."""
