"""What models reply, read and checked."""
