"""Several heads with V_h = v_h I, v_h > 0, and different scores: classes of leaders, and limits that are means of their points."""
