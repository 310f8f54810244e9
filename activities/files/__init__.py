"""Files as people have them, made into tables and documents."""
