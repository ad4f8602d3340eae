"""Words that a pattern stands for."""
import os
from typing import Any, List, NamedTuple, Optional, Union

from ._library import UsageError, check, encode, ffi, lib, new_error, path_bytes, whole

_KINDS = {"prefix": 0, "wildcard": 1, "fuzzy": 2, "regex": 3}


class Word(NamedTuple):
    """A word of an index: the documents that hold it, and how many typing errors are between it and a fuzzy pattern."""

    word: str
    df: int
    distance: int


class Expansion(NamedTuple):
    """The words that a pattern stands for, those of greatest df, and how many match in all."""

    words: List[Word]
    matched: int


def _taken(out: Any) -> Expansion:
    try:
        e = out[0]
        words = [Word(bytes(ffi.buffer(w.word, w.len)).decode("utf-8", "replace"), w.df, w.distance)
                 for w in (e.words[i] for i in range(e.n))]
        return Expansion(words, e.n_matched)
    finally:
        lib.gx_expansion_free(out[0])


def expand(file: Any, pattern: str, kind: str, max_words: int, distance: Any, fixed_prefix: int, as_is: bool,
           nearest: bool) -> Expansion:
    """Index.expand of an open gx_index."""
    if kind not in _KINDS:
        raise UsageError("kind is one of %s, not %r" % (", ".join(_KINDS), kind))
    coded = encode(pattern, "a pattern")
    opt = ffi.new("gx_expand_options *")
    opt.size = ffi.sizeof("gx_expand_options")
    opt.max_words = whole(max_words, "max_words", 1, 100000)
    opt.distance = 3 if distance is None else whole(distance, "distance", 0, 2)
    opt.fixed_prefix = whole(fixed_prefix, "fixed_prefix")
    opt.as_is, opt.nearest = bool(as_is), bool(nearest)
    out, err = ffi.new("gx_expansion **"), new_error()
    check(lib.gx_index_expand(out, file, _KINDS[kind], coded, len(coded), opt, err), err)
    return _taken(out)


def suggest(file: Any, word: str, n: int) -> List[Word]:
    """Index.suggest of an open gx_index."""
    coded = encode(word, "a word")
    out, err = ffi.new("gx_expansion **"), new_error()
    check(lib.gx_index_suggest(out, file, coded, len(coded), whole(n, "n", 1, 100000), err), err)
    return _taken(out).words


class Synonyms:
    """Rules that replace words of queries (Index.synonyms); threads may share them."""

    def __init__(self, file: Any, rules: Optional[str], path: Union[str, "os.PathLike[str]", None]) -> None:
        if (rules is None) == (path is None):
            raise TypeError("synonyms are rules or a path, one of them")
        out, err = ffi.new("gx_synonyms **"), new_error()
        if rules is not None:
            coded = encode(rules, "rules")
            check(lib.gx_synonyms_open(out, file, ffi.from_buffer(coded), len(coded), err), err)
        elif path is not None:
            check(lib.gx_synonyms_read(out, file, path_bytes(path), err), err)
        self.pointer = ffi.gc(out[0], lib.gx_synonyms_close)

    def __len__(self) -> int:
        return int(lib.gx_synonyms_n(self.pointer))

    def __repr__(self) -> str:
        return "<gpuidx.Synonyms of %d words and phrases>" % len(self)
