"""Several heads with V_h = v_h I, v_h > 0, and different scores.

Their leaders form classes, and limits are means of the points of classes.
"""
