"""Requests and training examples → how well they can be told apart."""
