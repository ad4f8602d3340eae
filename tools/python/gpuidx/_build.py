"""Building an index from Python's documents."""
from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Tuple, Union

from ._index import Index
from ._library import check, encode, ffi, lib, new_error, options, path_bytes

_DUPLICATES = {"fail": lib.GX_DUPLICATES_FAIL, "first": lib.GX_DUPLICATES_FIRST, "last": lib.GX_DUPLICATES_LAST}
_IDS = ("id", "docno", "_id", "doc_id", "docid")
_TEXTS = ("text", "contents", "content", "body")


def _field(document: Any, names: Tuple[str, ...], what: str, number: int) -> Any:
    for name in names:
        if name in document:
            return document[name]
    raise ValueError("document %d has no %s: one of the keys %s is wanted, and it has %s" % (
        number, what, ", ".join(names), ", ".join(map(repr, list(document)[:8]))))


def _listed(documents: Any) -> Any:
    """What iterates over the documents: of a corpus of ir_datasets, a DataFrame, a dict, or the documents as given."""
    if isinstance(documents, str):
        if not documents.startswith("irds:"):
            raise TypeError('documents are an iterable, or name a corpus of ir_datasets, as in "irds:beir/scifact"')
        import ir_datasets

        documents = ir_datasets.load(documents[len("irds:"):])
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
    return documents


def _count(documents: Any) -> Optional[int]:
    """How many documents these are, where it is known."""
    if hasattr(documents, "__len__"):
        return len(documents)
    counted: Optional[int] = documents.docs_count() if hasattr(documents, "docs_count") else None
    return counted


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


def _with_values(documents: Any, names: Tuple[str, ...]) -> Iterator[Tuple[Any, Any, Any, Any]]:
    """(id, title or None, text, values) of each document, which has fields; values: what it has under each name."""
    for number, d in enumerate(_listed(documents), 1):
        if isinstance(d, (tuple, list)) and not hasattr(d, "_asdict"):
            raise TypeError("document %d is of type %s: with attributes a dict is wanted" % (number, type(d).__name__))
        d = _keys(d, number)
        yield (_field(d, _IDS, "id", number), d.get("title"), _field(d, _TEXTS, "text", number),
               [d.get(name) for name in names])


def _value_texts(value: Any) -> Iterator[str]:
    """A value as the library reads it: none for None and NaN, several for a list."""
    if isinstance(value, (list, tuple, set)):
        for one in value:
            yield from _value_texts(one)
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif hasattr(value, "isoformat"):  # date, datetime, pandas' Timestamp
        yield value.isoformat()
    elif value is not None and value == value:
        yield str(value)


def _rows(documents: Any) -> Iterator[Tuple[Any, Any, Any]]:
    """(id, title or None, text) of each document."""
    for number, d in enumerate(_listed(documents), 1):
        if type(d) is dict:
            try:  # the usual keys, without a loop
                yield d["id"], d.get("title"), d["text"]
                continue
            except KeyError:
                pass
        if isinstance(d, (tuple, list)) and not hasattr(d, "_asdict"):
            if len(d) == 2:
                yield d[0], None, d[1]
            elif len(d) == 3:
                yield d[0], d[1], d[2]
            else:
                raise ValueError("document %d is a %s of %d: (id, text) or (id, title, text) is wanted" % (
                    number, type(d).__name__, len(d)))
        else:
            d = _keys(d, number)
            yield _field(d, _IDS, "id", number), d.get("title"), _field(d, _TEXTS, "text", number)


def _name(given: Any, number: int) -> bytes:
    """A document's id, which need not be a str: numbers are written in decimal."""
    if isinstance(given, str):
        return encode(given)
    if given is None or given != given or isinstance(given, (bytes, dict, list, tuple, set)):
        raise TypeError("document %d has no id but %r" % (number, given))
    return str(given).encode()


def _body(text: Any, name: bytes) -> bytes:
    if not isinstance(text, str):
        raise TypeError("document %s: the text is of type %s, not str" % (
            name.decode("utf-8", "replace"), type(text).__name__))
    return encode(text)


def _head(title: Any) -> bytes:
    """A title; b"" of None and NaN."""
    return encode(title) if isinstance(title, str) else b"" if title is None or title != title else encode(str(title))


def build(path: Union[str, "os.PathLike[str]"], documents: Any, *, analyzer: Optional[str] = None,
          stemmer: Optional[str] = None, stopwords: Optional[str] = None, fold: Optional[str] = None,
          codec: Optional[str] = None, store_titles: bool = True, store_text: bool = False, duplicates: str = "fail",
          force: bool = False, attributes: Optional[Mapping[str, str]] = None, memory: int = 0, threads: int = 1,
          progress: Union[bool, int] = False, source: Optional[str] = None) -> Index:
    """Build an index of documents, and open it.

    documents     any iterable of dicts (id or docno; text, contents or body; title), tuples (id, text) or
                  (id, title, text); a DataFrame with such columns; {id: text} or {id: dict}; a dataset of
                  ir_datasets, or its name: "irds:beir/scifact"
    analyzer      "english" (default: lower case, stop words, Porter's stemmer), "simple" or "whitespace"
    stemmer       "none", "porter", or one of Snowball's; None: the analyzer's
    stopwords     "none", "lucene", or a file with a word a line; None: the analyzer's
    fold          "unicode": accents, ligatures, width and the like make no difference; None: they do
    codec         "gpubp128" (default), another codec, or "auto": one a list
    store_text    keep the texts, for Index.texts and snippets
    duplicates    "fail" (InputError), or keep the "first" or the "last" document of an id
    attributes    {name: type} of values to filter by: "int", "float", "date", "keyword", "keywords" or "bool".
                  Documents are dicts then, and may have a value under each name: Index.filter, search(filter=...)
    memory        bytes for the inversion; 0: 512 MiB
    threads       threads that work for the build, the caller's included
    progress      True: a bar of tqdm; an integer: the same, with that total

    Nothing stands at path until the index is complete: an exception, of the iterator too, or Ctrl-C leaves nothing
    behind. Once the last document is in, Ctrl-C waits until the file is complete. ExistsError where path exists, unless
    force. The GIL is released while documents are taken in."""
    opt, err, out = options("gx_builder_options"), new_error(), ffi.new("gx_builder **")
    if duplicates not in _DUPLICATES:
        raise ValueError("duplicates is one of %s, not %r" % (", ".join(map(repr, _DUPLICATES)), duplicates))
    given = {"path": path_bytes(path), "docid_codec": codec, "analyzer": analyzer, "stemmer": stemmer,
             "stopwords": stopwords, "fold": fold, "source": source}
    keep = {name: ffi.new("char[]", os.fsencode(v)) for name, v in given.items() if v is not None}
    for name, value in keep.items():
        setattr(opt, name, value)
    opt.force, opt.store_titles, opt.store_text = force, store_titles, store_text
    opt.duplicates, opt.memory, opt.threads = _DUPLICATES[duplicates], memory, threads
    bar: Any = None
    rows: Any = _rows(documents)
    if attributes:
        declared = ffi.new("gx_attribute[]", len(attributes))
        kind = ffi.new("gx_attribute_type *")
        for place, (name, type_) in zip(declared, attributes.items()):
            if not lib.gx_attribute_type_find(str(type_).encode(), kind):
                raise ValueError("attribute %r: there is no type %r" % (name, type_))
            keep["attribute " + name] = ffi.new("char[]", name.encode())
            place.name, place.type = keep["attribute " + name], kind[0]
        opt.attributes, opt.n_attributes = declared, len(attributes)
        rows = _with_values(documents, tuple(attributes))
    if progress:
        from tqdm import tqdm

        total = progress if progress is not True else _count(documents)
        rows = bar = tqdm(rows, total=total, unit="doc")
    check(lib.gx_builder_open(out, opt, err), err)
    builder = out[0]
    try:
        if attributes:
            _add_with_values(builder, rows, err)
        else:
            _add_all(builder, rows, err)
        check(lib.gx_builder_finish(builder, err), err)
    finally:
        lib.gx_builder_abort(builder)
        if bar is not None:
            bar.close()
    return Index(path)


def _add_all(builder: Any, rows: Iterable[Tuple[Any, Any, Any]], err: Any) -> None:
    doc = ffi.new("gx_document *")
    doc.size = ffi.sizeof("gx_document")
    add, pin, null, number = lib.gx_builder_add, ffi.from_buffer, ffi.NULL, 0
    for given, title, text in rows:
        number += 1
        try:  # as almost all are
            name = given.encode() if type(given) is str else _name(given, number)
            body = text.encode() if type(text) is str else _body(text, name)
        except UnicodeEncodeError:
            name = _name(given, number)
            body = _body(text, name)
        doc.id = pin_id = pin(name)
        doc.id_len = len(name)
        doc.text = pin_text = pin(body)
        doc.text_len = len(body)
        if title:
            head = _head(title)
            doc.title = pin_title = pin(head)
            doc.title_len = len(head)
        else:
            doc.title = pin_title = null
            doc.title_len = 0
        if add(builder, doc, err):
            check(err.status, err)
        del pin_id, pin_text, pin_title


def _add_with_values(builder: Any, rows: Iterable[Tuple[Any, Any, Any, Any]], err: Any) -> None:
    doc = ffi.new("gx_document *")
    doc.size = ffi.sizeof("gx_document")
    for number, (given, title, text, values) in enumerate(rows, 1):
        name = _name(given, number)
        keep = [name, _head(title), _body(text, name)]
        pins = [ffi.from_buffer(part) for part in keep]
        doc.id, doc.title, doc.text = pins[0], pins[1] if keep[1] else ffi.NULL, pins[2]
        doc.id_len, doc.title_len, doc.text_len = map(len, keep)
        texts = [(i, encode(t)) for i, value in enumerate(values) for t in _value_texts(value)]
        array = ffi.new("gx_attribute_value[]", max(1, len(texts)))
        for place, (i, t) in zip(array, texts):
            pins.append(ffi.from_buffer(t))
            place.attribute, place.text, place.len = i, pins[-1], len(t)
        doc.values, doc.n_values = array, len(texts)
        if lib.gx_builder_add(builder, doc, err):
            check(err.status, err)
