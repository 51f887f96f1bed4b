"""The gateway with the clients that people use."""
