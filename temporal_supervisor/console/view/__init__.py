"""Views of a run: lines, the plan as a tree, the live screen, the answer."""
