"""What is done with a finished site: serving, printing, comparing."""
