"""Slurm as what gives nodes jobs: it is asked before one is disturbed."""
