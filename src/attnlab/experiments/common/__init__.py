"""What several experiments share: portraits, heads of the slides, followed flows, paragraphs of
text, panels, halved steps.
"""
