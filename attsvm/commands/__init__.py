"""What the package's own commands do: `attsvm solve` and `attsvm train`, one module each."""
