"""What answers a prompt: the protocol of an agent, the built-in one, and the tools that let any agent search."""
