"""The portraits of the paper: what all seven compute, claim and draw."""
