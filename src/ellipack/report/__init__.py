"""What a person looks at. Figures need the extra `plot`."""
