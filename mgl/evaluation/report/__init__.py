"""What runs have shown, as tables, comparisons and plots, in Markdown, HTML and CSV."""
