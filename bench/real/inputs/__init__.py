"""The inputs of the real programs, by kind; make_inputs.py writes them."""
