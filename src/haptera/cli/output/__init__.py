"""How answers are written: tables, words, pictures, and views that stay current."""
