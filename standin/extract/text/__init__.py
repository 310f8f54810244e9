"""Reading text: words and sentences, tables, figures."""
