"""Helpers that every layer may use: checks, threads, memory limits, text, tables, files that are written atomically."""
