# Aliases of the tasks in book.py; options go in ARGS: make notebooks ARGS=07

.PHONY: lab test test-all site notebooks lint bench lock doctor
lab test test-all site notebooks lint bench lock doctor:
	python3 book.py $@ $(ARGS)
