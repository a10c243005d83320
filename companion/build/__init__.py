"""The rebuild: which chapters must run, running them, and the site made of what they left."""
