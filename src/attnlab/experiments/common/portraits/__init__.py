"""The portraits of the paper: what the seven of them compute, claim and draw alike."""
