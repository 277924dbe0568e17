"""Datagrams and TLS between neighbours."""
