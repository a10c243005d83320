# `make help` lists what there is.
help:
	@echo "make book | test | serve | clean"
