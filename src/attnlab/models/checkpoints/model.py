"""A loaded transformer: its weights as matrices of the theory, and the exact model itself."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from attnlab.displayed import Displayed, shorten
from attnlab.models.checkpoints.forward import enter, seen_by, steps
from attnlab.models.checkpoints.record import Config, Parts
from attnlab.models.checkpoints.slices import weights_of
from attnlab.progress import ProgressOption, track
from attnlab.types import Weights

if TYPE_CHECKING:
    import xarray

INSTALL = "pip install 'attnlab[models]'"


class Tokenizer(Protocol):
    """A function from a text to its ids and words."""

    def __call__(self, text: str, special: bool = True) -> tuple[list[int], list[str]]:
        """Return ids and words; with special, also the tokens that the model adds at the ends."""
        ...


@dataclass(frozen=True, eq=False)
class Model(Displayed):
    """A trained transformer: a checkpoint that `attnlab.models.load` opened.

    Its weights stay in their file until something needs them.

    Attributes
    ----------
    name : str
        The name of the model.
    parts : Parts
        Its matrices.
    raw_config : mapping
        The checkpoint's own config.json.
    source : str
        Where it came from, in words.
    licence : str
        Its licence, in words.
    tokenizer_file : Path or None
        The file of its tokenizer.
    address : str or None
        The name with which `load` and a Spec find it again. None: it is in memory only.
    given_tokenizer : function or None
        The tokenizer given to `load`, from (text, special) to (ids, words).
    head_names : tuple of str
        A name for each head of a layer, if `heads` was given names.
    without_tokenizer : str
        Why the tokenizer that came with the weights cannot be used, if so.

    Examples
    --------
    >>> model.attention([3, 1, 4]).shape == (model.config.layers, model.config.heads, 3, 3)
    True
    >>> bool((abs(model.attention([3, 1, 4]).sum(axis=-1) - 1.0) < 1e-12).all())
    True
    """

    name: str
    parts: Parts
    raw_config: Mapping[str, Any]  # the checkpoint's own config.json
    source: str  # its source, in words
    licence: str = "not stated"
    tokenizer_file: Path | None = field(default=None, repr=False)
    address: str | None = None  # the name for attnlab.models.load and a Spec; None: in memory only
    given_tokenizer: Tokenizer | None = field(
        default=None, repr=False
    )  # of another library, instead of the file
    head_names: tuple[str, ...] = ()
    without_tokenizer: str = field(default="", repr=False)

    @property
    def config(self) -> Config:
        """The shape of the model, in the words of attnlab."""
        return self.parts.config

    instead = {
        "movie": (
            "A model has no time axis. Film what it does to a text:"
            " al.movie(al.models.sentence(model, text), path), or a flow: al.models.flow(model)."
        ),
        "save": (
            "Keep the folder of its checkpoint, or the name with which al.models.load finds it"
            " again (model.address)."
        ),
        "to_xarray": "al.to_xarray(al.models.spectra(model)) has the numbers of all heads.",
    }

    def __repr__(self) -> str:
        c = self.config
        shape = (
            f"{c.family}, d = {c.d}, {c.heads} head{'s' if c.heads != 1 else ''}, {c.layers}"
            f" layer{'s' if c.layers != 1 else ''}{', tied' if c.is_tied else ''}"
        )
        return f"Model({shorten(self.name)}: {shape})"

    @property
    def has_tokenizer(self) -> bool:
        """Whether a text can be cut into the model's tokens."""
        has_one = self.given_tokenizer is not None or self.tokenizer_file is not None
        return has_one and self.parts.embedding is not None

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The model's own tokenizer. It is read when it is first needed."""
        if self.given_tokenizer is not None:
            return self.given_tokenizer
        if self.parts.embedding is None:
            raise ValueError(
                f"{self.name} has no embedding of tokens, so it cannot read a text. Give"
                f" hidden_states and attention the stream x (n, {self.config.d}) that enters"
                " layer 0."
            )
        if self.tokenizer_file is None:
            reason = f" {self.without_tokenizer}" if self.without_tokenizer else ""
            raise ValueError(
                f"{self.name} has no tokenizer.json, so a text cannot be cut into its tokens."
                f"{reason} Give"
                f" token ids (0 to {self.config.vocabulary - 1}) to hidden_states and attention,"
                " or load the model with tokenizer=. The tokenizer.json in the folder of a"
                " checkpoint is read without it."
            )
        from attnlab.models.checkpoints.texts import open_tokenizer

        return open_tokenizer(self.tokenizer_file, self.config.vocabulary)

    @overload
    def tokens(self, text: str, special: bool = True) -> tuple[np.ndarray, list[str]]: ...

    @overload
    def tokens(self, text: list[str], special: bool = True) -> xarray.Dataset: ...

    def tokens(
        self, text: str | list[str], special: bool = True
    ) -> tuple[np.ndarray, list[str]] | xarray.Dataset:
        """Return the ids of a text, and the piece of text of each; of a list of texts as a Dataset.

        Parameters
        ----------
        text : str or list of str
            The text, or several texts.
        special : bool, optional
            Whether to add the model's own tokens at the ends.

        Returns
        -------
        ids : array (n,)
            The ids of the tokens.
        words : list of str
            The piece of text of each token.

        Notes
        -----
        A list gives an xarray.Dataset with `id`, `word` and `is_special` (text, token), and
        `length` (text). Beyond the end of a text ids are -1 and words are empty.
        """
        if is_many(text):
            from attnlab.models.checkpoints.many import tokens_dataset

            return tokens_dataset(self, text, special)
        if not isinstance(text, str):
            raise ValueError(f"text must be a text or a list of texts, got {say_given(text)}.")
        ids, words = self.tokenizer(text, special)
        return np.array(ids, dtype=np.int64), words

    @overload
    def hidden_states(
        self, ids: list[str] | list[np.ndarray], mask: Any = None, *, dtype: Any = np.float64
    ) -> xarray.Dataset: ...

    @overload
    def hidden_states(
        self, ids: Any, mask: Any = None, *, dtype: Any = np.float64
    ) -> np.ndarray: ...

    def hidden_states(
        self, ids: Any, mask: Any = None, *, dtype: Any = np.float64
    ) -> np.ndarray | xarray.Dataset:
        """Return the stream after the embedding and after every layer.

        If the family has a final norm (GPT-2, Llama, GPT-NeoX), it is applied to the last entry, as
        in the original.

        Parameters
        ----------
        ids : str, array (*batch, n) of int, or list
            A text, or the ids of the tokens, as `tokens` gives them. A model without an embedding
            reads x (*batch, n, d) instead, the stream that enters layer 0. A list of texts or of
            such arrays gives a Dataset, as `run` does.
        mask : array (*batch, n), optional
            False or 0 for padding, which no other token sees.
        dtype : optional
            float64 or float32.

        Returns
        -------
        array (*batch, layers + 1, n, d)
            The stream. For a list: an xarray.Dataset with x (text, step, token, coordinate).
        """
        if is_many(ids):
            return self._many(ids, mask, "x", dtype)
        x, seen = self._embed(ids, mask, dtype)
        return np.stack([x, *(step.x for step in steps(self.parts, x, seen, keep=()))], axis=-3)

    @overload
    def attention(
        self, ids: list[str] | list[np.ndarray], mask: Any = None, *, dtype: Any = np.float64
    ) -> xarray.Dataset: ...

    @overload
    def attention(self, ids: Any, mask: Any = None, *, dtype: Any = np.float64) -> np.ndarray: ...

    def attention(
        self, ids: Any, mask: Any = None, *, dtype: Any = np.float64
    ) -> np.ndarray | xarray.Dataset:
        """Return the attention matrices of every layer. Row i has the weights with which token i
        attends to the tokens.

        Parameters
        ----------
        ids, mask, dtype
            As in `hidden_states`.

        Returns
        -------
        array (*batch, layers, h, n, n)
            The matrices of h heads. For a list: an xarray.Dataset with attention (text, layer,
            head, token, attended).
        """
        if is_many(ids):
            return self._many(ids, mask, "attention", dtype)
        x, seen = self._embed(ids, mask, dtype)
        return np.stack([step.attention for step in steps(self.parts, x, seen)], axis=-4)

    def run(
        self,
        texts: Any,
        keep: Sequence[str] = ("x", "attention", "heads"),
        *,
        special: bool = True,
        dtype: Any = np.float64,
        progress: ProgressOption = False,
    ) -> xarray.Dataset:
        """Return the stream, the attention and what each head adds, for many texts from one pass.

        The numbers of a text are those that it gets alone, to rounding. They are NaN beyond its
        end.

        Parameters
        ----------
        texts : str, array (n,), or list of them
            The texts, or the ids of their tokens. For a model without an embedding: arrays (n, d).
        keep : sequence of str, optional
            What to keep: "x" (text, step, token, coordinate), the stream, where step 0 is the
            embedding; "attention" (text, layer, head, token, attended); "heads" (text, layer,
            head, token, coordinate), what each head adds to each token. The sum of the heads and
            the output bias is what attention adds, before a norm of it. "feedforward" (text,
            layer, token, coordinate) is what the feed-forward part adds.
        special : bool, optional
            Whether to add the model's own tokens at the ends.
        dtype : optional
            float64 or float32.
        progress : bool, function or Progress, optional
            False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
            cancel.

        Returns
        -------
        xarray.Dataset
            What `keep` names. Coordinates: `content` and `length` (text), `id`, `word` and
            `is_special` (text, token).

        Examples
        --------
        >>> import numpy as np
        >>> data = model.run([np.array([3, 1, 4]), np.array([1, 5])])
        >>> data.sizes["text"], data["length"].values.tolist()
        (2, [3, 2])
        >>> alone = model.attention([1, 5])
        >>> bool(np.allclose(data["attention"].values[1, ..., :2, :2], alone))
        True
        """
        from attnlab.models.checkpoints.many import list_texts, run_texts

        given = list_texts(texts)
        with track(progress, "texts") as progress:
            return run_texts(self, given, tuple(keep), special, dtype, progress)

    def without(
        self,
        heads: Sequence[tuple[int, int]] = (),
        *,
        attention: Sequence[int] = (),
        feedforward: Sequence[int] = (),
        norms: Sequence[int] = (),
        mean: Sequence[Any] | None = None,
        progress: ProgressOption = False,
    ) -> Model:
        """Return the model without some of its parts (ablation). All else stays as it was trained.

        Parameters
        ----------
        heads : sequence of (int, int), optional
            Pairs (layer, head) of heads that write nothing. The output bias stays.
        attention : sequence of int, optional
            Layers whose attention adds nothing, not even its output bias.
        feedforward : sequence of int, optional
            Layers whose feed-forward part adds nothing.
        norms : sequence of int, optional
            Layers whose norms become identities. Norms of queries and keys, and the final norm,
            stay.
        mean : sequence of str or of array, optional
            Texts, or ids of tokens. If given, a part that is left out adds its mean over all tokens
            of these texts, as measured in the whole model, in the place of nothing.
        progress : bool, function or Progress, optional
            False, True (a bar), a function f(fraction, doing), or an al.Progress, which can also
            cancel.

        Returns
        -------
        Model
            A model in memory, which has no address. Its name says what is gone.

        Examples
        --------
        >>> quiet = model.without(heads=[(0, 1)])
        >>> bool(quiet.weights(0, 1).V[0].any()), bool(quiet.weights(0, 0).V[0].any())
        (False, True)
        """
        from attnlab.models.checkpoints.ablation import ablate

        with track(progress, "mean over texts") as progress:
            return ablate(self, heads, attention, feedforward, norms, mean, progress)

    def _many(self, texts: Any, mask: Any, keep: str, dtype: Any) -> xarray.Dataset:
        if mask is not None:
            raise ValueError(
                "mask belongs to one array of ids. A list of texts pads itself: leave mask out."
            )
        return self.run(texts, (keep,), dtype=dtype)

    def weights(
        self,
        layer: int,
        head: int | Sequence[int] | None = None,
        fold_norm: bool = True,
        offset: int = 0,
    ) -> Weights:
        """Return the matrices of a layer: M = Q^T K = W_Q^T W_K / sqrt(head size), and V = W_O W_V
        as factors.

        The flow of the theory has no biases, so they are left out. `source` says so.

        Parameters
        ----------
        layer : int
            The number of the layer, counted from 0.
        head : int or sequence of int, optional
            The number of a head, or several. The default is all heads of the layer.
        fold_norm : bool, optional
            Whether to put the gain (and for LayerNorm the centring) of a norm before attention into
            Q, K and V.
        offset : int, optional
            With rotary positions: the place of the query minus the place of the key.

        Returns
        -------
        Weights
            The matrices.
        """
        return weights_of(self.parts, self.name, layer, head, fold_norm=fold_norm, offset=offset)

    def _embed(self, ids: Any, mask: Any, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the embedded tokens (*batch, n, d), and which token sees which."""
        check_dtype(dtype)
        if isinstance(ids, str) and self.parts.embedding is not None:
            ids, _ = self.tokens(ids)
        checked = check_input(ids, self.parts)
        shape = checked.shape if self.parts.embedding is not None else checked.shape[:-1]
        seen = np.ones(shape, dtype=bool) if mask is None else np.asarray(mask).astype(bool)
        if seen.shape != shape:
            raise ValueError(f"mask must have one entry per token, {shape}, got {seen.shape}.")
        return enter(self.parts, checked, dtype, seen), seen_by(self.config, seen)


def is_many(given: Any) -> bool:
    """Whether this is a list of texts or of arrays, and not one text or one array.

    A list with a text is a list of texts. A list of numbers is one text, and a list of lists of
    numbers is one array, as in NumPy.
    """
    if not isinstance(given, list | tuple) or not given:
        return False
    return any(isinstance(one, str) for one in given) or all(
        isinstance(one, np.ndarray) and one.ndim > 0 for one in given
    )


def say_given(given: Any) -> str:
    """Say what was given in the place of a text, for a message."""
    if isinstance(given, bytes | bytearray):
        return "bytes, which have no letters yet: give text.decode()"
    if given is None or isinstance(given, int | float):
        return repr(given)
    if isinstance(given, list | tuple) and not given:
        return "an empty list"
    return f"a {type(given).__name__}"


def check_dtype(dtype: Any) -> None:
    """Refuse a precision that is neither single nor double."""
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, got {np.dtype(dtype)}.")


def check_input(given: Any, parts: Parts) -> np.ndarray:
    """Return what a model reads: ids (*batch, n), or x (*batch, n, d) if it has no embedding."""
    if parts.embedding is not None:
        return check_ids(given, parts.config)
    return check_stream(given, parts.config)


def check_stream(x: Any, config: Config) -> np.ndarray:
    """Return the stream (*batch, n, d) that enters layer 0, finite, and not longer than the model
    has places for.
    """
    is_array = not (x is None or isinstance(x, str | bytes))
    array: np.ndarray = np.asarray(x) if is_array else np.zeros(0)
    if array.ndim < 2 or array.shape[-1] != config.d or array.size == 0:
        got = f"shape {array.shape}" if is_array else say_given(x)
        raise ValueError(
            f"The tokens must be an array x of shape (n, {config.d}) or (*batch, n, {config.d}),"
            f" because they are vectors here and not ids. Got {got}."
        )
    if array.dtype.kind not in "iuf" or not np.isfinite(array).all():
        raise ValueError(
            f"The tokens x must hold finite real numbers, got {array.dtype}"
            f"{'' if array.dtype.kind not in 'iuf' else ' with NaN or infinite entries'}."
        )
    if array.shape[-2] > config.length:
        raise ValueError(
            f"The model has places for {config.length} tokens, got {array.shape[-2]}. Shorten the"
            " input."
        )
    return array


def check_ids(ids: Any, config: Config) -> np.ndarray:
    """Return token ids (*batch, n) that the model knows, and not more than it has places for."""
    if isinstance(ids, str):
        raise ValueError(
            "ids must be token ids, got a text. m.tokens(text) gives its ids and words."
        )
    if ids is None or isinstance(ids, bytes | bytearray):
        raise ValueError(f"ids must be token ids, whole numbers (n,), got {say_given(ids)}.")
    if (
        isinstance(ids, Sequence)
        and len(ids) == 2
        and isinstance(ids[0], np.ndarray)
        and isinstance(ids[1], list | tuple)
        and all(isinstance(word, str) for word in ids[1])
    ):
        raise ValueError(
            "ids must be token ids, got a pair: m.tokens(text) gives (ids, words); take the first."
        )
    try:
        array = np.asarray(ids)
    except ValueError:
        raise ValueError(
            "ids must be one array (n,) or (*batch, n), got lists of different lengths. Several"
            " texts are a list of arrays, one for each text."
        ) from None
    if array.ndim < 1 or array.size == 0 or array.dtype.kind not in "iu":
        if array.dtype.kind in "US":
            got = "texts"
        elif array.ndim < 1 or array.dtype == object or array.size == 0:
            got = say_given(ids)
        else:
            got = f"{array.dtype} of shape {array.shape}"
        raise ValueError(f"ids must be whole numbers of shape (n,) or (*batch, n), got {got}.")
    if array.min() < 0 or array.max() >= config.vocabulary:
        raise ValueError(
            f"Token ids must be 0 to {config.vocabulary - 1}, got {array.min()} to {array.max()}."
        )
    if (
        config.window is not None
        and not config.is_window_computed
        and array.shape[-1] > config.length == config.window
    ):
        raise ValueError(
            f"The sliding window of {config.window} tokens is not computed here: texts of up to"
            f" {config.window} tokens are exact. Got {array.shape[-1]}. Shorten the text."
        )
    if array.shape[-1] > config.length:
        raise ValueError(
            f"The model has places for {operator.index(config.length)} tokens, got"
            f" {array.shape[-1]}. Shorten the text."
        )
    return array
