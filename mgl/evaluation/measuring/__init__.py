"""What the scripts of measurements share: tables, rows that are kept, costs."""
