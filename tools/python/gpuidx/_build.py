"""Building an index from Python's documents."""
from __future__ import annotations

import collections.abc
import decimal
import enum
import ipaddress
import numbers
import os
import uuid
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _queries
from ._index import Index
from ._library import UINT64_MAX, UsageError, check, ffi, lib, new_error, options, path_bytes, whole

_DUPLICATES = {"fail": lib.GX_DUPLICATES_FAIL, "first": lib.GX_DUPLICATES_FIRST, "last": lib.GX_DUPLICATES_LAST}
IDS = ("id", "docno", "_id", "doc_id", "docid")
_TEXTS = ("text", "contents", "content", "body")
_SCALES = {"collection": False, "list": True}
_MEMBERS = ("size", "id", "title", "text", "id_len", "title_len", "text_len", "values", "n_values", "vector",
            "n_vector")
_DOCUMENT = np.dtype({
    "names": _MEMBERS,
    "formats": ["u4" if name in ("n_values", "n_vector") else "u8" for name in _MEMBERS],
    "offsets": [ffi.offsetof("gx_document", name) for name in _MEMBERS],
    "itemsize": ffi.sizeof("gx_document"),
})
_VALUE = np.dtype({
    "names": ["attribute", "text", "len"],
    "formats": ["u4", "u8", "u8"],
    "offsets": [ffi.offsetof("gx_attribute_value", name) for name in ("attribute", "text", "len")],
    "itemsize": ffi.sizeof("gx_attribute_value"),
})
# A batch of documents for one call of the library ends with the document by which it reaches one of these.
_BATCH, _BATCH_CHARACTERS, _BATCH_TERMS = 256, 1 << 18, 1 << 16


def _field(document: Any, names: Tuple[str, ...], what: str, number: int) -> Any:
    for name in names:
        if name in document:
            return document[name]
    raise ValueError("document %d has no %s: one of the keys %s is wanted, and it has %s" % (
        number, what, ", ".join(names), ", ".join(map(repr, list(document)[:8]))))


def _named(documents: Any) -> Any:
    """The dataset that a name means; all else as given."""
    if not isinstance(documents, str):
        return documents
    if not documents.startswith("irds:"):
        raise TypeError('documents are an iterable, or name a corpus of ir_datasets, as in "irds:beir/scifact"')
    import ir_datasets

    return ir_datasets.load(documents[len("irds:"):])


def listed(documents: Any) -> Any:
    """What iterates over the documents: of a corpus of ir_datasets, a DataFrame, a dict, or the documents as given."""
    if hasattr(documents, "docs_iter"):  # a dataset of ir_datasets
        return documents.docs_iter()
    if hasattr(documents, "get_corpus_iter"):  # one of PyTerrier
        return documents.get_corpus_iter()
    if hasattr(documents, "columns") and hasattr(documents, "itertuples"):  # a DataFrame; missing values become None
        columns = list(documents.columns)
        present = documents.astype(object).where(documents.notna(), None)
        return (dict(zip(columns, row)) for row in present.itertuples(index=False, name=None))
    if isinstance(documents, Mapping):  # {id: text} or {id: document}
        return ({**d, "id": i} if isinstance(d, Mapping) else (i, d) for i, d in documents.items())
    if isinstance(documents, (str, bytes)) or not hasattr(documents, "__iter__"):
        raise TypeError("documents are an iterable, not %s" % type(documents).__name__)
    return documents


def _count(documents: Any) -> Optional[int]:
    """How many documents these are, where it is known."""
    if hasattr(documents, "docs_count"):
        counted: Optional[int] = documents.docs_count()
        return counted
    return len(documents) if hasattr(documents, "__len__") else None


def _keys(document: Any, number: int) -> Mapping[str, Any]:
    """The fields of a document that is a dict or a named tuple. A type of ir_datasets without a text field says
    what its text is."""
    if isinstance(document, Mapping):
        return document
    if hasattr(document, "_asdict"):
        fields: Dict[str, Any] = document._asdict()
        if not any(name in fields for name in _TEXTS) and hasattr(document, "default_text"):
            fields = {**fields, "text": document.default_text(), "title": None}
        return fields
    raise TypeError("document %d is of type %s: a dict or a tuple is wanted" % (number, type(document).__name__))


def _is_missing(value: Any) -> bool:
    """Whether this stands for no value: None, NaN, NaT, pandas' NA, a masked element of numpy."""
    if value is None or value is np.ma.masked or type(value).__name__ == "NAType":
        return True
    try:
        differs = value != value
    except (TypeError, ValueError, ArithmeticError):
        return False
    return isinstance(differs, (bool, np.bool_)) and bool(differs)  # of arrays it is another array


def _scalar_text(value: Any) -> Optional[str]:
    """A single value as the library reads it; None: it is of a type whose str() need not be what it holds, as bytes.

    A float that is a whole number is written as that number: pandas makes floats of a column of whole numbers in which
    one is missing. From 2^53 floats stand for several whole numbers, and stay floats."""
    if isinstance(value, str):
        return str.__str__(value)  # of an Enum of strings the string, and not the member's name
    if isinstance(value, enum.Enum):
        return _scalar_text(value.value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        digits = min(52, int(np.finfo(type(value)).nmant)) + 1 if isinstance(value, np.floating) else 53
        number: Any = value
        if abs(number) < 1 << digits and number == int(number):
            return str(int(number))
        return str(value)
    if isinstance(value, _WRITTEN) or type(value).__name__ == "Period":  # of pandas
        return str(value) if not isinstance(value, np.timedelta64) else None
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        return path if isinstance(path, str) else None
    if hasattr(value, "isoformat") and not hasattr(value, "total_seconds"):  # date, datetime, pandas' Timestamp
        return str(value.isoformat())
    return None


def _is_list(value: Any) -> bool:
    """Whether this holds several values, which can be read more than once: a list, set, array, a Series of pandas, a
    tensor, the keys of a dict."""
    return (isinstance(value, collections.abc.Collection) and not isinstance(value, _NO_LISTS)
            and not hasattr(value, "columns"))


_WRITTEN = (numbers.Real, decimal.Decimal, np.datetime64, uuid.UUID, ipaddress.IPv4Address, ipaddress.IPv6Address)
_NO_LISTS = (str, bytes, bytearray, memoryview, Mapping, enum.Enum)


def _value_texts(value: Any, number: int, name: str) -> Iterator[str]:
    """A value as the library reads it: none for None and NaN, several for a list. TypeError. number: of the document;
    name: of the attribute."""
    if type(value) in (str, int):
        yield str(value)
        return
    if type(value) in (list, tuple, set):
        for one in value:
            yield from _value_texts(one, number, name)
        return
    if _is_missing(value):
        return
    text = _scalar_text(value)
    if text is not None:
        yield text
    elif getattr(value, "ndim", None) == 0 and hasattr(value, "item") and not isinstance(value, np.generic):
        yield from _value_texts(value[()] if isinstance(value, np.ndarray) else value.item(), number, name)
    elif _is_list(value):
        for one in value:
            yield from _value_texts(one, number, name)
    else:
        raise TypeError("document %d: the attribute %r has a value of type %s: a str, number, bool, date or a list of "
                        "these is wanted" % (number, name, type(value).__name__))


class Row(NamedTuple):
    """A document in parts, as it was given. values: what it has under the name of each attribute; vector: {term:
    weight} or (term, weight) pairs."""

    id: Any
    title: Any
    text: Any
    values: Sequence[Any] = ()
    vector: Any = None


def row(d: Any, number: int, names: Sequence[str] = (), key: Optional[str] = None, text_needed: bool = True) -> Row:
    """Document number `number`. names: of attributes; key: under which it has its vector."""
    if isinstance(d, (tuple, list)) and not hasattr(d, "_asdict"):
        if names or key is not None:
            raise TypeError("document %d is of type %s: with %s a dict is wanted" % (
                number, type(d).__name__, "attributes" if names else "the key of vectors"))
        if len(d) == 2:
            return Row(d[0], None, d[1])
        if len(d) == 3:
            return Row(d[0], d[1], d[2])
        raise ValueError("document %d is a %s of %d: (id, text) or (id, title, text) is wanted" % (
            number, type(d).__name__, len(d)))
    if not text_needed and not names and key is None and (isinstance(d, (str, int, np.integer))):  # an id alone
        return Row(d, None, "")
    d = _keys(d, number)
    text = _field(d, _TEXTS, "text", number) if text_needed else next(
        (d[name] for name in _TEXTS if isinstance(d.get(name), str)), "")
    return Row(_field(d, IDS, "id", number), d.get("title"), text, [d.get(name) for name in names],
               None if key is None else _field(d, (key,), "vector", number))


def doc_name(given: Any, number: int) -> str:
    """A document's id, which need not be a str: numbers are written in decimal."""
    if isinstance(given, str):
        return given
    text = None if _is_missing(given) else _scalar_text(given)
    if text is None:
        raise TypeError("document %d has no id but %r" % (number, given))
    return text


def _body(text: Any, name: str) -> str:
    if not isinstance(text, str):
        raise TypeError("document %s: the text is of type %s, not str" % (name, type(text).__name__))
    return text


def _head(title: Any, name: str) -> str:
    """A title; "" of None and NaN."""
    text = "" if _is_missing(title) else _scalar_text(title)
    if text is None:
        raise TypeError("document %s: the title is of type %s, not str" % (name, type(title).__name__))
    return text


class Documents:
    """An array of gx_document, and what its members point to, which it keeps alive."""

    __slots__ = ("n", "pointer", "_array", "_keep")

    def __init__(self, given: List[Any], first: int) -> None:
        """given: id, title and text of each document, in this order; first: the number of the first."""
        try:
            data, begins, lengths = _queries.pack(given)
        except TypeError:  # not all are str
            made = []
            for i in range(0, len(given), 3):
                name = doc_name(given[i], first + i // 3)
                made += [name, _head(given[i + 1], name), _body(given[i + 2], name)]
            data, begins, lengths = _queries.pack(made)
        self.n = len(given) // 3
        self._array = array = np.zeros(self.n, _DOCUMENT)
        self._keep: List[Any] = [data]
        places = begins + np.uint64(data.ctypes.data)
        array["size"] = _DOCUMENT.itemsize
        array["id"], array["text"] = places[0::3], places[2::3]
        array["id_len"], array["title_len"], array["text_len"] = lengths[0::3], lengths[1::3], lengths[2::3]
        array["title"] = np.where(lengths[1::3] == 0, np.uint64(0), places[1::3])
        self.pointer = ffi.cast("gx_document *", array.ctypes.data)

    def _point(self, what: str, parts: Any, counts: Any) -> None:
        """Let each document's member `what` point to its part of an array, which has counts[i] elements."""
        counts = np.asarray(counts, np.uint64)
        begins = np.cumsum(counts, dtype=np.uint64) - counts
        self._array[what] = begins * np.uint64(parts.itemsize) + np.uint64(parts.ctypes.data)
        self._array["n_" + what] = counts
        self._keep.append(parts)

    def set_values(self, values: List[Tuple[int, str]], counts: List[int]) -> None:
        """values: (attribute, text) of the documents in turn; counts: how many each document has."""
        data, begins, lengths = _queries.pack([text for _, text in values])
        parts = np.zeros(len(values) + 1, _VALUE)
        parts["attribute"][:-1] = [attribute for attribute, _ in values]
        parts["text"][:-1] = begins + np.uint64(data.ctypes.data)
        parts["len"][:-1] = lengths
        self._keep.append(data)
        self._point("values", parts, counts)

    def set_vectors(self, terms: Any, counts: Any, keep: Any) -> None:
        """terms: an array of gx_weighted_term, those of the documents in turn; counts: how many each document has;
        keep: what the terms point to."""
        self._keep.append(keep)
        self._point("vector", terms, counts)


def _of_texts(documents: Iterable[Any]) -> Iterator[Documents]:
    """The batches of documents without attributes and vectors."""
    given: List[Any] = []
    n_characters = number = 0
    for d in documents:
        number += 1
        if type(d) is dict and "id" in d and "text" in d:  # as almost all are
            title, text = d.get("title"), d["text"]
            given += (d["id"], "" if title is None else title, text)
        else:
            name, title, text = row(d, number)[:3]
            given += (name, "" if title is None else title, text)
        if type(text) is str:
            n_characters += len(text)
        if n_characters >= _BATCH_CHARACTERS or len(given) >= 3 * _BATCH:
            yield Documents(given, number + 1 - len(given) // 3)
            given = []
            n_characters = 0
    if given:
        yield Documents(given, number + 1 - len(given) // 3)


class _Weights:
    """The vectors of a batch of documents, as they come: {term: weight}, or (term, weight) pairs."""

    def __init__(self) -> None:
        self.terms: List[Any] = []
        self.weights: List[Any] = []
        self.counts: List[int] = []

    def add(self, vector: Any, number: int) -> None:
        before = len(self.terms)
        if isinstance(vector, Mapping):
            self.terms.extend(vector.keys())
            self.weights.extend(vector.values())
        else:
            try:
                for term, weight in vector:
                    self.terms.append(term)
                    self.weights.append(weight)
            except (TypeError, ValueError):
                raise TypeError("document %d: the vector is of type %s, not {term: weight} or (term, weight) pairs" % (
                    number, type(vector).__name__)) from None
        self.counts.append(len(self.terms) - before)

    def finish(self, documents: Documents, first: int) -> None:
        """first: the number of the first document."""
        try:
            data, begins, lengths = _queries.pack(self.terms)
            weights = _queries.numbers(self.weights)
        except TypeError:
            for i, (term, weight) in enumerate(zip(self.terms, self.weights)):
                number = first + int(np.searchsorted(np.cumsum(self.counts), i, side="right"))
                if not isinstance(term, str):
                    raise TypeError("document %d: the term %r is of type %s, not str" % (
                        number, term, type(term).__name__)) from None
                if not _queries.is_number(weight):
                    raise TypeError("document %d: the weight %r of %r is no number" % (
                        number, weight, term)) from None
            raise
        places = begins + np.uint64(data.ctypes.data)
        documents.set_vectors(_queries.weighted_terms(places, lengths, weights), self.counts, data)


class _Matrix:
    """The vectors of all documents, as the rows of a matrix."""

    def __init__(self, matrix: Any, vocabulary: Any) -> None:
        self.rows = _queries.rows_of(matrix, merge=True)
        self.numbers, names = _queries.column_names(self.rows, vocabulary)
        self.data, begins, self.lengths = _queries.pack(names)
        self.places = begins + np.uint64(self.data.ctypes.data)
        self.n = len(self.rows.ends) - 1

    def finish(self, documents: Documents, first: int) -> None:
        ends = self.rows.ends[first - 1:first + documents.n]
        part = slice(ends[0], ends[-1])
        numbers = self.numbers[part]
        terms = _queries.weighted_terms(self.places[numbers], self.lengths[numbers], self.rows.weights[part])
        documents.set_vectors(terms, np.diff(ends), self.data)


def _of_rows(documents: Iterable[Row], names: Sequence[str], vectors: Union[_Weights, _Matrix, None]
             ) -> Iterator[Documents]:
    """The batches of documents. names: of attributes; vectors: a matrix; or with _Weights the documents' own."""
    given: List[Any] = []
    values: List[Tuple[int, str]] = []
    counts: List[int] = []
    n_characters = number = 0

    def finish() -> Documents:
        nonlocal given, values, counts, n_characters, vectors
        first = number + 1 - len(given) // 3
        batch = Documents(given, first)
        if names:
            batch.set_values(values, counts)
        if vectors is not None:
            vectors.finish(batch, first)
        if isinstance(vectors, _Weights):
            vectors = _Weights()
        given, values, counts, n_characters = [], [], [], 0
        return batch

    for number, d in enumerate(documents, 1):
        if isinstance(vectors, _Matrix) and number > vectors.n:
            raise ValueError("there are more documents than the %d rows of the matrix" % vectors.n)
        given += (d.id, "" if d.title is None else d.title, d.text)
        n_characters += len(d.text) if isinstance(d.text, str) else 0
        if names:
            own = [(i, text) for i, value in enumerate(d.values) for text in _value_texts(
                value, number, names[i])]
            values += own
            counts.append(len(own))
        n_terms = 0
        if isinstance(vectors, _Weights):
            vectors.add(d.vector, number)
            n_terms = len(vectors.terms)
        elif vectors is not None:
            n_terms = vectors.rows.ends[number] - vectors.rows.ends[number - len(given) // 3]
        if n_characters >= _BATCH_CHARACTERS or n_terms >= _BATCH_TERMS or len(given) >= 3 * _BATCH:
            yield finish()
    if isinstance(vectors, _Matrix) and number < vectors.n:
        raise ValueError("there are %d documents, and %d rows of the matrix" % (number, vectors.n))
    if given:
        yield finish()


def _paired(documents: Iterable[Any], vectors: Iterable[Any], names: Sequence[str]) -> Iterator[Row]:
    """Documents and vectors, which come in the same order."""
    number, others = 0, iter(vectors)
    for number, d in enumerate(documents, 1):
        try:
            vector = next(others)
        except StopIteration:
            raise ValueError("there are more documents than vectors, which are %d" % (number - 1)) from None
        yield row(d, number, names, text_needed=False)._replace(vector=vector)
    if next(others, others) is not others:
        raise ValueError("there are more vectors than documents, which are %d" % number)


def _numbered(vectors: Iterable[Any]) -> Iterator[Row]:
    """Vectors of documents that are named by their numbers, from 0."""
    return (Row(str(i), None, "", (), vector) for i, vector in enumerate(vectors))


def batches(documents: Any, names: Sequence[str], vectors: Any, vocabulary: Any) -> Iterator[Documents]:
    """The documents in the library's form, in batches. documents: what iterates over them, or None; the others as of
    build."""
    if vectors is None:
        if not names:
            return _of_texts(documents)
        return _of_rows((row(d, i, names) for i, d in enumerate(documents, 1)), names, None)
    if isinstance(vectors, str):
        if documents is None:
            raise UsageError("vectors=%r is the key of the documents' vectors, and there are no documents" % vectors)
        return _of_rows((row(d, i, names, vectors, False) for i, d in enumerate(documents, 1)), names,
                        _Weights())
    if _queries.is_matrix(vectors):
        matrix = _Matrix(vectors, vocabulary)
        ids = range(matrix.n) if documents is None else documents
        return _of_rows((row(d, i, names, text_needed=False) for i, d in enumerate(ids, 1)), names, matrix)
    if isinstance(vectors, (bytes, np.ndarray)) or not hasattr(vectors, "__iter__"):
        raise TypeError("vectors are a matrix, an iterable of {term: weight}, or the key of the documents' vectors, "
                        "not %s" % type(vectors).__name__)
    if documents is None and isinstance(vectors, Mapping):  # {id: vector}
        return _of_rows((Row(name, None, "", (), vector) for name, vector in vectors.items()), (), _Weights())
    return _of_rows(_numbered(vectors) if documents is None else _paired(documents, vectors, names),
                    names, _Weights())


def _unit(given: Union[float, Index, str, "os.PathLike[str]"]) -> float:
    """A unit of impacts, as it is given or as an index has it."""
    if isinstance(given, (str, os.PathLike)):
        with Index(given) as index:
            return _unit(index)
    if isinstance(given, Index):
        if not given.info.impacts or not given.info.impact_unit > 0:
            raise UsageError("unit: %s has no unit of impacts that holds for all terms" % given.path)
        return given.info.impact_unit
    number = float(given)
    if not 0 < number < float("inf"):
        raise UsageError("unit is a finite number above 0, not %r" % given)
    return number


def _field_text(value: Any, name: str, number: int) -> str:
    """The text of a field, which may be missing, a str or several."""
    if isinstance(value, (list, tuple)):
        return " ".join(_field_text(v, name, number) for v in value)
    text = "" if _is_missing(value) else _scalar_text(value)
    if text is None:
        raise TypeError("document %d: the field %s is of type %s, not str" % (number, name, type(value).__name__))
    return text.replace("\x1e", " ")


def _with_fields(documents: Any, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The documents with the texts of their fields in one, as gx_document wants them."""
    for number, d in enumerate(listed(documents), 1):
        d = _keys(d, number)
        yield {**d, "text": "\x1e".join(_field_text(d.get(name), name, number) for name in names)}


def build(path: Union[str, "os.PathLike[str]"], documents: Any = None, *, vectors: Any = None, vocabulary: Any = None,
          bits: Optional[int] = None, scale: Optional[str] = None,
          unit: Union[float, Index, str, "os.PathLike[str]", None] = None, analyzer: Optional[str] = None,
          stemmer: Optional[str] = None, stopwords: Optional[str] = None, fold: Optional[str] = None,
          ngrams: Optional[str] = None, codec: Optional[str] = None, store_titles: bool = True,
          store_text: bool = False, positions: bool = False, duplicates: str = "fail",
          force: bool = False, attributes: Optional[Mapping[str, str]] = None, memory: int = 0, threads: int = 1,
          progress: Union[bool, int] = False, source: Optional[str] = None,
          fields: Union[Sequence[str], Mapping[str, int], None] = None) -> Index:
    """Build an index of documents, and open it.

    documents     any iterable of dicts (id or docno; text, contents or body; title), tuples (id, text) or
                  (id, title, text); a DataFrame with such columns; {id: text} or {id: dict}; a dataset of
                  ir_datasets, or its name: "irds:beir/scifact". With vectors also ids alone, or None: they are
                  numbered from 0; title and text need not be there and are only stored
    vectors       learned sparse weights, which are searched in place of texts; the index holds impacts then. A matrix
                  with a row a document (scipy's sparse matrices, a 2-D numpy array, a tuple (data, indices, indptr), a
                  sparse tensor of PyTorch); an iterable of {term: weight} or lists of (term, weight), one a document;
                  {id: {term: weight}}; or the key under which each document has its {term: weight}
    vocabulary    the terms of a matrix's columns, a sequence of str or {term: column}; None: numbers in decimal
    bits          of vectors: weights are kept as whole numbers of so many bits, 4 to 16; None: 8. A weight is rounded
                  to a multiple of IndexInfo.impact_unit, unless all are whole numbers below 2^bits
    scale         of vectors: the greatest whole number stands for the greatest weight of the "collection" (None), or
                  of each term's "list"
    unit          of vectors: the weight that a whole number of 1 stands for, a number, or an index (or its path) that
                  has the same; None: the greatest weight decides. Indexes of one unit can be the files of a
                  collection, and weights of up to 65,535 units can be added to it
    analyzer      "english" (default: lower case, stop words, Porter's stemmer), "simple", "whitespace" (default with
                  vectors, for text queries), "multilingual", "code", or a language: `gpuidx help build`
    stemmer       "none", "porter", or one of Snowball's; None: the analyzer's
    stopwords     "none", "lucene", or a file with a word a line; None: the analyzer's
    fold          "unicode": accents, ligatures, width and the like make no difference; "none": they do; None: the
                  analyzer's
    ngrams        words are divided: "edge:2-15" into their beginnings of 2 to 15 characters, "3" into all three side by
                  side; None: they are not
    codec         "gpubp128" (default), another codec, or "auto": one a list
    store_text    keep the texts, for Index.texts and snippets
    positions     keep where each word stands in each document, which phrases need; about a byte a word. Not of vectors
    duplicates    "fail" (InputError), or keep the "first" or the "last" document of an id
    attributes    {name: type} of values to filter by: "int", "float", "date", "keyword", "keywords" or "bool";
                  behind it options of bitmap columns may stand, "float:bins=25" (`gpuidx help build`). Documents are
                  dicts then, and may have a value under each name, or a list of values, of all types but
                  "keyword": Index.filter, search(filter=...)
    fields        [name, ...] of the documents' parts that become fields, which Index(path, fields="title^3,text")
                  weighs by BM25F. Documents are dicts then, with a str or several under each name, or nothing.
                  {name: weight}: whole numbers, 1 to 1,000; these weights are fixed, and the index has no fields
    memory        bytes for the inversion; 0: 512 MiB
    threads       threads that work for the build, the caller's included
    progress      True: a bar of tqdm; an integer: the same, with that total

    Weights are finite and above 0, else InputError; zeros of a matrix are left out. {} is a document without terms.
    Nothing stands at path until the index is complete: an exception, of the iterator too, or Ctrl-C leaves nothing
    behind. Once the last document is in, Ctrl-C waits until the file is complete. ExistsError where path exists, unless
    force. The GIL is released while documents are taken in."""
    opt, err, out = options("gx_builder_options"), new_error(), ffi.new("gx_builder **")
    if duplicates not in _DUPLICATES:
        raise UsageError("duplicates is one of %s, not %r" % (", ".join(map(repr, _DUPLICATES)), duplicates))
    if vectors is None and (bits is not None or scale is not None or unit is not None or vocabulary is not None):
        raise UsageError("bits, scale, unit and vocabulary are of vectors")
    if vectors is None and documents is None:
        raise TypeError("documents are an iterable, not None, unless there are vectors")
    if vectors is not None:
        if bits is not None:
            whole(bits, "bits", 4, 16)
        if scale not in _SCALES and scale is not None:
            raise UsageError("scale is one of %s, not %r" % (", ".join(map(repr, _SCALES)), scale))
        opt.vector_bits, opt.list_units = bits or 8, _SCALES[scale or "collection"]
        opt.unit = 0 if unit is None else _unit(unit)
    given = {"path": path_bytes(path), "docid_codec": codec, "analyzer": analyzer, "stemmer": stemmer,
             "stopwords": stopwords, "fold": fold, "ngrams": ngrams, "source": source}
    for name, value in given.items():
        if value is not None and not isinstance(value, (str, bytes, os.PathLike)):
            raise TypeError("%s is a str, not %r" % ("codec" if name == "docid_codec" else name, value))
    keep = {name: ffi.new("char[]", os.fsencode(v)) for name, v in given.items() if v is not None}
    for name, value in keep.items():
        setattr(opt, name, value)
    opt.force, opt.store_titles, opt.store_text, opt.positions = force, store_titles, store_text, positions
    opt.duplicates, opt.memory = _DUPLICATES[duplicates], whole(memory, "memory", 0, UINT64_MAX)
    opt.threads = whole(threads, "threads")
    if attributes is not None and not isinstance(attributes, Mapping):
        raise TypeError("attributes are {name: type}, not a %s" % type(attributes).__name__)
    names = tuple(attributes or ())
    if attributes:
        declared = ffi.new("gx_attribute[]", len(attributes))
        bitmaps = ffi.new("gx_bitmap_options[]", len(attributes))
        kind = ffi.new("gx_attribute_type *")
        for i, (name, declaration) in enumerate(attributes.items()):
            place = declared[i]
            type_, _, columns = str(declaration).partition(":")
            if not lib.gx_attribute_type_find(type_.encode(), kind):
                raise UsageError("attribute %r: there is no type %r" % (name, type_))
            check(lib.gx_bitmap_options_read(bitmaps + i, columns.encode(), err), err)
            keep["attribute " + name] = ffi.new("char[]", name.encode())
            place.name, place.type = keep["attribute " + name], kind[0]
        opt.attributes, opt.n_attributes, opt.bitmaps = declared, len(attributes), bitmaps
    if fields:
        declared_fields = ffi.new("gx_field[]", len(fields))
        for i, name in enumerate(fields):
            keep["field " + str(name)] = ffi.new("char[]", str(name).encode())
            declared_fields[i].name = keep["field " + str(name)]
            if isinstance(fields, Mapping):
                declared_fields[i].weight = whole(fields[name], "a field's weight", 1, 1000)
        opt.fields, opt.n_fields, opt.fixed_weights = declared_fields, len(fields), isinstance(fields, Mapping)
        documents = _with_fields(_named(documents), tuple(fields))
    documents = _named(documents)
    each: Any = None if documents is None else listed(documents)
    bar: Any = None
    if progress:
        from tqdm import tqdm

        total = progress if progress is not True else _count(documents if each is not None else vectors)
        bar = tqdm(each if each is not None else vectors, total=total, unit="doc")
        if each is not None:
            each = bar
    made = batches(each, names, vectors, vocabulary)
    check(lib.gx_builder_open(out, opt, err), err)
    builder, n_added = out[0], ffi.new("size_t *")
    try:
        for batch in made:
            check(lib.gx_builder_add_many(builder, batch.pointer, batch.n, n_added, err), err)
        check(lib.gx_builder_finish(builder, err), err)
    finally:
        lib.gx_builder_abort(builder)
        if bar is not None:
            bar.close()
    return Index(path)
