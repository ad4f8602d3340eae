"""Building an index from Python's documents."""
from __future__ import annotations

import os
from typing import Any, Iterable, Iterator, Mapping, Optional, Tuple, Union

from ._index import Index
from ._library import check, ffi, lib, new_error, options

_DUPLICATES = {"fail": lib.GX_DUPLICATES_FAIL, "first": lib.GX_DUPLICATES_FIRST, "last": lib.GX_DUPLICATES_LAST}
_IDS = ("id", "docno", "_id", "docid")
_TEXTS = ("text", "contents", "content", "body")


def _field(document: Any, names: Tuple[str, ...], what: str, number: int) -> Any:
    for name in names:
        if name in document:
            return document[name]
    raise ValueError("document %d has no %s: one of the keys %s is wanted, and it has %s" % (
        number, what, ", ".join(names), ", ".join(map(repr, list(document)[:8]))))


def _with_values(documents: Any, names: Tuple[str, ...]) -> Iterator[Tuple[Any, Any, Any, Any]]:
    """(id, title or None, text, values) of each document, which is a dict; values: what it has under each name."""
    if hasattr(documents, "columns") and hasattr(documents, "itertuples"):  # a DataFrame
        columns = list(documents.columns)
        documents = (dict(zip(columns, row)) for row in documents.itertuples(index=False, name=None))
    for number, d in enumerate(documents, 1):
        if isinstance(d, tuple) and hasattr(d, "_fields"):
            d = d._asdict()  # type: ignore[attr-defined]
        if not isinstance(d, dict):
            raise TypeError("document %d is of type %s: with attributes a dict is wanted" % (number, type(d).__name__))
        yield (_field(d, ("doc_id",) + _IDS, "id", number), d.get("title"), _field(d, _TEXTS, "text", number),
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
    if hasattr(documents, "columns") and hasattr(documents, "itertuples"):  # a DataFrame
        columns = list(documents.columns)
        documents = (dict(zip(columns, row)) for row in documents.itertuples(index=False, name=None))
    for number, d in enumerate(documents, 1):
        if isinstance(d, dict):
            try:  # the usual keys, without a loop
                yield d["id"], d.get("title"), d["text"]
            except KeyError:
                yield _field(d, _IDS, "id", number), d.get("title"), _field(d, _TEXTS, "text", number)
        elif isinstance(d, tuple):
            if hasattr(d, "_fields"):  # a named tuple, as ir_datasets has them
                d = d._asdict()  # type: ignore[attr-defined]
                yield (_field(d, ("doc_id",) + _IDS, "id", number), d.get("title"), _field(d, _TEXTS, "text", number))
            elif len(d) == 2:
                yield d[0], None, d[1]
            elif len(d) == 3:
                yield d
            else:
                raise ValueError("document %d is a tuple of %d: (id, text) or (id, title, text) is wanted"
                                 % (number, len(d)))
        else:
            raise TypeError("document %d is of type %s: a dict or a tuple is wanted" % (number, type(d).__name__))


def build(path: Union[str, "os.PathLike[str]"], documents: Any, *, analyzer: Optional[str] = None,
          stemmer: Optional[str] = None, stopwords: Optional[str] = None, fold: Optional[str] = None,
          codec: Optional[str] = None,
          store_titles: bool = True, store_text: bool = False, duplicates: str = "fail", force: bool = False,
          attributes: Optional[Mapping[str, str]] = None, memory: int = 0, threads: int = 1,
          progress: Union[bool, int] = False, source: Optional[str] = None) -> Index:
    """Build an index of documents, and open it.

    documents     any iterable of dicts (id or docno; text, contents or body; title), tuples (id, text) or
                  (id, title, text), or a DataFrame with such columns
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
    behind. ExistsError where path exists, unless force. The GIL is released while documents are taken in."""
    opt, err, out = options("gx_builder_options"), new_error(), ffi.new("gx_builder **")
    if duplicates not in _DUPLICATES:
        raise ValueError("duplicates is one of %s, not %r" % (", ".join(map(repr, _DUPLICATES)), duplicates))
    given = {"path": os.fspath(path), "docid_codec": codec, "analyzer": analyzer, "stemmer": stemmer,
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

        total = progress if progress is not True else len(documents) if hasattr(documents, "__len__") else None
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
    add, pin, null = lib.gx_builder_add, ffi.from_buffer, ffi.NULL
    for number, title, text in rows:
        name = number.encode("utf-8", "surrogatepass") if type(number) is str else str(number).encode()
        if type(text) is not str:
            raise TypeError("document %s: the text is of type %s, not str" % (number, type(text).__name__))
        body = text.encode("utf-8", "surrogatepass")
        doc.id = pin_id = pin(name)
        doc.id_len = len(name)
        doc.text = pin_text = pin(body)
        doc.text_len = len(body)
        if title:
            head = str(title).encode("utf-8", "surrogatepass")
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
    for number, title, text, values in rows:
        if type(text) is not str:
            raise TypeError("document %s: the text is of type %s, not str" % (number, type(text).__name__))
        keep = [part.encode("utf-8", "surrogatepass") for part in (str(number), str(title or ""), text)]
        pins = [ffi.from_buffer(part) for part in keep]
        doc.id, doc.title, doc.text = pins[0], pins[1] if title else ffi.NULL, pins[2]
        doc.id_len, doc.title_len, doc.text_len = map(len, keep)
        texts = [(i, t.encode("utf-8", "surrogatepass")) for i, value in enumerate(values) for t in _value_texts(value)]
        given = ffi.new("gx_attribute_value[]", max(1, len(texts)))
        for place, (i, t) in zip(given, texts):
            pins.append(ffi.from_buffer(t))
            place.attribute, place.text, place.len = i, pins[-1], len(t)
        doc.values, doc.n_values = given, len(texts)
        if lib.gx_builder_add(builder, doc, err):
            check(err.status, err)
