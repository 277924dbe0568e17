"""Slurm as what gives nodes jobs: drained and mended as desired, asked before one is disturbed."""
