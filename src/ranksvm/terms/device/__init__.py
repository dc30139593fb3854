"""Data terms of rows on a device."""
