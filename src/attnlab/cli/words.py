"""The meanings of words and keys of a Spec that have no docstring. Their lists are where they are
checked.

`attnlab list` and docs/spec.md show both. `tests/docs/test_docs.py` fails if a word or a key has no
line here.
"""

from __future__ import annotations

from typing import NamedTuple

from attnlab.types import ACTIVATIONS, FRAMES, STEPPERS
from attnlab.weights.spectrum import BASES

WORDS = {
    "activations": ACTIVATIONS,
    "steppers": STEPPERS,
    "frames": FRAMES,
    "bases": BASES,
}
"""The words that a key takes, under the plural of the key's name."""

WORD_MEANINGS = {
    "activations": {str(word): word.value for word in ACTIVATIONS},
    "steppers": {str(word): word.value for word in STEPPERS},
    "frames": {str(word): word.value for word in FRAMES},
    "bases": {
        "orthogonal": "The family spectrum with a random orthogonal eigenbasis: V is normal.",
        "random": "The family spectrum with a random oblique eigenbasis of condition number 10.",
        "identity": (
            "The family spectrum without a change of basis: V is the block diagonal matrix itself."
        ),
    },
}

DYNAMICS_MEANINGS = {
    "beta": "The inverse temperature: scores are beta <Q x_i, K x_j>.",
    "geometry": "The space of the tokens.",
    "kernel": "How scores become attention.",
    "mask": "Which tokens see which.",
    "feedforward": (
        "What moves tokens besides attention: a table [dynamics.feedforward], the feed-forward"
        " variant, or a drift."
    ),
    "scores": "How a query is compared with a key.",
    "read": "What attention, and the values, see of a token.",
    "write": "What happens to the output of attention before it moves a token.",
    "speed": "A factor in time.",
    "noise": "What moves tokens at random.",
    "normalisation": (
        "A scheme by name, which chooses geometry, read, write and speed: post, pre, peri, ngpt or"
        " ln_scaling."
    ),
}

START_MEANINGS = {
    "batch": (
        "A whole number b: a batch of b members, so the run has the shape (b, T, n, d). Not with"
        " moved."
    ),
    "moved": (
        'A table of tokens with another start, { "5" = [1.2, 1.9] }: token number (from 0) and its'
        " d coordinates."
    ),
}

FEEDFORWARD_MEANINGS = {
    "W": "The outer matrix (d, d); default: the identity.",
    "sigma": "The activation.",
    "bias": "d numbers added inside sigma.",
    "bias_outside": "d numbers added outside.",
}

SOLVE_MEANINGS = {
    "t_end": "The end of the run in continuous time. Give t_end, or times, or layers.",
    "layers": (
        "The number of residual layers x <- x + dt * attention: another equation, with a clock of"
        " its own."
    ),
    "times": (
        "The times to keep, ascending. Without t_end, the last of them is the end. With layers:"
        " whole multiples of dt."
    ),
    "saves": (
        "How many times to keep, equally spaced from 0 to the end, if times is not given. Default:"
        " 101; with layers, every layer; with euler and rk4, the steps themselves (at most 101)."
    ),
    "rtol": "The allowed error, relative to the largest token; at least 1e-14, at most 0.1.",
    "atol": (
        "The allowed absolute error, added to that of rtol; at most a tenth of the largest first"
        " token."
    ),
    "stepper": "How continuous time is integrated. With layers: leave it out.",
    "dt": (
        "The step of euler and rk4, which need it, or of a layer (default 1.0). Not with the"
        " adaptive stepper."
    ),
    "frame": "Which tokens are integrated. Off the sphere a run always has both, x and z.",
    "max_steps": "A run that needs more steps stops there, with the status MAX_STEPS.",
    "rng": "The seed of the noise, a whole number; only with noise.",
    "measure_error": (
        "Measure the error against a ten times more accurate run and keep it in run.error. More"
        " than doubles the time; rtol must then be at least 1e-13."
    ),
}


class Kind(NamedTuple):
    """A kind of names: the word for it in `attnlab list`, and what the names mean."""

    word: str
    about: str


KIND_MEANINGS = {
    "weights families": Kind("weights", "The matrices Q, K and V: family = ... in [weights]."),
    "published matrices": Kind(
        "published", "The matrices V of the paper's figures: matrix = ... of the family published."
    ),
    "bases": Kind("bases", "The eigenbasis of the family spectrum: basis = ... in [weights]."),
    "start laws": Kind("starts", "The first tokens: law = ... in [start]."),
    "keys of every law": Kind(
        "every", "The keys in [start] that every start law takes besides its own."
    ),
    "keys of [dynamics]": Kind("dynamics", "What a Spec may say about the equation."),
    "geometries": Kind("geometries", "The space of the tokens: geometry = ... in [dynamics]."),
    "kernels": Kind("kernels", "How scores become attention: kernel = ... in [dynamics]."),
    "masks": Kind("masks", "Which tokens see each other: mask = ... in [dynamics]."),
    "scores": Kind("scores", "How a query is compared with a key: scores = ... in [dynamics]."),
    "reads": Kind("reads", "What attention sees of a token: read = ... in [dynamics]."),
    "writes": Kind("writes", "What happens to the output of attention: write = ... in [dynamics]."),
    "speeds": Kind("speeds", "A factor in time: speed = ... in [dynamics]."),
    "drifts": Kind(
        "drifts", "What moves tokens besides attention: feedforward = ... in [dynamics]."
    ),
    "noises": Kind("noises", "What moves tokens at random: noise = ... in [dynamics]."),
    "keys of [dynamics.feedforward]": Kind(
        "feedforward", "What a Spec may say about the feed-forward variant."
    ),
    "activations": Kind("activations", "The activation of the feed-forward variant: sigma = ..."),
    "keys of [solve]": Kind("solve", "What a Spec may say about how the equation is solved."),
    "steppers": Kind("steppers", "How continuous time is integrated: stepper = ... in [solve]."),
    "frames": Kind("frames", "Which tokens are integrated, x or z: frame = ... in [solve]."),
    "observables": Kind(
        "observables",
        "Numbers that a run keeps over time: observe = [...] above the first section.",
    ),
    "kinds of figure": Kind("figures", "What attnlab plot --kind ... and al.plot(run, kind) draw."),
    "example Specs": Kind("examples", "Specs that come with attnlab: attnlab run NAME."),
    "results": Kind(
        "results",
        "Theorems, conjectures and estimates: attnlab predict and attnlab check --name NAME.",
    ),
    "experiments": Kind(
        "experiments", "Experiments with figures and claims: attnlab reproduce NAME."
    ),
}
"""What `attnlab list` says about each kind."""
