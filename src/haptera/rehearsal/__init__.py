"""Plays a change in virtual time on a copy of the cluster: a real engine on a modelled rest."""
