"""What people see of a run: lines, trees, the live view."""
