"""What runs have shown: tables, comparisons and plots, as a page, as CSV and in the terminal."""
