"""What goes in and out of activities; the only room here that workflows read values from."""
