"""The axes of the equation: one folder per axis, one file per member. A member is a class of
functions and flags.

    u = read(x)                                        what attention sees of a token
    s_ij = beta scores(Q_h u_i, K_h u_j)               how two tokens are compared
    P^h = kernel.weights(s^h, mask.seen(n))            how scores become attention
    x_i' = space.project(x_i, speed(t) write(sum_h sum_j P^h_ij V_h u_j) + drift(x_i, t))        and noise

Code uses the flags of a member, never its name. So a new member is one file: of a user, or in these
folders.
"""
