"""What tables and texts say about a question, exactly: queries with their results in words, and sentences."""
