"""An oracle: scripted replies made from the true answers of a set, honest ones and such with a planted fault."""
