"""Objectives of the low-rank models: duals whose variables are factors or have a small nuclear norm."""
