"""Flows that are sums of s^p e^{mu s} while leaders stay: causal masks with several heads, heads with
V_h that are diagonal or have a diagonal sum, and one head whose V has Jordan blocks.

The softmax flow is followed as for several heads with V_h = v_h I (limits/heads/). What differs is
the closed form, which is exact in rational numbers, and Abel's test, which takes any exponents and
powers.
"""
