"""Objectives."""
